//! Following a list of names: which names of a folder take part, and which of them the source lacks.

use std::io;
use std::path::{Path, PathBuf};

use ferry_copy::{FailureKind, Verb};
use ferry_io::{Dir, Errno, FileKind, Name, Result as IoResult};

use super::Walk;
use super::level::Part;
use crate::list::Group;
use crate::merge::Row;

impl Walk<'_> {
    /// Returns the part of a folder that a list asks for; everything, if there is none.
    pub(super) async fn part_of(&mut self, folder: &Path) -> io::Result<Part> {
        self.pass_groups(Some(folder)).await?;
        match &mut self.cursor {
            Some(cursor) => Part::of(cursor.group_of(folder)?),
            None => Ok(Part::Everything),
        }
    }

    /// Passes the groups of folders before `folder`, which the walk did not enter, or all that are left. What the source
    /// lacks of them is reported.
    pub(super) async fn pass_groups(&mut self, folder: Option<&Path>) -> io::Result<()> {
        while let Some(cursor) = &mut self.cursor
            && let Some(group) = cursor.next_before(folder)?
        {
            self.pass(group).await?;
        }
        Ok(())
    }

    async fn pass(&mut self, mut group: Group) -> io::Result<()> {
        let components: Vec<Name> = group.folder().collect();
        let folder: PathBuf = components.iter().map(Name::as_os_str).collect();
        while let Some(listed) = group.next()? {
            let Some(name) = listed.name.filter(|_| listed.is_asked_for) else { continue };
            // One that is there was left out, or its folder has failed.
            if let Some(root) = self.source_root.as_ref().filter(|_| !self.choices.deletes)
                && let Err(error) = look_beneath(root, &components, &name).await
                && !(self.choices.is_part && error.is(Errno::NOENT))
            {
                self.fail(&folder.join(name.as_os_str()), FailureKind::Io { verb: Verb::Stat, error });
            }
        }
        Ok(())
    }

    /// Reports names of the last level that a list asks for and the source does not list. With deletions they are only
    /// to be missing in the target, too.
    pub(super) async fn report_missing(&mut self, missing: &[Name]) {
        // A folder that can't be opened again is reported with its rows.
        if self.choices.deletes || missing.is_empty() || self.reopen().await.is_err() {
            return;
        }
        let Some(level) = self.levels.last() else { return };
        let (path, Some(dir)) = (level.path.clone(), level.source.dir.clone()) else { return };
        for name in missing {
            let kind = match dir.stat_entry(name, false).await {
                Ok(_) => FailureKind::Unlisted,
                Err(error) if self.choices.is_part && error.is(Errno::NOENT) => continue,
                Err(error) => FailureKind::Io { verb: Verb::Stat, error },
            };
            self.fail(&path.join(name.as_os_str()), kind);
        }
    }

    /// Explains that rows of the last level are not listed.
    pub(super) fn explain_unlisted(&self, rows: &[Row]) {
        let (Some(explain), Some(level)) = (self.explain, self.levels.last()) else { return };
        for row in rows {
            let side = row.source.or(row.target);
            let is_folder = side.is_some_and(|side| side.kind == Some(FileKind::Directory));
            explain(&level.path.join(row.name.as_os_str()), is_folder, "--files-from");
        }
    }
}

/// Looks at an entry, without following links on the way to it.
async fn look_beneath(root: &Dir, folder: &[Name], name: &Name) -> IoResult<()> {
    let mut dir = root.clone();
    for component in folder {
        dir = dir.open_dir(component).await?;
    }
    dir.stat_entry(name, false).await.map(drop)
}

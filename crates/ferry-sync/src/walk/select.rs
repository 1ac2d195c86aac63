//! Leaving entries out of the walk.

use std::path::Path;

use ferry_copy::{FailureKind, Verb};
use ferry_io::{Cause, Dir, Errno, Error, Io, Name, OpenHow, Operation, Result as IoResult, Stat};

use super::Walk;
use super::examined::{LeftOut, is_folder};
use super::level::Level;
use crate::select::{FolderRules, GITIGNORE};

/// Largest `.gitignore` file that is read, in bytes.
const LARGEST: usize = 1 << 20;

impl Walk<'_> {
    /// Returns why an entry of the last level takes no part; `None` if it does.
    pub(super) fn left_out(
        &self,
        name: &Name,
        source: Option<&Stat>,
        target: Option<&Stat>,
    ) -> Option<LeftOut> {
        let selector = &self.choices.selector;
        if !selector.is_active() {
            return None;
        }
        let path = self.levels.last()?.path.join(name.as_os_str());
        let folders = || self.levels.iter().rev().filter_map(Level::rules);
        let left_out = |why: String, by_pattern, is_folder| {
            Some(LeftOut { target: target.copied(), why, by_pattern, is_folder })
        };
        // A pattern for folders only can match one side alone. It protects a folder of the target, unless such folders
        // are to be deleted: then the source's entry takes its place.
        let target_counts = source.is_none() || !selector.deletes_excluded();
        for stat in source.into_iter().chain(target.filter(|_| target_counts)) {
            if let Some(why) = selector.excluded(&path, is_folder(stat), folders()) {
                return left_out(why, true, is_folder(stat));
            }
        }
        let why = source.and_then(|source| selector.left_out(source))?;
        left_out(why.to_owned(), false, false)
    }

    /// Reads the patterns of a level's source. If they are unknown, this is reported, and nothing in the folder and
    /// beneath it is deleted.
    pub(super) async fn read_rules(&mut self, level: &mut Level) {
        if !self.choices.selector.reads_gitignore() {
            return;
        }
        let Some(dir) = &level.source.dir else { return };
        let path = level.path.join(Path::new(".gitignore"));
        let read = match read_rules(self.io, dir).await {
            Ok(Some(bytes)) => FolderRules::parse(&bytes, &path)
                .map(Some)
                .map_err(|_| Error { operation: Operation::Read, cause: Cause::Errno(Errno::ILSEQ) }),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match read {
            Ok(rules) => level.rules = rules,
            Err(error) => {
                level.may_delete = false;
                self.fail(&path, FailureKind::Io { verb: Verb::Read, error });
            }
        }
    }
}

/// Returns the bytes of a folder's `.gitignore`; `None` if it has none. As with git, a link is not followed.
async fn read_rules(io: &Io, dir: &Dir) -> IoResult<Option<Vec<u8>>> {
    let Some(name) = Name::new(GITIGNORE) else { return Ok(None) };
    let is_file = match dir.stat_entry(&name, false).await {
        Ok(stat) => stat.kind == ferry_io::FileKind::Regular,
        Err(error) if error.is(Errno::NOENT) => false,
        Err(error) => return Err(error),
    };
    if !is_file {
        return Ok(None);
    }
    let file = dir.open(&name, OpenHow::read()).await?;
    let mut block = io.block().await?;
    let mut bytes = Vec::new();
    loop {
        let (back, count) = file.read_at(block, bytes.len() as u64).await;
        block = back;
        match count? {
            0 => return Ok(Some(bytes)),
            count => bytes.extend_from_slice(&block.as_slice()[..count]),
        }
        if bytes.len() > LARGEST {
            return Err(Error { operation: Operation::Read, cause: Cause::Errno(Errno::FBIG) });
        }
    }
}

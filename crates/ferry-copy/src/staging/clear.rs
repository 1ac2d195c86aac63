//! Clearing away what killed runs have left in a folder of the target.
//!
//! Hidden names are removed only if no run holds a lock on the folder, and the inode number in them is the folder's own.
//! A leftover's copy in another folder is an ordinary file there, and stays, too. Where folders can't be locked, nothing
//! is removed. Nothing is removed on network filesystems and those in user space either (`local.rs` lists the others). Only this
//! host may know of a lock there, and folders may have the same inode numbers on other hosts.
//!
//! A run that is killed while a large file replaces another leaves a journal without its part: the complete part has
//! another hidden name. It gets its name back, so that the run goes on with it. A journal whose file is complete is
//! removed. Entries that were moved aside are left to `recover.rs`.

use ferry_io::{Dir, Errno, FileKind, Name, Result, protect};

use super::local::is_cleared;
use super::names::{Mark, aside_of, is_hidden_name, is_part_name, part_of};
use super::part;
use super::rename::rename_into;
use super::run_mark::RunMark;
use crate::run::Run;

/// Maximum number of journals without a part, of marks, and of entries that were moved aside, that are seen to in one
/// folder at once.
const MOST: usize = 256;

/// Leftovers of killed runs in one folder.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// Entries that were moved aside.
    pub(crate) asides: Vec<Name>,
    /// Marks of files.
    pub(crate) marks: Vec<Mark>,
    /// Set if anything was removed or renamed.
    pub(crate) is_changed: bool,
    /// Set if there is any hidden name.
    is_any: bool,
    /// Journals without a part.
    journals: Vec<Journal>,
}

/// A journal without its part.
struct Journal {
    name: Name,
    part: Name,
    /// Inode number of the part.
    inode: Option<u64>,
}

/// Removes the hidden names that killed runs left in a folder of the target. Those that can't be removed stay and are
/// harmless.
pub(crate) async fn clear_leftovers(run: &Run, dir: &Dir) {
    if run.options.atomic {
        clear_unused(run, dir).await;
    }
}

/// Removes the hidden names in a folder, unless a run uses them. Returns what else killed runs have left.
pub(crate) async fn clear_unused(run: &Run, dir: &Dir) -> Leftovers {
    if !is_cleared(dir) || dir.try_lock(true) != Ok(true) {
        return Leftovers::default();
    }
    let mut found = Leftovers::default();
    if let Ok(folder) = dir.stat().await {
        protect(found.clear(run, dir, folder.inode)).await.ok();
    }
    // Other runs may work in the folder again; this one locks it anew for a hidden name.
    dir.try_lock(false).ok();
    found
}

impl Leftovers {
    /// Removes hidden names and old parts, and gives parts their names back.
    async fn clear(&mut self, run: &Run, dir: &Dir, folder: u64) -> Result<()> {
        self.find(run, dir, folder).await?;
        if !self.is_any {
            return Ok(());
        }
        for name in std::mem::take(&mut self.asides) {
            if self.give_back(dir, &name).await == Back::NoPart {
                self.asides.push(name);
            }
        }
        let marks = std::mem::take(&mut self.marks);
        for_each_entry(dir, async |name, is_folder| {
            // A mark counts while its file has its name.
            let of_name: Vec<&Mark> = Mark::all_of(&marks, name).collect();
            if !of_name.is_empty()
                && let Ok(found) = dir.stat_entry(name, false).await
            {
                self.marks.extend(of_name.into_iter().filter(|mark| mark.inode == found.inode).cloned());
            }
            let goes = match is_hidden_name(name, folder) {
                true => !is_folder && self.give_back(dir, name).await == Back::NoPart,
                false => !is_folder && is_part_name(name, folder) && part::is_old(run, dir, name).await,
            };
            self.is_changed |= goes && dir.unlink(name).await.is_ok();
        })
        .await?;
        for mark in marks.iter().filter(|mark| !self.marks.contains(mark)) {
            self.is_changed |= dir.unlink(&mark.name(folder)).await.is_ok();
        }
        for journal in self.journals.drain(..) {
            dir.unlink(&journal.name).await.ok();
        }
        Ok(())
    }

    /// Looks for hidden names.
    async fn find(&mut self, run: &Run, dir: &Dir, folder: u64) -> Result<()> {
        for_each_entry(dir, async |name, is_folder| {
            if aside_of(name, folder).is_some() && self.asides.len() < MOST {
                self.asides.push(name.detached());
                self.is_any = true;
            }
            if let Some(mark) = Mark::of(name, folder).filter(|_| self.marks.len() < MOST) {
                self.marks.push(mark);
                self.is_any = true;
            }
            if is_folder || !is_hidden_name(name, folder) && !is_part_name(name, folder) {
                return;
            }
            self.is_any = true;
            if let Some(part) = part_of(name)
                && self.journals.len() < MOST
                && dir.stat_entry(&part, false).await.is_err_and(|error| error.is(Errno::NOENT))
            {
                let inode = part::part_inode(run, dir, name).await;
                self.journals.push(Journal { name: name.detached(), part, inode });
                self.is_changed = true;
            }
        })
        .await
    }

    /// Gives a part its name back.
    async fn give_back(&mut self, dir: &Dir, name: &Name) -> Back {
        if self.journals.is_empty() {
            return Back::NoPart;
        }
        let Ok(found) = dir.stat_entry(name, false).await else { return Back::NoPart };
        let is_part = found.kind == FileKind::Regular && found.links == 1;
        let of_part = |journal: &Journal| is_part && journal.inode == Some(found.inode);
        let Some(index) = self.journals.iter().position(of_part) else { return Back::NoPart };
        // Its journal stays, whatever comes of this.
        let Journal { part, .. } = self.journals.swap_remove(index);
        match rename_into(dir, name, dir, &part).await {
            Ok(()) => Back::Named,
            Err(_) => Back::Failed,
        }
    }
}

/// Result of giving a part its name back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    Named,
    /// It stays under its hidden name for the next run.
    Failed,
    /// The entry is no part.
    NoPart,
}

/// Removes all hidden names of this folder, whose inode number is given, except parts. The caller knows that no run uses
/// them.
pub(crate) async fn clear_all(dir: &Dir, folder: u64) -> Result<()> {
    protect(unlink_where(dir, async |name| is_hidden_name(name, folder))).await
}

/// Removes all parts in a folder, unless a run fills them, and all marks, except those of runs at work.
pub(crate) async fn clear_parts(dir: &Dir) -> Result<()> {
    let folder = dir.stat().await?.inode;
    let clears = async |name: &Name| {
        if let Some(mark) = RunMark::of(name, folder) {
            mark.remove(dir, folder).await;
            return false;
        }
        Mark::of(name, folder).is_some() || is_part_name(name, folder) && part::is_unused(dir, name).await
    };
    protect(unlink_where(dir, clears)).await
}

/// Unlinks the files in a folder whose names are to go.
async fn unlink_where(dir: &Dir, goes: impl AsyncFn(&Name) -> bool) -> Result<()> {
    for_each_entry(dir, async |name, is_folder| {
        if !is_folder && goes(name).await {
            dir.unlink(name).await.ok();
        }
    })
    .await
}

/// Passes the name of each entry of a folder, and true for those that are known to be folders.
async fn for_each_entry(dir: &Dir, mut pass: impl AsyncFnMut(&Name, bool)) -> Result<()> {
    let mut from = Some(0);
    loop {
        // Then from the descriptor's own position, which needs no cookie.
        let chunk = dir.list(from).await?;
        for entry in &chunk.entries {
            pass(&entry.name, entry.kind == Some(FileKind::Directory)).await;
        }
        if chunk.next.is_none() {
            return Ok(());
        }
        from = None;
    }
}

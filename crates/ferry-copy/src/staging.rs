//! `--atomic`: a target gets its name only when it is complete, including its attributes.
//!
//! A regular file is created without a name (O_TMPFILE) and linked into place at its end. A run that is killed then
//! leaves nothing of it. Elsewhere a hidden name is renamed: to replace an existing file, on filesystems without
//! unnamed files, where they can't be named (`can_name_open_files`), and for links and special files. A killed run can
//! leave a hidden name.
//!
//! A hidden name holds the inode number of its folder, the process id and a counter: `.ferry-2a-1f40-0`. A run that
//! uses one holds a shared lock on that folder, so that no other run clears the name away (`clear.rs`). The names of a
//! running ferry stay, also in another container.
//!
//! Limits: a filesystem that can't rename without replacing (exFAT, some in user space) is asked first whether the name
//! is free. A file that takes the name between the two calls is replaced.

mod clear;
mod complete;
mod journal;
mod local;
mod mark;
pub(crate) mod names;
pub(crate) mod part;
mod rename;
mod reopen;
mod run_mark;
mod undo;

use ferry_io::{Cause, Dir, Errno, Error, File, Name, OpenHow, Operation, Result, Stat, protect};

use crate::meta::Replaced;
use crate::place::Entry;
use crate::run::Run;

pub(crate) use clear::{clear_all, clear_leftovers, clear_parts, clear_unused};
pub(crate) use complete::forget_journal;
pub use local::is_cleared;
pub(crate) use mark::{mark, unmark};
pub use names::Mark;
pub(crate) use names::{Aside, aside_of};
use names::{is_hidden_name, is_part_name, next_hidden_name};
pub(crate) use part::Part;
use rename::{folder_number, rename_made};
pub(crate) use rename::{rename, rename_into, taken};
pub use run_mark::{OwnRunMark, RunMark};
pub(crate) use undo::{ATTEMPTS, lacks_room, next_aside, remove_made, remove_own_hidden};

/// A file without a name, or with a hidden one.
pub(crate) struct Staged {
    /// Folder that it belongs to, open because of the lock on it.
    dir: Dir,
    hidden: Option<Name>,
    /// Set if it replaces an existing file.
    pub(crate) replaces: bool,
    /// Set if an existing file gets a backup's name before it is replaced.
    pub(crate) backs_up: bool,
    /// Attributes of the file that it replaces.
    pub(crate) replaced: Option<Replaced>,
    /// The part that it is, if a later run can go on with it.
    pub(crate) part: Option<Part>,
}

/// Creates a file that is not visible before it is complete.
pub(crate) async fn create(run: &Run, entry: Entry<'_>, dir: Dir, mode: u32) -> Result<(File, Staged)> {
    if let Some(unnamed) = create_unnamed(entry, &dir, mode).await? {
        return Ok(unnamed);
    }
    let create = async |name: &Name| dir.open(name, OpenHow::create(mode).also_reading()).await;
    let (name, file) = under_hidden_name(run, entry, &dir, create).await?;
    Ok((file, Staged::new(dir, Some(name))))
}

/// Opens the part of a large file, perhaps that of an interrupted run; `None` where there can be none.
pub(crate) async fn open_part(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    source: &Stat,
) -> Result<Option<(File, Staged)>> {
    let folder = folder_number(entry, dir).await?;
    run.locks.share(dir).await?;
    let Some((file, name, part)) = reopen::open(run, entry, (dir, folder), source).await? else {
        return Ok(None);
    };
    let staged = Staged::new(dir.clone(), Some(name));
    Ok(Some((file, Staged { part: Some(part), ..staged })))
}

/// Creates a file without a name; `None` where such files are unsupported.
pub(crate) async fn create_unnamed(entry: Entry<'_>, dir: &Dir, mode: u32) -> Result<Option<(File, Staged)>> {
    let abilities = entry.folder.abilities();
    let lacks_unnamed = abilities.is_some_and(|abilities| !abilities.may_be_unnamed());
    if lacks_unnamed || !ferry_io::can_name_open_files() {
        return Ok(None);
    }
    match dir.open_unnamed(mode).await {
        Ok(file) => Ok(Some((file, Staged::new(dir.clone(), None)))),
        Err(error) if has_no_unnamed(&error) => {
            abilities.inspect(|abilities| abilities.note_no_unnamed());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns true for the errors of filesystems and kernels without unnamed files (open(2)).
fn has_no_unnamed(error: &Error) -> bool {
    [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT, Errno::INVAL, Errno::NOSYS].iter().any(|&no| error.is(no))
}

impl Staged {
    fn new(dir: Dir, hidden: Option<Name>) -> Self {
        Self { dir, hidden, replaces: false, backs_up: false, replaced: None, part: None }
    }

    /// Gives the complete file its name. Closes it before a rename, because over a network closing may report that it
    /// is incomplete.
    pub(crate) async fn publish(self, run: &Run, entry: Entry<'_>, file: File) -> Result<()> {
        if ferry_io::is_cancelled() {
            self.discard(run, entry, &file, true).await;
            return Err(Error { operation: Operation::Rename, cause: Cause::Cancelled });
        }
        let (name, dir) = (entry.target, &self.dir);
        protect(async {
            match (self.hidden, &self.part) {
                (Some(hidden), Some(part)) => {
                    complete::publish(entry, (dir, &hidden), part, (file, self.replaces)).await
                }
                (Some(hidden), None) => {
                    let made = file.stat().await?;
                    let renamed = match file.close_in(dir).await {
                        Ok(()) => rename_made(dir, (&hidden, &made), name, self.replaces).await,
                        Err(error) => Err(error),
                    };
                    if renamed.is_err() {
                        remove_own_hidden(dir, &hidden, &made).await;
                    }
                    renamed
                }
                (None, _) if self.replaces => {
                    replace(run, entry, dir, async |name| dir.link_open(&file, name).await).await?;
                    file.close_in(dir).await
                }
                (None, _) => {
                    dir.link_open(&file, name).await?;
                    file.close_in(dir).await
                }
            }
        })
        .await
    }

    /// Removes the incomplete file, unless it is a part that a later run can go on with and `is_sound`.
    pub(crate) async fn discard(self, run: &Run, entry: Entry<'_>, file: &File, is_sound: bool) {
        let Some(hidden) = self.hidden else { return };
        if is_sound && self.part.as_ref().is_some_and(|part| part.is_kept(run, entry)) {
            return;
        }
        protect(async {
            if let Ok(made) = file.stat().await {
                remove_own_hidden(&self.dir, &hidden, &made).await;
            }
            if let Some(part) = &self.part {
                part.remove_journal(&self.dir).await;
            }
        })
        .await;
    }
}

/// Makes an entry under a hidden name and renames it over the existing one.
pub(crate) async fn replace(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    make: impl AsyncFn(&Name) -> Result<()>,
) -> Result<()> {
    let (hidden, ()) = under_hidden_name(run, entry, dir, make).await?;
    protect(async {
        let made = dir.stat_entry(&hidden, false).await?;
        let renamed = dir.rename(&hidden, dir, entry.target, true).await;
        // The hidden name is left if rename(2) failed, or if both names are one file.
        remove_own_hidden(dir, &hidden, &made).await;
        renamed
    })
    .await
}

/// Makes an entry under a hidden name. Returns the name and what `make` returned.
pub(crate) async fn under_hidden_name<T>(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    make: impl AsyncFn(&Name) -> Result<T>,
) -> Result<(Name, T)> {
    let folder = folder_number(entry, dir).await?;
    run.locks.share(dir).await?;
    let mut tried = 1;
    loop {
        let name = next_hidden_name(folder);
        // Not cancellable: a call given up in flight might create the entry, and nothing would remove it.
        match protect(make(&name)).await {
            Ok(made) => return Ok((name, made)),
            Err(error) if error.is(Errno::EXIST) && tried < ATTEMPTS => tried += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Returns a hidden name for an entry that replaces another. It is free, unless another program takes such a name now.
pub(crate) async fn reserve(run: &Run, entry: Entry<'_>, dir: &Dir) -> Result<Name> {
    let folder = folder_number(entry, dir).await?;
    run.locks.share(dir).await?;
    for _ in 0..ATTEMPTS {
        let name = next_hidden_name(folder);
        match dir.stat_entry(&name, false).await {
            // A run with this process's number was killed where no run clears names away.
            Ok(_) => {}
            Err(error) if error.is(Errno::NOENT) => return Ok(name),
            Err(error) => return Err(error),
        }
    }
    Err(Error { operation: Operation::Open, cause: Cause::Errno(Errno::EXIST) })
}

/// Returns true for a name that ferry uses for unfinished entries of the folder with this inode number. Such entries
/// belong to a run, and are no part of the tree.
#[must_use]
pub fn is_hidden(name: &Name, folder: u64) -> bool {
    is_hidden_name(name, folder)
        || is_part_name(name, folder)
        || Mark::of(name, folder).is_some()
        || RunMark::of(name, folder).is_some()
}

/// Returns true for the name of an entry that was moved aside in the folder with this inode number, and that a later run
/// sees to. Such an entry is no part of the tree, unless [`is_cleared`] is false for its folder.
#[must_use]
pub fn is_aside(name: &Name, folder: u64) -> bool {
    aside_of(name, folder).is_some()
}

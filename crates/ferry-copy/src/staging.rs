//! `--atomic`: a target gets its name only when it is complete, including its attributes.
//!
//! A regular file is created without a name (O_TMPFILE) and linked into place at its end. A run that is killed then
//! leaves nothing of it. Elsewhere a hidden name is renamed: to replace an existing file, on filesystems without
//! unnamed files, where they can't be named (`can_name_open_files`), and for links and special files. A killed run can
//! leave a hidden name.
//!
//! A hidden name holds the inode number of its folder, the process id and a counter: `.ferry-2a-1f40-0`. A run that
//! uses one holds a shared lock on that folder. [`clear_leftovers`] removes hidden names from a folder only if no run
//! holds a lock on it and the inode number is the folder's own. So the names of a running ferry stay, also in another
//! container. A leftover's copy in another folder is an ordinary file there, and stays, too. Where folders can't be
//! locked, nothing is removed.
//!
//! Nothing is removed on network filesystems and those in user space either ([`LOCKS_REACH`] lists the others). Only
//! this host may know of a lock there, and folders may have the same inode numbers on other hosts.
//!
//! Limits: a filesystem that can't rename without replacing (exFAT, some in user space) is asked first whether the name
//! is free. A file that takes the name between the two calls is replaced.

mod journal;
mod names;
pub(crate) mod part;
mod undo;

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Result, Stat, protect};

use crate::meta::Replaced;
use crate::place::Entry;
use crate::run::Run;

use names::{is_hidden_name, is_part_name, next_hidden_name};
pub(crate) use part::Part;
pub(crate) use undo::{ATTEMPTS, lacks_room, next_aside, remove_made, remove_own_hidden};

/// Filesystems that one kernel alone writes to, by magic number (statfs(2)): a lock there excludes every other run. In
/// this order: ext2 to ext4, XFS, btrfs, tmpfs, ramfs, overlayfs, F2FS, bcachefs, ZFS, UBIFS, JFS, NILFS, FAT, exFAT,
/// NTFS.
const LOCKS_REACH: [u64; 15] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x2405_1905,
    0x3153_464a,
    0x3434,
    0x4d44,
    0x2011_bab0,
    0x7366_746e,
];

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
    let Some((file, name, part)) = part::open(run, entry, (dir, folder), source).await? else {
        return Ok(None);
    };
    let staged = Staged::new(dir.clone(), Some(name));
    Ok(Some((file, Staged { part: Some(part), ..staged })))
}

/// Returns the inode number of a folder of the target.
async fn folder_number(entry: Entry<'_>, dir: &Dir) -> Result<u64> {
    match entry.folder.facts() {
        Some(facts) => Ok(facts.target.1),
        None => Ok(dir.stat().await?.inode),
    }
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
            match self.hidden {
                Some(hidden) => {
                    let made = file.stat().await?;
                    let hidden = match &self.part {
                        Some(part) => leave_part(entry, dir, (part, hidden), &made).await?,
                        None => hidden,
                    };
                    let renamed = match file.close_in(dir).await {
                        Ok(()) if dir.stat_entry(&hidden, false).await?.is_same_file(&made) => {
                            rename(dir, &hidden, name, self.replaces).await
                        }
                        // Another program has taken the hidden name.
                        Ok(()) => {
                            Err(Error { operation: Operation::Rename, cause: Cause::Errno(Errno::STALE) })
                        }
                        Err(error) => Err(error),
                    };
                    if renamed.is_err() {
                        remove_own_hidden(dir, &hidden, &made).await;
                    }
                    renamed
                }
                None if self.replaces => {
                    replace(run, entry, dir, async |name| dir.link_open(&file, name).await).await?;
                    file.close_in(dir).await
                }
                None => {
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
        if let Some(part) = &self.part {
            if is_sound && part.is_kept(run, entry) {
                return;
            }
            protect(part.remove_journal(&self.dir)).await;
        }
        if let Ok(made) = protect(file.stat()).await {
            remove_own_hidden(&self.dir, &hidden, &made).await;
        }
    }
}

/// Gives a complete part another hidden name, and removes its journal. Closing the part releases its lock: another run
/// that has opened it must not find it under its name then.
async fn leave_part(entry: Entry<'_>, dir: &Dir, (part, name): (&Part, Name), made: &Stat) -> Result<Name> {
    part.remove_journal(dir).await;
    let other = next_hidden_name(folder_number(entry, dir).await?);
    let renamed = rename(dir, &name, &other, false).await;
    if renamed.is_err() {
        remove_own_hidden(dir, &name, made).await;
    }
    renamed.map(|()| other)
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
    is_hidden_name(name, folder) || is_part_name(name, folder)
}

/// Renames an entry from its hidden name to its own.
pub(crate) async fn rename(dir: &Dir, hidden: &Name, name: &Name, replaces: bool) -> Result<()> {
    if replaces {
        dir.rename(hidden, dir, name, true).await
    } else {
        rename_into(dir, hidden, dir, name).await
    }
}

/// Moves an entry to a name that is free.
pub(crate) async fn rename_into(dir: &Dir, name: &Name, to: &Dir, new_name: &Name) -> Result<()> {
    match dir.rename(name, to, new_name, false).await {
        Err(error) if error.is(Errno::INVAL) || error.is(Errno::NOSYS) => {
            match to.stat_entry(new_name, false).await {
                Ok(_) => Err(Error { operation: Operation::Rename, cause: Cause::Errno(Errno::EXIST) }),
                Err(free) if free.is(Errno::NOENT) => dir.rename(name, to, new_name, true).await,
                Err(error) => Err(error),
            }
        }
        answer => answer,
    }
}

/// Removes the hidden names that killed runs left in a folder of the target. Those that can't be removed stay and are
/// harmless.
pub(crate) async fn clear_leftovers(run: &Run, dir: &Dir) {
    if run.options.atomic {
        clear_unused(dir).await;
    }
}

/// Removes the hidden names in a folder, unless a run uses them.
pub(crate) async fn clear_unused(dir: &Dir) {
    let locks_reach = || dir.filesystem_magic().is_some_and(|magic| LOCKS_REACH.contains(&magic));
    if !locks_reach() || dir.try_lock(true) != Ok(true) {
        return;
    }
    if let Ok(folder) = dir.stat().await {
        protect(clear(dir, folder.inode)).await.ok();
    }
    // Other runs may work in the folder again; this one locks it anew for a hidden name.
    dir.try_lock(false).ok();
}

async fn clear(dir: &Dir, folder: u64) -> Result<()> {
    unlink_where(dir, async |name| {
        is_hidden_name(name, folder) || is_part_name(name, folder) && part::is_old(dir, name).await
    })
    .await
}

/// Removes all hidden names of this folder, whose inode number is given, except parts. The caller knows that no run uses
/// them.
pub(crate) async fn clear_all(dir: &Dir, folder: u64) -> Result<()> {
    protect(unlink_where(dir, async |name| is_hidden_name(name, folder))).await
}

/// Removes all parts in a folder, unless a run fills them.
pub(crate) async fn clear_parts(dir: &Dir) -> Result<()> {
    let folder = dir.stat().await?.inode;
    let clears = async |name: &Name| is_part_name(name, folder) && part::is_unused(dir, name).await;
    protect(unlink_where(dir, clears)).await
}

/// Unlinks the files in a folder whose names are to go.
async fn unlink_where(dir: &Dir, goes: impl AsyncFn(&Name) -> bool) -> Result<()> {
    let mut from = Some(0);
    loop {
        // Then from the descriptor's own position, which needs no cookie.
        let chunk = dir.list(from).await?;
        for entry in &chunk.entries {
            if entry.kind != Some(FileKind::Directory) && goes(&entry.name).await {
                dir.unlink(&entry.name).await.ok();
            }
        }
        if chunk.next.is_none() {
            return Ok(());
        }
        from = None;
    }
}

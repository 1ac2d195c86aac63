//! `--atomic`: what is made has its name only when it is whole, attributes and all.
//!
//! A regular file is made without a name (O_TMPFILE) and linked into place at its end: whatever kills the run, the
//! kernel leaves nothing of it. Where something has to be replaced, where the filesystem has no such files, and for
//! links and special files, and where such a file could not be given a name (`can_name_open_files`), there is a hidden name in between, which is renamed: it is what a killed run can leave.
//!
//! A hidden name tells the inode number of the folder that it is in, the process, and a number: `.ferry-2a-1f40-0`. Who
//! uses one holds a shared lock on that folder. [`clear_leftovers`] removes such names from a folder only if nobody
//! holds a lock on it and the inode number is the folder's own: what a running ferry makes, on whatever side of a
//! container, stays, and so does a leftover's copy in another folder, which is somebody's file there. Where folders
//! can't be locked nothing is removed.
//!
//! Nor is anything removed where a lock may be known to this host alone, and folders have the same inode numbers on
//! others: on network filesystems and in user space ([`LOCKS_REACH`] has those that are different).
//!
//! Limits: a filesystem that can't rename without replacing (exFAT, some in user space) is asked first whether the name
//! is free, and what takes it between the two calls is replaced.

mod undo;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Result, protect};

use crate::copier::{Copier, Place};
use crate::entry::names;
use crate::meta::Replaced;

pub(crate) use undo::{remove_made, remove_own_hidden};

/// What a hidden name begins with.
const PREFIX: &str = ".ferry-";
/// Names tried before giving up.
const ATTEMPTS: u32 = 100;
/// How often, and how long each time, a lock is waited for: who clears a folder holds it for one listing.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Filesystems that one kernel alone writes to, by their magic numbers (statfs(2)): a lock holds off everybody. In this
/// order: ext2 to ext4, XFS, btrfs, tmpfs, ramfs, overlayfs, F2FS, bcachefs, ZFS, UBIFS, JFS, NILFS, FAT, exFAT, NTFS.
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

/// The number in the next hidden name, of all runs of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What a run knows of locks.
#[derive(Default)]
pub(crate) struct Locks {
    /// Somebody holds one for longer than a listing takes: nobody waits again.
    is_refused: AtomicBool,
}

/// A file that has no name yet, or a hidden one.
pub(crate) struct Staged {
    /// Where it belongs; held, for the lock on it.
    dir: Dir,
    hidden: Option<Name>,
    /// Whether what has its name gives way to it.
    pub(crate) replaces: bool,
    /// Whether what has its name gets that of a backup first, and this only now.
    pub(crate) backs_up: bool,
    /// Attributes that it has from the file that it replaces.
    pub(crate) replaced: Option<Replaced>,
}

/// Makes a file that is not to be seen before it is whole.
pub(crate) async fn create(copier: &Copier, place: Place<'_>, dir: Dir, mode: u32) -> Result<(File, Staged)> {
    if let Some(unnamed) = create_unnamed(place, &dir, mode).await? {
        return Ok(unnamed);
    }
    let create = async |name: &Name| dir.open(name, OpenHow::create(mode)).await;
    let (name, file) = under_hidden_name(copier, place, &dir, create).await?;
    Ok((file, Staged::new(dir, Some(name))))
}

/// Makes a file without a name; `None` where there are no such files.
pub(crate) async fn create_unnamed(place: Place<'_>, dir: &Dir, mode: u32) -> Result<Option<(File, Staged)>> {
    let abilities = place.folder.abilities();
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

/// As open(2) says it of filesystems, and kernels, without such files.
fn has_no_unnamed(error: &Error) -> bool {
    [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT, Errno::INVAL, Errno::NOSYS].iter().any(|&no| error.is(no))
}

impl Staged {
    fn new(dir: Dir, hidden: Option<Name>) -> Self {
        Self { dir, hidden, replaces: false, backs_up: false, replaced: None }
    }

    /// Gives the whole file its name. Closes it as late as its way to a name allows: over a network, which has names for
    /// all its files, closing may tell that it is not whole.
    pub(crate) async fn publish(self, copier: &Copier, place: Place<'_>, file: File) -> Result<()> {
        if ferry_io::is_cancelled() {
            self.discard(&file).await;
            return Err(Error { operation: Operation::Rename, cause: Cause::Cancelled });
        }
        let (name, dir) = (names(&place).1, &self.dir);
        protect(async {
            match self.hidden {
                Some(hidden) => {
                    let made = file.stat().await?;
                    let renamed = match file.close() {
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
                    replace(copier, place, dir, async |name| dir.link_open(&file, name).await).await?;
                    file.close()
                }
                None => {
                    dir.link_open(&file, name).await?;
                    file.close()
                }
            }
        })
        .await
    }

    /// Leaves nothing of a file that is not whole.
    pub(crate) async fn discard(self, file: &File) {
        let Some(hidden) = self.hidden else { return };
        if let Ok(made) = protect(file.stat()).await {
            remove_own_hidden(&self.dir, &hidden, &made).await;
        }
    }
}

/// Makes something under a hidden name and has it take the place of what is there, in one step.
pub(crate) async fn replace(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    make: impl AsyncFn(&Name) -> Result<()>,
) -> Result<()> {
    let (hidden, ()) = under_hidden_name(copier, place, dir, make).await?;
    protect(async {
        let made = dir.stat_entry(&hidden, false).await?;
        let renamed = dir.rename(&hidden, dir, names(&place).1, true).await;
        // The hidden name is left where rename(2) failed, or found both to be one file.
        remove_own_hidden(dir, &hidden, &made).await;
        renamed
    })
    .await
}

/// Makes something under a hidden name, which is given back with it.
pub(crate) async fn under_hidden_name<T>(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    make: impl AsyncFn(&Name) -> Result<T>,
) -> Result<(Name, T)> {
    let folder = match place.folder.facts() {
        Some(facts) => facts.target.1,
        None => dir.stat().await?.inode,
    };
    lock(copier, dir).await?;
    let mut tried = 1;
    loop {
        let name = next_hidden_name(folder);
        // Given up while it is on its way, it might be made nevertheless, and nobody would know to remove it.
        match protect(make(&name)).await {
            Ok(made) => return Ok((name, made)),
            Err(error) if error.is(Errno::EXIST) && tried < ATTEMPTS => tried += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Returns a hidden name for this folder that this process has not used before.
fn next_hidden_name(folder: u64) -> Name {
    hidden_name(folder, std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn hidden_name(folder: u64, process: u32, number: u64) -> Name {
    let name = format!("{PREFIX}{folder:x}-{process:x}-{number:x}");
    Name::new(name.as_bytes()).unwrap_or_else(|| unreachable!("hexadecimal digits are a name"))
}

/// Whether a name is one that [`hidden_name`] gives in this folder.
fn is_hidden_name(name: &Name, folder: u64) -> bool {
    let number = |part: &str| {
        let is_plain = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let value = u64::from_str_radix(part, 16).ok().filter(|_| is_plain)?;
        // Written as it would be written.
        (format!("{value:x}") == part).then_some(value)
    };
    let text = std::str::from_utf8(name.as_bytes()).ok();
    let Some(rest) = text.and_then(|text| text.strip_prefix(PREFIX)) else { return false };
    let parts: Vec<_> = rest.split('-').map(number).collect();
    matches!(parts[..], [Some(inode), Some(_), Some(_)] if inode == folder)
}

/// Holds this folder against those who would clear it, as far as that can be had.
async fn lock(copier: &Copier, dir: &Dir) -> Result<()> {
    let is_refused = &copier.locks.is_refused;
    for _ in 0..LOCK_ATTEMPTS {
        // Where there are no locks nobody clears it either.
        if dir.try_lock(false) != Ok(false) || is_refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        ferry_io::sleep(LOCK_PAUSE).await?;
    }
    is_refused.store(true, Ordering::Relaxed);
    Ok(())
}

/// Gives something under a hidden name its own.
pub(crate) async fn rename(dir: &Dir, hidden: &Name, name: &Name, replaces: bool) -> Result<()> {
    match dir.rename(hidden, dir, name, replaces).await {
        Err(error) if !replaces && (error.is(Errno::INVAL) || error.is(Errno::NOSYS)) => {
            match dir.stat_entry(name, false).await {
                Ok(_) => Err(Error { operation: Operation::Rename, cause: Cause::Errno(Errno::EXIST) }),
                Err(free) if free.is(Errno::NOENT) => dir.rename(hidden, dir, name, true).await,
                Err(error) => Err(error),
            }
        }
        answer => answer,
    }
}

/// Removes what killed runs have left in a folder of the target. What can't be looked at or removed stays: it is in
/// nobody's way.
pub(crate) async fn clear_leftovers(copier: &Copier, dir: &Dir) {
    let locks_reach = || dir.filesystem_magic().is_some_and(|magic| LOCKS_REACH.contains(&magic));
    if !copier.options.atomic || !locks_reach() || dir.try_lock(true) != Ok(true) {
        return;
    }
    if let Ok(folder) = dir.stat().await {
        protect(clear(dir, folder.inode)).await.ok();
    }
    // From now on others may work in it. Who uses a hidden name asks again.
    dir.try_lock(false).ok();
}

async fn clear(dir: &Dir, folder: u64) -> Result<()> {
    let mut from = Some(0);
    loop {
        // From then on from the descriptor's own position, whatever a place means on this filesystem.
        let chunk = dir.list(from).await?;
        for entry in &chunk.entries {
            if entry.kind != Some(FileKind::Directory) && is_hidden_name(&entry.name, folder) {
                dir.unlink(&entry.name).await.ok();
            }
        }
        if chunk.next.is_none() {
            return Ok(());
        }
        from = None;
    }
}

#[cfg(test)]
mod tests;

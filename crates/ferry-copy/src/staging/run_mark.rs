//! Marks of runs (`ferry sync`): an empty file in the target's root, from the first change of a run to its end.
//!
//! The kernel writes a file's bytes after its name, size and times. After a crash of the machine, or of the device, a file may
//! look complete and lack bytes. Filesystems with a journal, and btrfs, keep the order of names: if such a file has its name, the
//! mark has its own, too. The next run compares the content of files that were changed since the mark was made (`ferry-sync`).
//!
//! The name of a mark has the session in which it was made ([`Session`]). After kill(2) the session goes on, and the page cache
//! has all bytes, so nothing is compared. A run that is at work holds a lock on its mark. Another run may take a mark for that of
//! an ended run before it is locked, and remove it. So a run looks at its mark once more after locking it, and makes another one if
//! it is gone. No two marks of a process have one name, because the name is what is removed.
//!
//! Limits: there is no mark if the user can't make files in the root, none on filesystems that other hosts may write to, and none
//! on FAT and exFAT. A crash that follows the end of a run finds no mark, neither its own nor those of killed runs that it has removed.
//! Filesystems that are mounted beneath the root have sessions of their own, which no mark knows.

use std::sync::atomic::{AtomicU64, Ordering};

use ferry_io::{Dir, File, Name, OpenHow, Session, Time, protect};

use super::local::is_marked;
use super::part::PRIVATE;

/// Start and end of a mark's name.
const PREFIX: &str = ".ferry-";
const END: &str = ".run";
/// Names that are tried; processes of several PID namespaces may have one number.
const ATTEMPTS: u32 = 16;
/// Number of the next mark of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The mark of a run, as its name describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunMark {
    session: Session,
    process: u32,
    number: u64,
}

impl RunMark {
    /// Returns the mark that a name in the folder with this inode number stands for; `None` for other names.
    #[must_use]
    pub fn of(name: &Name, folder: u64) -> Option<Self> {
        let text = std::str::from_utf8(name.as_bytes()).ok()?;
        let rest = text.strip_prefix(&format!("{PREFIX}{folder:x}-"))?.strip_suffix(END)?;
        let mut fields = rest.split('-');
        let mut number = || u128::from_str_radix(fields.next()?, 16).ok();
        let (boot, mount, process, number) = (number()?, number()?, number()?, number()?);
        let session = Session { boot, mount: mount.try_into().ok()? };
        let mark = Self { session, process: process.try_into().ok()?, number: number.try_into().ok()? };
        (mark.name(folder) == *name).then_some(mark)
    }

    fn name(&self, folder: u64) -> Name {
        let Self { session: Session { boot, mount }, process, number } = self;
        let text = format!("{PREFIX}{folder:x}-{boot:x}-{mount:x}-{process:x}-{number:x}{END}");
        Name::new(text.as_bytes()).unwrap_or_else(|| unreachable!("digits and letters are a name"))
    }

    /// Returns true if the session of the mark goes on.
    #[must_use]
    pub fn is_of(&self, dir: &Dir) -> bool {
        dir.session() == Some(self.session)
    }

    /// Returns the time since which files of the folder's tree may lack bytes: the time of the mark, if its session is over.
    pub async fn doubts_since(&self, dir: &Dir, folder: u64) -> Option<Time> {
        if self.is_of(dir) {
            return None;
        }
        let found = dir.stat_entry(&self.name(folder), false).await.ok()?;
        // chown(1) sets the time of the last change, touch(1) the other one.
        Some(found.changed.min(found.times.modified))
    }

    /// Returns true if the run of the mark has ended; `None` if the mark can't be opened, because it is another user's.
    pub async fn is_over(&self, dir: &Dir, folder: u64) -> Option<bool> {
        let file = dir.open(&self.name(folder), OpenHow::read()).await.ok()?;
        // Shared: another run may ask at the same time.
        Some(file.try_lock_shared().unwrap_or(true))
    }

    /// Locks a new mark of this run; `None` if another run has removed it, or is about to, because it was not locked yet.
    async fn hold(self, file: File, dir: &Dir, folder: u64) -> Option<OwnRunMark> {
        // A run that only looks at it is done in a moment.
        let mut is_locked = false;
        for _ in 0..ATTEMPTS {
            is_locked = file.try_lock() != Ok(false);
            if is_locked {
                break;
            }
            std::thread::yield_now();
        }
        if !is_locked {
            dir.unlink(&self.name(folder)).await.ok();
            return None;
        }
        let is_there = file.stat().await.is_ok_and(|found| found.links > 0);
        is_there.then_some(OwnRunMark { mark: self, _file: file })
    }

    /// Removes the mark, unless its run is at work after all: it may have been seen before it was locked.
    pub(crate) async fn remove(&self, dir: &Dir, folder: u64) {
        let Ok(file) = dir.open(&self.name(folder), OpenHow::read()).await else { return };
        // Held until the name is gone: its run does not take the mark for its own meanwhile.
        let is_over = file.try_lock_shared().unwrap_or(true);
        // Without a link, the name may be that of a later process with the same number.
        if is_over && file.stat().await.is_ok_and(|found| found.links > 0) {
            dir.unlink(&self.name(folder)).await.ok();
        }
    }
}

/// A mark of this run, which is locked.
#[derive(Debug)]
pub struct OwnRunMark {
    mark: RunMark,
    /// Holds the lock.
    _file: File,
}

impl OwnRunMark {
    /// Marks a folder; `None` if that is impossible.
    pub(crate) async fn make(dir: &Dir, folder: u64) -> Option<Self> {
        Self::make_beside(dir, folder, async |_| {}).await
    }

    /// Marks a folder. `meanwhile` runs between making a mark and locking it, as another run may.
    async fn make_beside(dir: &Dir, folder: u64, mut meanwhile: impl AsyncFnMut(&RunMark)) -> Option<Self> {
        let session = dir.session().filter(|_| is_marked(dir))?;
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mark = RunMark { session, process: std::process::id(), number };
            match protect(dir.open(&mark.name(folder), OpenHow::create(PRIVATE))).await {
                Ok(file) => {
                    meanwhile(&mark).await;
                    if let Some(own) = mark.hold(file, dir, folder).await {
                        return Some(own);
                    }
                }
                Err(error) if error.is(ferry_io::Errno::EXIST) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Removes the mark.
    pub(crate) async fn remove(self, dir: &Dir, folder: u64) {
        dir.unlink(&self.mark.name(folder)).await.ok();
    }
}

#[cfg(test)]
mod tests;

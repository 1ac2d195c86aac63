//! Comparing two trees: what is checked, and the two ways to do it.
//!
//! [`trees`] compares what is on disk, in parallel, byte for byte and in bounded memory: `ferry verify`.
//! [`snapshots`] compares what [`crate::capture`] read: tests. Both report the same differences (guard:
//! `both_ways_agree` in tests/it), but for content, where only the first knows the offset.
//!
//! What is missing, extra, or of another type is reported once; what lies beneath is not looked at.
//! Of files that differ in size, the content is not compared: it differs.
//! Limits: holes are believed where both sides claim one (as by ZFS 2.2.0, which lied); a hard-linked file
//! is read once a name. Times of creation are never compared, as nothing can set them. Times of access are not either:
//! making and checking a copy reads the source, which changes them (of links by any user, of files unless the reader
//! is their owner or root), so that a comparison would accuse copies of what it did itself. Who has read nothing yet
//! finds them in [`crate::attributes::Attributes`], taken before anything of the entry is read.

mod content;
mod difference;
mod entry;
mod facts;
mod holes;
mod links;
mod snapshots;
mod walk;

pub use difference::{Difference, Side, What};
pub use snapshots::snapshots;

use crate::error::Error;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What is done about holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holes {
    /// Nothing.
    Ignore,
    /// A target is different if data fills its source's holes and it occupies clearly more for it.
    Kept,
    /// As `Kept`, and the other way round too: data of zeros may not have become a hole.
    Same,
}

/// What is compared. Existence, type, link target and device number always are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Sizes of files.
    pub size: bool,
    /// Bytes of files.
    pub content: bool,
    /// Permissions, setuid, setgid and sticky bits (not of symbolic links, which have none).
    pub mode: bool,
    /// User and group.
    pub owner: bool,
    /// Times of the last change, to the nanosecond.
    pub mtime: bool,
    /// Extended attributes that are not ACLs.
    pub xattrs: bool,
    /// Access and default ACLs.
    pub acls: bool,
    /// Which names are the same file.
    pub links: bool,
    /// Holes of files.
    pub holes: Holes,
    /// Attributes that security modules compute from a file's place or content (SELinux, IMA, EVM); part of `xattrs`.
    pub labels: bool,
    /// How many threads work; fewer are used if the limit of open files demands it. At least one is.
    pub threads: usize,
}

impl Options {
    /// Everything that `cp -a` keeps.
    #[must_use]
    pub fn all() -> Self {
        Self {
            size: true,
            content: true,
            mode: true,
            owner: true,
            mtime: true,
            xattrs: true,
            acls: true,
            links: true,
            holes: Holes::Kept,
            labels: false,
            threads: default_threads(),
        }
    }

    /// Everything that plain `cp -r` keeps: names, types, bytes.
    #[must_use]
    pub fn plain() -> Self {
        let metadata = Self { mode: false, owner: false, mtime: false, xattrs: false, ..Self::all() };
        Self { acls: false, links: false, holes: Holes::Ignore, ..metadata }
    }
}

/// As many as there are processors, and eight at least: most wait for a disk.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(8, |count| count.get().max(8))
}

/// Whether a security module, and no user, decides on this attribute.
pub(crate) fn is_label(name: &[u8]) -> bool {
    matches!(name, b"security.selinux" | b"security.ima" | b"security.evm" | b"security.SMACK64")
}

/// How far a comparison is; may be read, and stopped, from any thread while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    entries: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    differences: AtomicU64,
    shared: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Nothing done yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the comparison to end soon; what it has found until then it has reported.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// What has been done so far.
    #[must_use]
    pub fn so_far(&self) -> Summary {
        Summary {
            entries: self.entries.load(Relaxed),
            files: self.files.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            differences: self.differences.load(Relaxed),
            shared: self.shared.load(Relaxed),
            stopped: self.is_stopped(),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
}

/// What a comparison did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Entries looked at on both sides, the roots among them.
    pub entries: u64,
    /// Regular files whose content was compared.
    pub files: u64,
    /// Bytes read and compared, once for both sides; holes are not read.
    pub bytes: u64,
    /// Differences reported.
    pub differences: u64,
    /// Entries that are one file on both sides, so that comparing them proves nothing.
    pub shared: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// Is told each difference as it is found, from any of the threads.
pub type Observer<'a> = dyn Fn(Difference) + Sync + 'a;

/// Compares the trees (or single entries) at `source` and `target` on disk. A last name that is a symbolic
/// link is compared as one; with a slash behind it, it is followed.
///
/// Differences come in no order, but each run finds the same ones. What can't be read is a difference too.
/// Memory: the names of one directory a thread, the queued subdirectories, and the names of those
/// hard-linked files whose other names have not been seen yet.
///
/// # Errors
/// If one of the two does not exist or can't be looked at.
pub fn trees(
    source: &Path,
    target: &Path,
    options: &Options,
    progress: &Progress,
    observer: &Observer<'_>,
) -> Result<Summary, Error> {
    walk::run(source, target, options, progress, observer)?;
    Ok(progress.so_far())
}

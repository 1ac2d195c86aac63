//! Small files of a folder, read by the request that lists it.
//!
//! A cold folder then costs one hand-over to the pool: the thread that has listed it opens its first small files, starts
//! all of their reads, and waits for them afterwards. The files stay with the folder's descriptor until they are loaded,
//! which takes no system call then. Files that are not plain, and those past [`BYTES`], are left to their own requests.
//! Only the pool preloads: a worker that lists a folder itself has found it in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::entry::{FileKind, Stat, Xattr};
use crate::name::Name;

/// Bytes of the files that are preloaded of a folder.
pub(crate) const BYTES: u64 = 64 * 1024;
/// Number of files that are preloaded of a folder.
pub(crate) const FILES: usize = 64;

/// The files that the request which lists a folder reads. They are then loaded as they were at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preload {
    /// Set if extended attributes are read.
    pub xattrs: bool,
    /// Set if files with several names are left out.
    pub alone: bool,
    /// Number of bytes of the largest file.
    pub largest: u64,
    /// Number of files that are open at once.
    pub at_once: usize,
}

impl Preload {
    /// Returns the size of a file that may be preloaded, if it is at most `room`.
    pub(crate) fn size_of(&self, stat: &Stat, room: u64) -> Option<usize> {
        let is_left = self.alone && stat.links > 1;
        let is_plain = stat.kind == FileKind::Regular && !stat.may_have_holes() && !is_left;
        let fits = stat.size > 0 && stat.size <= room.min(self.largest);
        if is_plain && fits { usize::try_from(stat.size).ok() } else { None }
    }
}

/// A file that was read before it was asked for.
#[derive(Debug)]
pub(crate) struct Preloaded {
    pub(crate) name: Name,
    pub(crate) stat: Stat,
    /// Extended attributes, if they were wanted.
    pub(crate) xattrs: Option<Vec<Xattr>>,
    pub(crate) bytes: Vec<u8>,
}

/// Preloaded files of an open folder.
#[derive(Debug, Default)]
pub(crate) struct Shelf(OnceLock<Mutex<VecDeque<Preloaded>>>);

impl Shelf {
    pub(crate) fn fill(&self, files: Vec<Preloaded>) {
        if !files.is_empty() {
            // A folder is listed once by the request that opens it.
            self.0.set(Mutex::new(files.into())).ok();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files().is_none_or(|files| files.is_empty())
    }

    /// Takes a file from the shelf.
    pub(crate) fn take(&self, name: &Name) -> Option<Preloaded> {
        let mut files = self.files()?;
        let at = files.iter().position(|file| file.name == *name)?;
        files.remove(at)
    }

    fn files(&self) -> Option<MutexGuard<'_, VecDeque<Preloaded>>> {
        Some(self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

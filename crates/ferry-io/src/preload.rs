//! Small files of a folder, read by the request that lists it.
//!
//! A cold folder then costs one hand-over to the pool: the thread that has listed it opens its first small files, several
//! at once, starts their reads, and then waits for them. The files stay with the folder's descriptor until they are loaded,
//! which takes no system call then. Files that are not plain, and those past [`BYTES`], are left to their own requests.
//! Only the pool preloads, so a worker is not kept from its other fibers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::entry::{Stat, Xattr};
use crate::name::Name;

/// Bytes of the files, and of their extended attributes, that are preloaded of a folder.
pub(crate) const BYTES: u64 = 64 * 1024;
/// Number of files that are preloaded of a folder.
pub(crate) const FILES: usize = 64;
/// Number of files in a row that are opened in vain, after which no more are.
pub(crate) const IN_VAIN: usize = 4;

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
        let fits = stat.size > 0 && stat.size <= room.min(self.largest);
        if stat.is_read(self.alone) && fits { usize::try_from(stat.size).ok() } else { None }
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

impl Preloaded {
    /// Bytes that it takes of [`BYTES`].
    pub(crate) fn bytes(&self) -> u64 {
        let xattrs: usize = self.xattrs.iter().flatten().map(|(_, value)| value.len()).sum();
        (self.bytes.len() + xattrs) as u64
    }
}

/// Preloaded files of an open folder.
#[derive(Debug, Default)]
pub(crate) struct Shelf(OnceLock<Box<Mutex<VecDeque<Preloaded>>>>);

impl Shelf {
    pub(crate) fn fill(&self, files: Vec<Preloaded>) {
        if !files.is_empty() {
            // A folder is listed once by the request that opens it.
            self.0.set(Box::new(Mutex::new(files.into()))).ok();
        }
    }

    pub(crate) fn has(&self, name: &Name) -> bool {
        self.files().is_some_and(|files| files.iter().any(|file| file.name == *name))
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

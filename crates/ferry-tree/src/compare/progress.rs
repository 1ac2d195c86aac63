//! Progress of a comparison, and its totals.

use super::difference::Difference;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counters of a running comparison. Any thread may read them or stop the comparison.
#[derive(Debug, Default)]
pub struct Progress {
    pub(super) entries: AtomicU64,
    pub(super) directories: AtomicU64,
    pub(super) files: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) differences: AtomicU64,
    pub(super) shared: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Creates counters of zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the comparison soon. Differences found until then have been reported.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Returns the current totals.
    #[must_use]
    pub fn so_far(&self) -> Summary {
        Summary {
            entries: self.entries.load(Relaxed),
            directories: self.directories.load(Relaxed),
            files: self.files.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            differences: self.differences.load(Relaxed),
            shared: self.shared.load(Relaxed),
            stopped: self.is_stopped(),
        }
    }

    /// Adds what another process has compared.
    pub fn add(&self, more: &Summary) {
        self.entries.fetch_add(more.entries, Relaxed);
        self.directories.fetch_add(more.directories, Relaxed);
        self.files.fetch_add(more.files, Relaxed);
        self.bytes.fetch_add(more.bytes, Relaxed);
        self.differences.fetch_add(more.differences, Relaxed);
        self.shared.fetch_add(more.shared, Relaxed);
    }

    /// Returns true once the comparison is to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
}

/// Totals of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Entries compared, including the roots.
    pub entries: u64,
    /// Directories among these entries.
    pub directories: u64,
    /// Regular files whose content was compared.
    pub files: u64,
    /// Bytes read and compared, counted once for both sides; holes are not read.
    pub bytes: u64,
    /// Differences reported.
    pub differences: u64,
    /// Entries that are the same file on both sides, so that comparing them proves nothing.
    pub shared: u64,
    /// True if the comparison was stopped before its end.
    pub stopped: bool,
}

/// Receives each difference as it is found, from any thread.
pub type Observer<'a> = dyn Fn(Difference) + Sync + 'a;

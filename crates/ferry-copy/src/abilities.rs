//! Abilities of two filesystems with each other's files, learned from the kernel's answers.
//!
//! An answer holds for its pair of devices alone. A file that refuses (EINVAL, as where copy-on-write is switched off
//! for it) says little of the others: only many such answers in a row, and no success, end the tries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use ferry_io::{Errno, Error, File, Tried, Way, Ways};

use crate::mutex::lock;

/// Refusals in a row after which a filesystem counts as unable to share extents.
const MOST_REFUSALS: u8 = 16;

/// Devices of a source and of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct DevicePair {
    pub(crate) source: u64,
    pub(crate) target: u64,
}

/// Abilities of one pair of filesystems.
#[derive(Default)]
pub(crate) struct Abilities {
    pub(crate) devices: DevicePair,
    has_cloned: AtomicBool,
    /// Refusals so far; from [`MOST_REFUSALS`] on, sharing is not tried.
    refusals: AtomicU8,
    /// Set if sharing the extents of a small file is faster than writing it.
    clones_small: AtomicBool,
    lacks_offload: AtomicBool,
    lacks_unnamed: AtomicBool,
    closes_surely: AtomicBool,
    hides_removed: AtomicBool,
    /// Ways to move the bytes of large files.
    pub(crate) ways: Arc<Ways>,
    /// Those where the kernel may not copy, or refuses.
    pub(crate) buffered: Buffered,
    /// Set if the source's filesystem is a local one.
    is_source_local: OnceLock<bool>,
}

/// Ways to read and write the bytes of large files.
pub(crate) struct Buffered {
    /// For bytes that are in the page cache.
    pub(crate) cached: Arc<Ways>,
    /// For others.
    pub(crate) cold: Arc<Ways>,
}

impl Default for Buffered {
    fn default() -> Self {
        Self { cached: Arc::new(Ways::buffered()), cold: Arc::new(Ways::only(Way::Buffered256)) }
    }
}

/// Local filesystems (statfs(2)): ext4, XFS, btrfs, tmpfs and F2FS. Their close(2) does nothing that can fail, and a
/// removed file keeps no link. They keep each owner and mode.
const LOCAL: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010];

impl Abilities {
    /// Notes the magic number of the target's filesystem.
    pub(crate) fn set_target(&self, magic: Option<u64>) {
        let is_local = magic.is_some_and(|magic| LOCAL.contains(&magic));
        self.closes_surely.store(is_local, Ordering::Relaxed);
        self.hides_removed.store(magic.is_some() && !is_local, Ordering::Relaxed);
    }

    /// Returns true if a removed file may keep a link while it is open, by a hidden name, as over a network.
    pub(crate) fn hides_removed(&self) -> bool {
        self.hides_removed.load(Ordering::Relaxed)
    }

    /// Returns true if the target's filesystem is a local one that keeps each owner and mode.
    pub(crate) fn is_local(&self) -> bool {
        self.closes_surely.load(Ordering::Relaxed)
    }

    /// Returns true if a large file may move by any of the ways. A file of a server or a daemon may not be mapped: its
    /// pages may be older than what a read returns.
    pub(crate) fn may_choose(&self, source: &File) -> bool {
        let is_local = |magic| LOCAL.contains(&magic);
        self.is_local()
            && *self.is_source_local.get_or_init(|| source.filesystem_magic().is_some_and(is_local))
    }

    /// Returns true if closing a target may report lost bytes, as over a network.
    pub(crate) fn close_may_fail(&self) -> bool {
        !self.is_local()
    }

    /// Returns true if sharing extents is worth a try.
    pub(crate) fn may_clone(&self) -> bool {
        self.refusals.load(Ordering::Relaxed) < MOST_REFUSALS
    }

    /// Returns true if cloning small files is faster than reading them.
    pub(crate) fn clones_small(&self) -> bool {
        self.clones_small.load(Ordering::Relaxed) && self.may_clone()
    }

    pub(crate) fn set_clones_small(&self, clones_small: bool) {
        self.clones_small.store(clones_small, Ordering::Relaxed);
    }

    /// Returns true if a file has been cloned: the next will seldom be refused.
    pub(crate) fn has_cloned(&self) -> bool {
        self.has_cloned.load(Ordering::Relaxed)
    }

    pub(crate) fn note_clone(&self) {
        self.has_cloned.store(true, Ordering::Relaxed);
    }

    /// Notes that a file's extents could not be shared.
    pub(crate) fn note_refused_clone(&self, error: &Error) {
        if self.has_cloned() {
            return;
        }
        let never = [Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS, Errno::XDEV];
        let so_far = self.refusals.load(Ordering::Relaxed);
        let is_of_all = never.iter().any(|&errno| error.is(errno));
        let now = if is_of_all { MOST_REFUSALS } else { so_far.saturating_add(1) };
        self.refusals.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns true if copy_file_range(2) is worth a try.
    pub(crate) fn may_offload(&self) -> bool {
        !self.lacks_offload.load(Ordering::Relaxed)
    }

    /// Returns true if the target's filesystem may support unnamed files.
    pub(crate) fn may_be_unnamed(&self) -> bool {
        !self.lacks_unnamed.load(Ordering::Relaxed)
    }

    pub(crate) fn note_no_unnamed(&self) {
        self.lacks_unnamed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn note_refused_offload(&self, error: &Error) {
        let never = [Errno::NOSYS, Errno::XDEV, Errno::OPNOTSUPP];
        if never.iter().any(|&errno| error.is(errno)) {
            self.lacks_offload.store(true, Ordering::Relaxed);
        }
    }
}

/// Abilities of all pairs of filesystems met so far.
#[derive(Default)]
pub(crate) struct Known {
    pairs: Mutex<HashMap<DevicePair, Arc<Abilities>>>,
}

impl Known {
    /// Returns the abilities of a pair of devices, all hopeful at first.
    pub(crate) fn of(&self, devices: DevicePair) -> Arc<Abilities> {
        let mut pairs = lock(&self.pairs);
        Arc::clone(
            pairs.entry(devices).or_insert_with(|| Arc::new(Abilities { devices, ..Abilities::default() })),
        )
    }

    /// Returns the ways that moved bytes, for each set of ways that were compared between two filesystems.
    pub(crate) fn ways(&self) -> Vec<Vec<Tried>> {
        let pairs = lock(&self.pairs);
        let tried = pairs.values().flat_map(|known| [known.ways.tried(), known.buffered.cached.tried()]);
        tried.filter(|tried| !tried.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests;

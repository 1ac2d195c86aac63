//! The bounds of one direct file's cache.

use rustix::io::Errno;

use crate::error::{Error, Operation, Result};

/// Requests that are joined at most when a file is made longer: one at a time is, and the kernel splits it.
pub(super) const EXTENDED_AT_ONCE: usize = 8;
/// The most blocks that one request moves (IOV_MAX of limits.h).
const MOST_PARTS: usize = 1024;

/// What the cache of one [`crate::DirectFile`] may use. [`DirectFile::open_direct`](crate::Io::open_direct) refuses
/// what is outside the limits given here, with EINVAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectOptions {
    /// Bytes a block of the cache: a power of two, 4 KiB to 1 MiB.
    pub block_bytes: usize,
    /// Blocks in all, 8 to 1,048,576: the memory that the cache takes at most. Three quarters may be dirty.
    pub blocks: usize,
    /// Blocks that one request moves at most, 1 to 128, and no more than a quarter of all.
    pub request_blocks: usize,
    /// Blocks that are read ahead of one reader at most, up to a quarter of all; none: nothing is.
    pub ahead_blocks: usize,
    /// Requests in flight at most, 1 to 64.
    pub in_flight: usize,
}

impl Default for DirectOptions {
    /// 32 MiB in blocks of 16 KiB; requests of 1 MiB, 16 in flight; up to 4 MiB read ahead.
    fn default() -> Self {
        Self { block_bytes: 16 << 10, blocks: 2048, request_blocks: 64, ahead_blocks: 256, in_flight: 16 }
    }
}

impl DirectOptions {
    /// The options, if they are within their limits.
    pub(super) fn checked(self) -> Result<Self> {
        let is_allowed = self.block_bytes.is_power_of_two()
            && (4 << 10..=1 << 20).contains(&self.block_bytes)
            && (8..=1 << 20).contains(&self.blocks)
            && (1..=MOST_PARTS / EXTENDED_AT_ONCE).contains(&self.request_blocks)
            && self.request_blocks <= self.blocks / 4
            && self.ahead_blocks <= self.blocks / 4
            && (1..=64).contains(&self.in_flight);
        if is_allowed { Ok(self) } else { Err(Error::errno(Operation::Open, Errno::INVAL)) }
    }

    /// Blocks that are being written when a writer waits for some of them.
    pub(super) fn most_behind(self) -> usize {
        (self.blocks / 8).clamp(self.request_blocks * 2, self.request_blocks * 4)
    }

    /// Blocks that may wait for being written.
    pub(super) fn most_dirty(self) -> usize {
        self.blocks / 4 * 3
    }
}

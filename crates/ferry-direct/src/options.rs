//! The bounds of one direct file's cache.

use ferry_io::Errno;

use ferry_io::{Error, Operation, Result};

/// Factor by which the one request that makes a file grow is larger than others.
pub(crate) const EXTENDED_AT_ONCE: usize = 8;
/// Maximum number of blocks in one call (IOV_MAX of limits.h).
const MOST_PARTS: usize = 1024;

/// Bounds of one [`crate::DirectFile`]'s cache. [`DirectFile::open`](crate::DirectFile::open) fails with EINVAL for
/// values outside the limits given here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectOptions {
    /// Size of a block in bytes: a power of two, 4 KiB to 1 MiB.
    pub block_bytes: usize,
    /// Number of blocks, 8 to 1,048,576. Three quarters of them may be dirty.
    pub blocks: usize,
    /// Maximum number of blocks in one request: 1 to 128, and a quarter of all at most.
    pub request_blocks: usize,
    /// Maximum number of blocks read ahead of one reader: a quarter of all at most; 0 switches read-ahead off.
    pub ahead_blocks: usize,
    /// Maximum number of requests in flight, 1 to 64.
    pub in_flight: usize,
}

impl Default for DirectOptions {
    /// 32 MiB in blocks of 16 KiB; requests of 1 MiB, 16 in flight; up to 4 MiB read ahead.
    fn default() -> Self {
        Self { block_bytes: 16 << 10, blocks: 2048, request_blocks: 64, ahead_blocks: 256, in_flight: 16 }
    }
}

impl DirectOptions {
    /// Returns the options if they are within their limits, else EINVAL.
    pub(crate) fn checked(self) -> Result<Self> {
        let is_allowed = self.block_bytes.is_power_of_two()
            && (4 << 10..=1 << 20).contains(&self.block_bytes)
            && (8..=1 << 20).contains(&self.blocks)
            && (1..=MOST_PARTS / EXTENDED_AT_ONCE).contains(&self.request_blocks)
            && self.request_blocks <= self.blocks / 4
            && self.ahead_blocks <= self.blocks / 4
            && (1..=64).contains(&self.in_flight);
        if is_allowed { Ok(self) } else { Err(Error::errno(Operation::Open, Errno::INVAL)) }
    }

    /// Number of blocks being written at which a writer waits.
    pub(crate) fn most_behind(self) -> usize {
        (self.blocks / 8).clamp(self.request_blocks * 2, self.request_blocks * 4)
    }

    /// Maximum number of blocks dirty or being written.
    pub(crate) fn most_dirty(self) -> usize {
        self.blocks / 4 * 3
    }
}

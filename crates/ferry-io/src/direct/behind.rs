//! What is written next: dirty blocks that follow one another, joined to one request.
//!
//! What only changes bytes that the file has goes in any order, several requests at once. What makes the file longer goes
//! from its end upwards, one request at a time, though a larger one: so whenever the process is killed, no byte between the old end
//! and the new one is a zero that nobody wrote (guard: `a_killed_writer_leaves_what_was_written_or_what_was_there`).

use std::ops::Range;

use super::cache::{Cache, Dirty};
use super::options::{DirectOptions, EXTENDED_AT_ONCE};

/// Blocks to be written by one request, and which of their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) blocks: Range<u64>,
    /// Bytes of the file.
    pub(super) bytes: Range<u64>,
    /// Whether it makes the file longer.
    pub(super) extends: bool,
}

/// What is decided by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// Where the file ends, with what is in the cache.
    pub(super) size: u64,
    /// Where it ends on the device.
    pub(super) on_device: u64,
    /// What direct requests are rounded to.
    pub(super) unit: u64,
    /// Whether a request that makes it longer is on its way.
    pub(super) is_extending: bool,
}

impl Ends {
    /// The bytes to be written of a dirty block.
    fn bytes_of(self, index: u64, dirty: Dirty, block_bytes: u64) -> Range<u64> {
        let at = index * block_bytes;
        let (start, end) = (at + dirty.start as u64, at + dirty.end as u64);
        start - start % self.unit..end.next_multiple_of(self.unit).min(self.size)
    }
}

/// The next request from block `from` on, or from the first that is dirty, of what was written up to `last_write`.
pub(super) fn next(
    cache: &Cache,
    options: &DirectOptions,
    ends: Ends,
    from: u64,
    last_write: u64,
) -> Option<Run> {
    let block_bytes = options.block_bytes as u64;
    let bytes_of = |(index, dirty): (u64, Dirty)| ends.bytes_of(index, dirty, block_bytes);
    let extends = |found: &(u64, Dirty)| bytes_of(*found).end > ends.on_device;
    let is_ready =
        |found: &(u64, Dirty)| !extends(found) && !found.1.has_failed && found.1.since <= last_write;
    // The block in which the file ends on the device, and those above, may make it longer.
    let end = ends.on_device / block_bytes;
    let mut above = cache.dirty(from..end + 1).filter(is_ready);
    if let Some(first) = above.next().or_else(|| cache.dirty(0..from.min(end + 1)).find(is_ready)) {
        let next = |index: u64| {
            let found = (index, cache.dirty_part(index)?);
            (!extends(&found) && !found.1.has_failed).then_some(found)
        };
        return Some(join(first, next, bytes_of, options.request_blocks, false));
    }
    if ends.is_extending
        || !cache.dirty(end..u64::MAX).any(|found| extends(&found) && found.1.since <= last_write)
    {
        return None;
    }
    // What is written before the lowest would leave a hole if that failed.
    let lowest = cache.dirty(end..u64::MAX).find(extends).filter(|(_, dirty)| !dirty.has_failed)?;
    let next =
        |index: u64| cache.dirty_part(index).map(|dirty| (index, dirty)).filter(|next| !next.1.has_failed);
    Some(join(lowest, next, bytes_of, options.request_blocks * EXTENDED_AT_ONCE, true))
}

/// Joins the blocks that follow the first.
fn join(
    first: (u64, Dirty),
    next: impl Fn(u64) -> Option<(u64, Dirty)>,
    bytes_of: impl Fn((u64, Dirty)) -> Range<u64>,
    most: usize,
    extends: bool,
) -> Run {
    let mut run = Run { blocks: first.0..first.0 + 1, bytes: bytes_of(first), extends };
    while run.blocks.end - run.blocks.start < most as u64
        && let Some(found) = next(run.blocks.end)
    {
        run.bytes.end = bytes_of(found).end;
        run.blocks.end += 1;
    }
    run
}

#[cfg(test)]
mod tests;

//! Chooses the next request of writing behind: dirty blocks that follow one another, joined.
//!
//! Requests within the file's size on the device are made in any order, several at once. The file grows from its end
//! upwards, by one larger request at a time. So after a kill at any moment, no byte between the old end and the new one
//! is a zero that was never written (guard: `a_killed_writer_leaves_what_was_written_or_what_was_there`).

use std::ops::Range;

use crate::cache::{Cache, Dirty};
use crate::options::{DirectOptions, EXTENDED_AT_ONCE};

/// Neighbouring blocks that one request writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteRun {
    pub(crate) blocks: Range<u64>,
    /// Offsets in the file.
    pub(crate) bytes: Range<u64>,
    /// True if the file grows.
    pub(crate) extends: bool,
}

/// Sizes of the file, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// Size including blocks that are only in the cache.
    pub(crate) size: u64,
    /// Size on the device.
    pub(crate) on_device: u64,
    /// Unit of direct requests.
    pub(crate) unit: u64,
    /// True while a request that makes the file grow is in flight.
    pub(crate) is_extending: bool,
}

impl Ends {
    /// Offsets to be written for a dirty block.
    fn bytes_of(self, index: u64, dirty: Dirty, block_bytes: u64) -> Range<u64> {
        let at = index * block_bytes;
        let (start, end) = (at + dirty.start as u64, at + dirty.end as u64);
        start - start % self.unit..end.next_multiple_of(self.unit).min(self.size)
    }
}

/// Returns the next request for blocks written up to `last_write`, preferably from block `from` on.
pub(crate) fn next(
    cache: &Cache,
    options: &DirectOptions,
    ends: Ends,
    from: u64,
    last_write: u64,
) -> Option<WriteRun> {
    let block_bytes = options.block_bytes as u64;
    let bytes_of = |(index, dirty): (u64, Dirty)| ends.bytes_of(index, dirty, block_bytes);
    let extends = |found: &(u64, Dirty)| bytes_of(*found).end > ends.on_device;
    let is_ready =
        |found: &(u64, Dirty)| !extends(found) && !found.1.has_failed && found.1.since <= last_write;
    // Blocks from the end on the device upwards may make the file grow.
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
    // If the lowest block failed, writing a later one would leave a hole.
    let lowest = cache.dirty(end..u64::MAX).find(extends).filter(|(_, dirty)| !dirty.has_failed)?;
    let next =
        |index: u64| cache.dirty_part(index).map(|dirty| (index, dirty)).filter(|next| !next.1.has_failed);
    Some(join(lowest, next, bytes_of, options.request_blocks * EXTENDED_AT_ONCE, true))
}

/// Joins up to `most` blocks that follow the first.
fn join(
    first: (u64, Dirty),
    next: impl Fn(u64) -> Option<(u64, Dirty)>,
    bytes_of: impl Fn((u64, Dirty)) -> Range<u64>,
    most: usize,
    extends: bool,
) -> WriteRun {
    let mut run = WriteRun { blocks: first.0..first.0 + 1, bytes: bytes_of(first), extends };
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

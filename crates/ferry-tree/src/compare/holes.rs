//! When a copy has lost its source's holes.
//!
//! Two witnesses must agree, because each alone gives false alarms. `SEEK_DATA` must find data in the target
//! where the source has holes: `st_blocks` alone counts blocks preallocated by XFS, metadata and delayed
//! allocation. And `st_blocks` must show that it costs space: ZFS stores compressed zeros in next to nothing.
//! What the sparse side occupies is the less of `st_blocks` and its data, as blocks may be allocated behind its end.
//! Holes count by whole blocks of the coarser filesystem, and only from [`LEAST_BLOCKS`] on.
//!
//! Before it is said, whoever asked looks again at settled files ([`crate::extents::settle`]): XFS takes blocks
//! that it preallocated inside a file for data, while they are not written back or are cached.
//! Limit: blocks preallocated over a hole (fallocate) and never written are not seen.

use super::{Holes, Options, What};
use crate::attributes::Attributes;
use crate::describe::Extent;

/// From how many blocks of filled hole on it is a difference.
const LEAST_BLOCKS: u64 = 8;

/// One side's file.
pub(super) struct Layout<'a> {
    pub(super) attributes: &'a Attributes,
    pub(super) extents: &'a [Extent],
}

/// Whether there is room for a difference; if not, `SEEK_DATA` need not be asked. A file that occupies as much as it is
/// long may have holes nevertheless, with blocks allocated behind its end.
pub(super) fn possible(source: &Attributes, target: &Attributes, options: &Options) -> bool {
    let least = LEAST_BLOCKS * 4096;
    let room = |sparse: &Attributes, full: &Attributes| {
        let dense = sparse.allocated >= sparse.size;
        sparse.size >= least && (dense || full.allocated >= sparse.allocated.saturating_add(least / 2))
    };
    match options.holes {
        Holes::Ignore => false,
        Holes::Kept => room(source, target),
        Holes::Same => room(source, target) || room(target, source),
    }
}

/// Compares the holes of two files of the same size.
pub(super) fn compare(source: &Layout<'_>, target: &Layout<'_>, options: &Options) -> Option<What> {
    let differs = match options.holes {
        Holes::Ignore => false,
        Holes::Kept => lost(source, target),
        Holes::Same => lost(source, target) || lost(target, source),
    };
    let (source, target) = (source.attributes.allocated, target.attributes.allocated);
    differs.then_some(What::Holes { source, target })
}

/// Whether `full` has data in holes of `sparse`, and clearly occupies more for it.
fn lost(sparse: &Layout<'_>, full: &Layout<'_>) -> bool {
    let data = sparse.extents.iter().map(|extent| extent.size).fold(0, u64::saturating_add);
    let excess = full.attributes.allocated.saturating_sub(sparse.attributes.allocated.min(data));
    let block = sparse.attributes.block_bytes.max(full.attributes.block_bytes).max(4096);
    if excess == 0 {
        return false;
    }
    let filled = filled(sparse, full.extents, block);
    filled >= LEAST_BLOCKS * block && excess >= filled / 2
}

/// How many bytes of `sparse`'s holes, whole blocks only, are data in `extents`.
fn filled(sparse: &Layout<'_>, extents: &[Extent], block: u64) -> u64 {
    let mut filled = 0;
    let mut hole_start = 0_u64;
    let mut first = 0;
    let end = Extent { offset: sparse.attributes.size, size: 0 };
    for data in sparse.extents.iter().chain(std::iter::once(&end)) {
        let (start, end) = (hole_start.next_multiple_of(block), data.offset - data.offset % block);
        first += extents[first..].partition_point(|extent| extent.end() <= start);
        for extent in extents[first..].iter().take_while(|extent| extent.offset < end) {
            filled += extent.end().min(end).saturating_sub(extent.offset.max(start));
        }
        hole_start = data.end();
    }
    filled
}

#[cfg(test)]
mod tests;

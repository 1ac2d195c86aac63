//! Holes that a copy has lost.
//!
//! Two witnesses must agree, because each alone gives false alarms. `SEEK_DATA` must find data in the target where
//! the source has holes: `st_blocks` also counts metadata, delayed allocation and blocks preallocated by XFS. And
//! `st_blocks` must show that the data occupies space: ZFS stores compressed zeros almost for free. The sparse side
//! counts with the smaller of `st_blocks` and its data, because blocks may be allocated behind its end. Holes count
//! by whole blocks of the coarser filesystem, from [`LEAST_BLOCKS`] on.
//!
//! Before a difference is reported, the caller settles both files ([`crate::extents::settle`]) and compares again:
//! XFS reports preallocated blocks inside a file as data until they are written back and dropped from the cache.
//! Blocks preallocated over a hole (fallocate(2)) and never written go unnoticed.

use super::difference::Mismatch;
use super::options::{Holes, Options};
use crate::attributes::Attributes;
use crate::describe::Extent;

/// Minimum number of filled hole blocks that counts as a difference.
const LEAST_BLOCKS: u64 = 8;

pub(super) struct Layout<'a> {
    pub(super) attributes: &'a Attributes,
    pub(super) extents: &'a [Extent],
}

/// Returns false if no difference is possible, so that `SEEK_DATA` is not needed. A file that occupies its full
/// size may still have holes, with blocks allocated behind its end.
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

pub(super) fn compare(source: &Layout<'_>, target: &Layout<'_>, options: &Options) -> Option<Mismatch> {
    let differs = match options.holes {
        Holes::Ignore => false,
        Holes::Kept => lost(source, target),
        Holes::Same => lost(source, target) || lost(target, source),
    };
    let (source, target) = (source.attributes.allocated, target.attributes.allocated);
    differs.then_some(Mismatch::Holes { source, target })
}

/// Returns true if `full` has data in holes of `sparse` and occupies considerably more space for it.
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

/// Returns the number of bytes in whole-block holes of `sparse` that are data in `extents`.
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

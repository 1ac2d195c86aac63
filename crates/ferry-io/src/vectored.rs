//! Several blocks as one transfer: the part of each that is still to be moved, and their contents afterwards.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use crate::buffers::Block;

/// Maximum number of parts in one call (IOV_MAX of limits.h).
const MOST_PARTS: usize = 1024;

/// The remaining parts of blocks of these sizes after their first `skip` bytes, up to one call's maximum, each with its
/// block's index.
fn parts(sizes: impl Iterator<Item = usize>, skip: usize) -> Vec<(usize, Range<usize>)> {
    let mut skip = skip;
    let rest = |(index, size): (usize, usize)| {
        let start = skip.min(size);
        skip -= start;
        (index, start..size)
    };
    sizes.enumerate().map(rest).filter(|(_, part)| !part.is_empty()).take(MOST_PARTS).collect()
}

/// The memory to be filled, after the first `skip` bytes of all blocks.
pub(crate) fn to_fill(blocks: &mut [Block], skip: usize) -> Vec<IoSliceMut<'_>> {
    let mut parts = parts(blocks.iter().map(Block::capacity), skip).into_iter().peekable();
    let mut slices = Vec::new();
    for (index, block) in blocks.iter_mut().enumerate() {
        if let Some((_, part)) = parts.next_if(|(of, _)| *of == index) {
            slices.push(IoSliceMut::new(&mut block.as_mut_capacity()[part]));
        }
    }
    slices
}

/// The bytes to be written, after the first `skip` bytes of all blocks.
pub(crate) fn to_write(blocks: &[Block], skip: usize) -> Vec<IoSlice<'_>> {
    let parts = parts(blocks.iter().map(|block| block.as_slice().len()), skip);
    parts.into_iter().map(|(index, part)| IoSlice::new(&blocks[index].as_slice()[part])).collect()
}

/// Makes the first `size` bytes of all blocks their content.
pub(crate) fn set_filled(blocks: &mut [Block], size: usize) {
    let mut left = size;
    for block in blocks {
        let held = left.min(block.capacity());
        block.set_filled(held);
        left -= held;
    }
}

pub(crate) fn capacity(blocks: &[Block]) -> usize {
    blocks.iter().map(Block::capacity).sum()
}

pub(crate) fn size(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.as_slice().len()).sum()
}

#[cfg(test)]
mod tests;

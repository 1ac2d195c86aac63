//! The blocks of one direct file: which are here, which are on their way, and which the device does not have yet.
//!
//! Nothing here waits or calls the kernel. Invariant: each of the cache's blocks of memory is free, held by one entry, or
//! away with the request that moves it (guard: `every_block_is_free_held_or_away`). A block that is here is whole: bytes
//! beyond the file's end are zero.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::options::DirectOptions;
use super::policy::Policy;
use crate::buffers::Block;

/// A part of a block that the device does not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dirty {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The number of the write that made it dirty.
    pub(super) since: u64,
    /// Writing it failed; it is tried again when somebody asks for it.
    pub(super) has_failed: bool,
}

#[derive(Debug)]
enum Entry {
    Held { block: Block, dirty: Option<Dirty> },
    Reading,
    Writing(Dirty),
}

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Here,
    OnItsWay,
    Absent,
}

#[derive(Debug)]
pub(super) struct Cache {
    entries: HashMap<u64, Entry>,
    policy: Policy,
    /// The memory of all blocks.
    bytes: u64,
    free: Vec<Block>,
    /// Held and dirty.
    dirty: BTreeSet<u64>,
    writing: usize,
    most_dirty: usize,
    writes: u64,
    /// The block that the last write filled, if it did.
    last_whole: Option<u64>,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl Cache {
    pub(super) fn new(free: Vec<Block>, options: &DirectOptions) -> Self {
        Self {
            entries: HashMap::new(),
            policy: Policy::new(free.len()),
            bytes: (free.len() * options.block_bytes) as u64,
            free,
            dirty: BTreeSet::new(),
            writing: 0,
            most_dirty: options.most_dirty(),
            writes: 0,
            last_whole: None,
            hits: 0,
            misses: 0,
        }
    }

    pub(super) fn find(&self, index: u64) -> Where {
        match self.entries.get(&index) {
            Some(Entry::Held { .. }) => Where::Here,
            Some(Entry::Reading | Entry::Writing(_)) => Where::OnItsWay,
            None => Where::Absent,
        }
    }

    /// The bytes of a block that is here; `is_new_use` unless its reader only goes on within it.
    pub(super) fn read(&mut self, index: u64, part: Range<usize>, into: &mut [u8], is_new_use: bool) -> bool {
        let Some(Entry::Held { block, .. }) = self.entries.get(&index) else { return false };
        into.copy_from_slice(&block.as_slice()[part]);
        if is_new_use {
            self.policy.note_use(index);
        }
        true
    }

    /// Whether a write to a block would be one dirty block too many.
    pub(super) fn is_write_too_much(&self, index: u64) -> bool {
        let is_dirty = self.dirty.contains(&index);
        !is_dirty && self.dirty.len() + self.writing >= self.most_dirty
    }

    /// Changes a block; whether it was here. `is_new_use` unless it came for this, or its writer only goes on within it.
    pub(super) fn write(&mut self, index: u64, at: usize, bytes: &[u8], is_new_use: bool) -> bool {
        let Some(Entry::Held { block, dirty }) = self.entries.get_mut(&index) else { return false };
        let end = at + bytes.len();
        block.as_mut_capacity()[at..end].copy_from_slice(bytes);
        self.writes += 1;
        let known = dirty.get_or_insert(Dirty { start: at, end, since: self.writes, has_failed: false });
        (known.start, known.end) = (known.start.min(at), known.end.max(end));
        let is_whole = bytes.len() == block.capacity();
        let goes_on = self.last_whole.is_some_and(|last| last + 1 == index);
        self.last_whole = is_whole.then_some(index);
        if self.dirty.insert(index) {
            if is_whole && goes_on {
                self.policy.note_written(index);
            } else if is_new_use {
                self.policy.note_use(index);
            }
        }
        true
    }

    /// The number of the last write so far.
    pub(super) fn last_write(&self) -> u64 {
        self.writes
    }

    /// Memory for a block of a file of `size` bytes, taken from one that is clean if need be.
    pub(super) fn memory(&mut self, size: u64) -> Option<Block> {
        let entries = &self.entries;
        let is_clean = |key: u64| matches!(entries.get(&key), Some(Entry::Held { dirty: None, .. }));
        let passed = if size > self.bytes { self.policy.recycle(is_clean) } else { None };
        if passed.is_none()
            && let Some(block) = self.free.pop()
        {
            return Some(block);
        }
        let leaving = passed.or_else(|| self.policy.evict(is_clean))?;
        match self.entries.remove(&leaving) {
            Some(Entry::Held { block, .. }) => Some(block),
            Some(Entry::Reading | Entry::Writing(_)) | None => None,
        }
    }

    /// Takes back memory that was not needed.
    pub(super) fn give_back(&mut self, block: Block) {
        self.free.push(block);
    }

    /// Counts a read that found its block, or did not.
    pub(super) fn count(&mut self, is_hit: bool) {
        if is_hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }

    /// Puts a block of zeros in, with memory that was had for it.
    pub(super) fn add_zeros(&mut self, index: u64, mut block: Block) {
        block.as_mut_capacity().fill(0);
        self.add(index, block);
    }

    /// Puts a block in of which every byte is written before anyone else looks.
    pub(super) fn add(&mut self, index: u64, mut block: Block) {
        block.set_filled(block.capacity());
        self.entries.insert(index, Entry::Held { block, dirty: None });
        self.policy.insert(index, false);
    }

    /// A block is being read, into memory that was had for it.
    pub(super) fn expect(&mut self, index: u64, is_ahead: bool) {
        self.entries.insert(index, Entry::Reading);
        self.policy.insert(index, is_ahead);
    }

    /// Blocks have been read from `first` on. The first `whole` are what they should be, the others are not known.
    pub(super) fn arrive(&mut self, first: u64, whole: usize, blocks: Vec<Block>) {
        let mut unknown = false;
        for ((number, index), mut block) in (first..).enumerate().zip(blocks) {
            if number < whole {
                block.set_filled(block.capacity());
                self.entries.insert(index, Entry::Held { block, dirty: None });
            } else {
                unknown = true;
                self.entries.remove(&index);
                self.free.push(block);
            }
        }
        if unknown {
            self.forget_absent();
        }
    }

    fn forget_absent(&mut self) {
        let entries = &self.entries;
        self.policy.keep_only(|key| entries.contains_key(&key));
    }

    /// Dirty blocks of a range, lowest first.
    pub(super) fn dirty(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Dirty)> + Clone + '_ {
        let dirty = |&index: &u64| Some((index, self.dirty_part(index)?));
        // An empty range may end before it starts, which the set does not like.
        self.dirty.range(range.start.min(range.end)..range.end).filter_map(dirty)
    }

    /// What of a block that is here the device does not have.
    pub(super) fn dirty_part(&self, index: u64) -> Option<Dirty> {
        match self.entries.get(&index) {
            Some(Entry::Held { dirty, .. }) => *dirty,
            Some(Entry::Reading | Entry::Writing(_)) | None => None,
        }
    }

    pub(super) fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }

    /// Blocks that are being written.
    pub(super) fn writing(&self) -> usize {
        self.writing
    }

    /// Whether something that was written up to `last_write` is on its way to the device.
    pub(super) fn is_older_writing(&self, last_write: u64) -> bool {
        let is_older = |entry: &Entry| matches!(entry, Entry::Writing(dirty) if dirty.since <= last_write);
        self.writing > 0 && self.entries.values().any(is_older)
    }

    /// Whether something that was written up to `last_write` waits in a block, and has not failed.
    pub(super) fn is_older_dirty(&self, last_write: u64) -> bool {
        self.dirty(0..u64::MAX).any(|(_, dirty)| !dirty.has_failed && dirty.since <= last_write)
    }

    /// Takes dirty blocks that follow one another, to be written.
    pub(super) fn send(&mut self, run: Range<u64>) -> Vec<Block> {
        let mut sent = Vec::new();
        for index in run {
            let Some(Entry::Held { block, dirty: Some(dirty) }) = self.entries.remove(&index) else { break };
            self.entries.insert(index, Entry::Writing(dirty));
            self.dirty.remove(&index);
            self.writing += 1;
            sent.push(block);
        }
        sent
    }

    /// Blocks come back from being written. The first `written` are on the device, the others are not.
    pub(super) fn come_back(&mut self, first: u64, written: usize, blocks: Vec<Block>) {
        for ((number, index), mut block) in (first..).enumerate().zip(blocks) {
            block.set_filled(block.capacity());
            self.writing -= 1;
            let Some(Entry::Writing(dirty)) = self.entries.remove(&index) else { continue };
            let dirty = (number >= written).then_some(Dirty { has_failed: true, ..dirty });
            if dirty.is_some() {
                self.dirty.insert(index);
            }
            self.entries.insert(index, Entry::Held { block, dirty });
        }
    }

    /// What failed is to be tried again.
    pub(super) fn forgive(&mut self) {
        for index in &self.dirty {
            if let Some(Entry::Held { dirty: Some(dirty), .. }) = self.entries.get_mut(index) {
                dirty.has_failed = false;
            }
        }
    }

    /// Cuts off what is beyond `size`; nothing is on its way.
    pub(super) fn truncate(&mut self, size: u64, block_bytes: usize) {
        let last = size / block_bytes as u64;
        let within = usize::try_from(size % block_bytes as u64).unwrap_or_default();
        let end = if within == 0 { last } else { last + 1 };
        let gone: Vec<u64> = self.entries.keys().copied().filter(|&index| index >= end).collect();
        for index in gone {
            if let Some(Entry::Held { block, .. }) = self.entries.remove(&index) {
                self.free.push(block);
            }
            self.dirty.remove(&index);
        }
        self.forget_absent();
        if let Some(Entry::Held { block, dirty }) = self.entries.get_mut(&last) {
            block.as_mut_capacity()[within..].fill(0);
            *dirty = dirty.filter(|part| part.start < within);
            match dirty {
                Some(part) => part.end = part.end.min(within),
                None => drop(self.dirty.remove(&last)),
            }
        }
    }

    /// Bytes that the device does not have.
    pub(super) fn unwritten_bytes(&self) -> u64 {
        let bytes = |entry: &Entry| match entry {
            Entry::Held { dirty: Some(dirty), .. } | Entry::Writing(dirty) => {
                (dirty.end - dirty.start) as u64
            }
            Entry::Held { dirty: None, .. } | Entry::Reading => 0,
        };
        self.entries.values().map(bytes).sum()
    }

    /// Blocks of memory that are free, held and away.
    #[cfg(test)]
    pub(super) fn census(&self) -> (usize, usize, usize) {
        let held = self.entries.values().filter(|entry| matches!(entry, Entry::Held { .. })).count();
        (self.free.len(), held, self.entries.len() - held)
    }
}

#[cfg(test)]
mod tests;

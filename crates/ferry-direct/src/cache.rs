//! The blocks of one direct file: held, in flight or absent, clean or dirty.
//!
//! Nothing here waits or calls the kernel. Invariant: each of the cache's blocks of memory is free, held by one entry,
//! or owned by the request that moves it (guard: `every_block_is_free_held_or_away`). A held block is whole: bytes
//! beyond the file's end are zero.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use ferry_io::Block;

use crate::options::DirectOptions;
use crate::policy::Policy;

/// The dirty part of a block, in bytes of the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dirty {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Number of the write that made the block dirty.
    pub(crate) since: u64,
    /// Writing it failed; only a flush or a writer without room tries it again.
    pub(crate) has_failed: bool,
}

#[derive(Debug)]
enum Entry {
    Held { block: Block, dirty: Option<Dirty> },
    Reading,
    Writing(Dirty),
}

/// State of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockState {
    Held,
    /// Being read or written.
    InFlight,
    Absent,
}

#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<u64, Entry>,
    policy: Policy,
    /// Size of the memory of all blocks.
    bytes: u64,
    free: Vec<Block>,
    /// Indices of blocks that are held and dirty.
    dirty: BTreeSet<u64>,
    writing: usize,
    most_dirty: usize,
    writes: u64,
    /// Block that the last write filled, if it filled one.
    last_whole: Option<u64>,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

impl Cache {
    pub(crate) fn new(free: Vec<Block>, options: &DirectOptions) -> Self {
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

    pub(crate) fn find(&self, index: u64) -> BlockState {
        match self.entries.get(&index) {
            Some(Entry::Held { .. }) => BlockState::Held,
            Some(Entry::Reading | Entry::Writing(_)) => BlockState::InFlight,
            None => BlockState::Absent,
        }
    }

    /// Copies bytes out of a held block; returns false if it is not held. `is_new_use` is false for a reader that only
    /// goes on within the block.
    pub(crate) fn read(&mut self, index: u64, part: Range<usize>, into: &mut [u8], is_new_use: bool) -> bool {
        let Some(Entry::Held { block, .. }) = self.entries.get(&index) else { return false };
        into.copy_from_slice(&block.as_slice()[part]);
        if is_new_use {
            self.policy.note_use(index);
        }
        true
    }

    /// Returns true if a write to the block would exceed the bound of dirty blocks.
    pub(crate) fn is_write_too_much(&self, index: u64) -> bool {
        let is_dirty = self.dirty.contains(&index);
        !is_dirty && self.dirty.len() + self.writing >= self.most_dirty
    }

    /// Changes a held block; returns false if it is not held. `is_new_use` is false if the block came for this write,
    /// or the writer only goes on within it.
    pub(crate) fn write(&mut self, index: u64, at: usize, bytes: &[u8], is_new_use: bool) -> bool {
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

    /// Number of the last write so far.
    pub(crate) fn last_write(&self) -> u64 {
        self.writes
    }

    /// Returns memory for a block of a file of `size` bytes. Evicts a clean block if no memory is free.
    pub(crate) fn memory(&mut self, size: u64) -> Option<Block> {
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

    /// Takes back unused memory.
    pub(crate) fn give_back(&mut self, block: Block) {
        self.free.push(block);
    }

    /// Counts a read of a block.
    pub(crate) fn count(&mut self, is_hit: bool) {
        if is_hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }

    /// Adds a block of zeros.
    pub(crate) fn add_zeros(&mut self, index: u64, mut block: Block) {
        block.as_mut_capacity().fill(0);
        self.add(index, block);
    }

    /// Adds a block whose bytes the caller writes, all of them, before it gives way.
    pub(crate) fn add(&mut self, index: u64, mut block: Block) {
        block.set_filled(block.capacity());
        self.entries.insert(index, Entry::Held { block, dirty: None });
        self.policy.insert(index, false);
    }

    /// Marks a block as being read.
    pub(crate) fn expect(&mut self, index: u64, is_ahead: bool) {
        self.entries.insert(index, Entry::Reading);
        self.policy.insert(index, is_ahead);
    }

    /// Takes blocks from `first` on that were read. The first `whole` are held; the others could not be read.
    pub(crate) fn arrive(&mut self, first: u64, whole: usize, blocks: Vec<Block>) {
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

    /// Returns the dirty blocks of a range, lowest first.
    pub(crate) fn dirty(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Dirty)> + Clone + '_ {
        let dirty = |&index: &u64| Some((index, self.dirty_part(index)?));
        // `BTreeSet::range` panics if a range ends before it starts.
        self.dirty.range(range.start.min(range.end)..range.end).filter_map(dirty)
    }

    /// Returns the dirty part of a held block.
    pub(crate) fn dirty_part(&self, index: u64) -> Option<Dirty> {
        match self.entries.get(&index) {
            Some(Entry::Held { dirty, .. }) => *dirty,
            Some(Entry::Reading | Entry::Writing(_)) | None => None,
        }
    }

    pub(crate) fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }

    /// Number of blocks being written.
    pub(crate) fn writing(&self) -> usize {
        self.writing
    }

    /// Returns true if a block written up to `last_write` is being written to the device.
    pub(crate) fn is_older_writing(&self, last_write: u64) -> bool {
        let is_older = |entry: &Entry| matches!(entry, Entry::Writing(dirty) if dirty.since <= last_write);
        self.writing > 0 && self.entries.values().any(is_older)
    }

    /// Returns true if a block written up to `last_write` is dirty and has not failed.
    pub(crate) fn is_older_dirty(&self, last_write: u64) -> bool {
        self.dirty(0..u64::MAX).any(|(_, dirty)| !dirty.has_failed && dirty.since <= last_write)
    }

    /// Takes the memory of neighbouring dirty blocks, to be written.
    pub(crate) fn send(&mut self, run: Range<u64>) -> Vec<Block> {
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

    /// Takes blocks back from a write. The first `written` are on the device; the others have failed.
    pub(crate) fn come_back(&mut self, first: u64, written: usize, blocks: Vec<Block>) {
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

    /// Lets failed blocks be tried again.
    pub(crate) fn forgive(&mut self) {
        for index in &self.dirty {
            if let Some(Entry::Held { dirty: Some(dirty), .. }) = self.entries.get_mut(index) {
                dirty.has_failed = false;
            }
        }
    }

    /// Discards bytes beyond `size`. No request may be in flight.
    pub(crate) fn truncate(&mut self, size: u64, block_bytes: usize) {
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

    /// Number of dirty bytes.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        let bytes = |entry: &Entry| match entry {
            Entry::Held { dirty: Some(dirty), .. } | Entry::Writing(dirty) => {
                (dirty.end - dirty.start) as u64
            }
            Entry::Held { dirty: None, .. } | Entry::Reading => 0,
        };
        self.entries.values().map(bytes).sum()
    }

    /// Numbers of blocks that are free, held and in flight.
    #[cfg(test)]
    pub(crate) fn census(&self) -> (usize, usize, usize) {
        let held = self.entries.values().filter(|entry| matches!(entry, Entry::Held { .. })).count();
        (self.free.len(), held, self.entries.len() - held)
    }
}

#[cfg(test)]
mod tests;

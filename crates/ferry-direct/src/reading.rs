//! Reading a direct file through its cache, and reading ahead.

use std::ops::Range;

use ferry_io::{Block, Errno, Error, Operation, Result};

use crate::cache::BlockState;
use crate::file::{DirectFile, State};
use crate::requests::answer;

/// Number of requests that read-ahead leaves to waiting fibers.
const SPARED: usize = 2;
/// Maximum number of ranges that wait to be read ahead.
pub(crate) const MOST_WANTED: usize = 64;

impl DirectFile<'_> {
    /// Reads up to a block at `offset`, as [`ferry_io::File::read_at`] does.
    pub async fn read_at(&self, mut block: Block, offset: u64) -> (Block, Result<usize>) {
        let count = self.read_into(block.as_mut_capacity(), offset).await;
        block.set_filled(count.unwrap_or(0));
        (block, count)
    }

    /// Reads at `offset` until `into` is full or the file ends, and returns the number of bytes. It is also smaller if
    /// a later block can't be read.
    ///
    /// # Errors
    /// Those of pread(2) if no byte could be read; EINVAL beyond the largest offset.
    pub async fn read_into(&self, into: &mut [u8], offset: u64) -> Result<usize> {
        self.take_completions();
        let end = self.end_of(Operation::Read, offset, into.len())?.min(self.size());
        let noted = self.state.borrow_mut().streams.note(offset, end.saturating_sub(offset));
        let mut at = offset;
        let mut is_begun = false;
        while at < end.min(self.size()) {
            let part = self.part(at, end.min(self.size()));
            let done = usize::try_from(at - offset).unwrap_or_default();
            let index = at / self.block_bytes();
            let into = &mut into[done..done + part.len()];
            let is_new_use = !(noted.goes_on && at == offset && part.start > 0);
            let is_here = self.state.borrow_mut().cache.read(index, part.clone(), into, is_new_use);
            self.state.borrow_mut().cache.count(is_here);
            if is_here {
                at += part.len() as u64;
                continue;
            }
            let last = (end - 1) / self.block_bytes();
            let fetched = self.fetch(index..last + 1, || {
                if !std::mem::replace(&mut is_begun, true) {
                    self.read_ahead(&noted.ahead);
                }
            });
            match fetched.await {
                Ok(()) => {
                    let is_here = self.state.borrow_mut().cache.read(index, part.clone(), into, false);
                    at += if is_here { part.len() as u64 } else { 0 };
                }
                Err(error) if at == offset || error.is_cancelled() => return Err(error),
                Err(_later) => break,
            }
        }
        if is_begun {
            self.read_wanted();
        } else {
            self.read_ahead(&noted.ahead);
        }
        usize::try_from(at - offset).map_err(|_| Error::errno(Operation::Read, Errno::OVERFLOW))
    }

    /// Returns the offset of a transfer's end.
    pub(crate) fn end_of(&self, operation: Operation, offset: u64, size: usize) -> Result<u64> {
        let end = offset.checked_add(size as u64).filter(|&end| i64::try_from(end).is_ok());
        end.ok_or(Error::errno(operation, Errno::INVAL))
    }

    /// Returns the part of a block from offset `at` of the file to the block's end, or to `end` if that is nearer.
    pub(crate) fn part(&self, at: u64, end: u64) -> Range<usize> {
        let block_bytes = self.block_bytes();
        let start = at % block_bytes;
        let end = (end - at + start).min(block_bytes);
        let within = |offset: u64| usize::try_from(offset).unwrap_or(self.options.block_bytes);
        within(start)..within(end)
    }

    /// Brings the first block of a range into the cache, and begins to read those after it. Calls `meanwhile` once the
    /// request is in flight.
    pub(crate) async fn fetch(&self, range: Range<u64>, mut meanwhile: impl FnMut()) -> Result<()> {
        let index = range.start;
        loop {
            self.until(|| (!self.is_still.get()).then_some(())).await?;
            let found = self.state.borrow().cache.find(index);
            match found {
                BlockState::Held => return Ok(()),
                BlockState::InFlight => {
                    meanwhile();
                    let is_here =
                        || (self.state.borrow().cache.find(index) != BlockState::InFlight).then_some(());
                    self.until(is_here).await?;
                    continue;
                }
                BlockState::Absent => {}
            }
            if index * self.block_bytes() >= self.state.borrow().ends.on_device {
                // Beyond the end on the device.
                let block = self.memory().await?;
                let mut state = self.state.borrow_mut();
                if state.cache.find(index) == BlockState::Absent {
                    state.cache.add_zeros(index, block);
                } else {
                    state.cache.give_back(block);
                }
                continue;
            }
            self.until(|| (self.room() > 0 && !self.is_still.get()).then_some(())).await?;
            let mut blocks = vec![self.memory().await?];
            if self.state.borrow().cache.find(index) != BlockState::Absent
                || self.room() == 0
                || self.is_still.get()
            {
                blocks.into_iter().for_each(|block| self.state.borrow_mut().cache.give_back(block));
                continue;
            }
            let answer = answer();
            self.add_memory(&mut blocks, index, range.end);
            self.begin_read(index, blocks, Some(std::rc::Rc::clone(&answer)));
            meanwhile();
            let result = self.until(|| answer.take()).await?;
            // Perhaps only a later block failed.
            let is_here = self.state.borrow().cache.find(index) == BlockState::Held;
            return if is_here { Ok(()) } else { result };
        }
    }

    /// Adds memory for the absent blocks that follow, as far as some is free now.
    fn add_memory(&self, blocks: &mut Vec<Block>, first: u64, end: u64) {
        let mut state = self.state.borrow_mut();
        let end = end.min(state.ends.on_device.div_ceil(self.block_bytes()));
        while blocks.len() < self.options.request_blocks {
            let index = first + blocks.len() as u64;
            if index >= end || state.cache.find(index) != BlockState::Absent {
                return;
            }
            let Some(block) = state.memory() else { return };
            blocks.push(block);
        }
    }

    /// Returns memory for one block, as soon as some is free.
    pub(crate) async fn memory(&self) -> Result<Block> {
        self.until(|| self.state.borrow_mut().memory()).await
    }

    /// Notes predicted reads and begins them.
    fn read_ahead(&self, ranges: &[Range<u64>]) {
        self.state.borrow_mut().note_wanted(ranges, self.block_bytes());
        self.read_wanted();
    }

    /// Begins predicted reads, as far as requests may begin.
    fn read_wanted(&self) {
        while self.room() > SPARED.min(self.options.in_flight / 2) && !self.is_still.get() {
            let Some(mut range) = self.state.borrow_mut().wanted.pop_front() else { return };
            let mut blocks = Vec::new();
            self.add_memory(&mut blocks, range.start, range.end);
            let count = blocks.len() as u64;
            let first = range.start;
            range.start += count.max(1);
            if !range.is_empty() {
                self.state.borrow_mut().wanted.push_front(range);
            }
            if count > 0 {
                self.begin_read(first, blocks, None);
            }
        }
    }
}

impl State {
    /// Returns memory for one block if some is free now.
    pub(crate) fn memory(&mut self) -> Option<Block> {
        self.cache.memory(self.ends.size)
    }

    /// Remembers ranges to be read ahead; drops the oldest beyond [`MOST_WANTED`].
    pub(crate) fn note_wanted(&mut self, ranges: &[Range<u64>], block_bytes: u64) {
        let blocks = |range: &Range<u64>| range.start / block_bytes..range.end.div_ceil(block_bytes);
        self.wanted.extend(ranges.iter().map(blocks).filter(|blocks| !blocks.is_empty()));
        let beyond = self.wanted.len().saturating_sub(MOST_WANTED);
        self.wanted.drain(..beyond);
    }
}

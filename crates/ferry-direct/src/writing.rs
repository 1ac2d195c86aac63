//! Writing a direct file: into its cache, behind the writer to the device, and durably by a flush.

use std::cell::Cell;

use ferry_io::{Block, Errno, Error, Operation, Result, protect};

use crate::cache::BlockState;
use crate::failures::{Failure, Failures};
use crate::file::{DirectFile, State};
use crate::requests::answer;
use crate::waiters::Waiters;

/// Number of requests that writing behind leaves to waiting fibers.
const SPARED: usize = 2;
/// Number of the last write that any write is before.
const EVERYTHING: u64 = u64::MAX;

impl DirectFile<'_> {
    /// Writes all of the block's bytes at `offset`, as [`ferry_io::File::write_all_at`] does.
    pub async fn write_all_at(&self, block: Block, offset: u64) -> (Block, Result<()>) {
        let result = self.write_from(block.as_slice(), offset).await;
        (block, result)
    }

    /// Writes bytes at `offset` into the cache; [`Self::flush`] makes them durable.
    ///
    /// # Errors
    /// EBADF if the file was opened for reading; EINVAL beyond the largest offset; the error of reading the rest of a
    /// partly written block. If the cache is full of blocks that failed, one is tried again and its error is returned.
    /// Blocks before the one with the error are written.
    pub async fn write_from(&self, bytes: &[u8], offset: u64) -> Result<()> {
        if !self.is_writable {
            return Err(Error::errno(Operation::Write, Errno::BADF));
        }
        self.take_completions();
        let end = self.end_of(Operation::Write, offset, bytes.len())?;
        let mut left = bytes;
        let mut at = offset;
        let mut brought = None;
        let goes_on = std::mem::replace(&mut self.state.borrow_mut().written_to, end) == offset;
        while at < end {
            let part = self.part(at, end);
            let size = part.len();
            let index = at / self.block_bytes();
            self.until(|| (!self.is_still.get()).then_some(())).await?;
            if self.state.borrow().cache.is_write_too_much(index) {
                self.relieve(index).await?;
                continue;
            }
            self.until(|| (!self.is_far_behind()).then_some(())).await?;
            if self.state.borrow().cache.find(index) == BlockState::Absent {
                brought = Some(index);
            }
            if !self.make_ready(index, part.start, at + size as u64).await? {
                continue;
            }
            let (now, later) = left.split_at(size);
            let mut state = self.state.borrow_mut();
            let is_new_use = brought != Some(index) && !(goes_on && at == offset && part.start > 0);
            if state.cache.write(index, part.start, now, is_new_use) {
                at += size as u64;
                left = later;
                state.ends.size = state.ends.size.max(at);
                drop(state);
                self.write_behind(index, part.end == self.options.block_bytes);
            }
        }
        Ok(())
    }

    /// Brings a block into the cache, to be changed from its byte `start` up to offset `end` of the file. Returns false
    /// if it waited: the caller starts over, because the block may be gone again. A block that is overwritten whole is
    /// not read.
    async fn make_ready(&self, index: u64, start: usize, end: u64) -> Result<bool> {
        let found = self.state.borrow().cache.find(index);
        match found {
            BlockState::Held => return Ok(true),
            BlockState::InFlight => {
                let is_here =
                    || (self.state.borrow().cache.find(index) != BlockState::InFlight).then_some(());
                self.until(is_here).await?;
                return Ok(false);
            }
            BlockState::Absent => {}
        }
        let on_device = self.state.borrow().ends.on_device;
        let at = index * self.block_bytes();
        let is_whole = start == 0 && end >= on_device.min(at + self.block_bytes());
        if at < on_device && !is_whole {
            self.fetch(index..index + 1, || ()).await?;
            return Ok(false);
        }
        let taken = self.state.borrow_mut().memory();
        let Some(block) = taken else {
            let block = self.memory().await?;
            self.state.borrow_mut().cache.give_back(block);
            return Ok(false);
        };
        let mut state = self.state.borrow_mut();
        if start == 0 && end >= at + self.block_bytes() {
            state.cache.add(index, block);
        } else {
            state.cache.add_zeros(index, block);
        }
        Ok(true)
    }

    /// Begins to write the blocks behind a writer: each full request, and more if half of the bound is dirty.
    fn write_behind(&self, index: u64, is_whole: bool) {
        let request = self.options.request_blocks as u64;
        let is_end = is_whole && (index + 1).is_multiple_of(request);
        if is_end && self.room() > SPARED.min(self.options.in_flight / 2) {
            self.begin_write(index + 1 - request.min(index + 1), EVERYTHING, None);
        }
        let half = self.options.most_dirty() / 2;
        while self.state.borrow().cache.dirty_blocks() > half
            && self.room() > SPARED.min(self.options.in_flight / 2)
            && self.begin_write(index, EVERYTHING, None)
        {}
    }

    /// Returns true if so many blocks are being written that the writer should wait and refill memory that is still in
    /// the processor's cache. Not while the file grows: that is one large request, beside which its writer goes on.
    fn is_far_behind(&self) -> bool {
        let state = self.state.borrow();
        !state.ends.is_extending && state.cache.writing() >= self.options.most_behind()
    }

    /// Waits until the block `index` may become dirty.
    async fn relieve(&self, index: u64) -> Result<()> {
        let is_relieved = self
            .until(|| {
                while self.begin_write(0, EVERYTHING, None) {}
                let state = self.state.borrow();
                let is_stuck = state.cache.writing() == 0 && !self.is_still.get();
                match state.cache.is_write_too_much(index) {
                    false => Some(true),
                    true if is_stuck && !self.is_to_write(EVERYTHING) => Some(false),
                    true => None,
                }
            })
            .await?;
        if is_relieved {
            return Ok(());
        }
        // Every dirty block has failed, so this writer tries one again and reports the result.
        self.state.borrow_mut().cache.forgive();
        let answer = answer();
        if self.begin_write(0, EVERYTHING, Some(&answer)) {
            return self.until(|| answer.take()).await?;
        }
        Ok(())
    }

    /// Brings all earlier writes to the device and makes them durable (fdatasync(2)).
    ///
    /// # Errors
    /// Each request that failed since the last flush, once, except those that [`Self::write_from`] reported. Their
    /// blocks stay in the cache, and the next flush tries them again. If a request failed that makes the file grow, no
    /// later block was tried. After a failed sync the bytes are not written again: writes since the last successful
    /// flush may be lost in a power failure. If the scope is cancelled, that is the only error, and the next flush
    /// reports the others.
    pub async fn flush(&self) -> std::result::Result<(), Failures> {
        let of_no_bytes = |error: Error| Failure { error, offset: 0, size: 0 };
        self.state.borrow_mut().cache.forgive();
        let written = async {
            self.write_out().await?;
            while !self.lengthen().await? {
                self.write_out().await?;
            }
            self.channel.buffered.sync_data().await
        };
        match written.await {
            Err(error) if error.is_cancelled() => return Err(Failures::of(of_no_bytes(error))),
            Err(error) => self.state.borrow_mut().failures.add(of_no_bytes(error)),
            Ok(()) => self.forget_odd_end(),
        }
        let failures = std::mem::take(&mut self.state.borrow_mut().failures);
        if failures.count() == 0 { Ok(()) } else { Err(failures) }
    }

    /// Brings all writes so far to the device, except blocks that fail.
    async fn write_out(&self) -> Result<()> {
        let last_write = self.state.borrow().cache.last_write();
        self.until(|| {
            while self.begin_write(0, last_write, None) {}
            let is_to_write = self.is_to_write(last_write);
            let state = self.state.borrow();
            let is_left =
                state.cache.is_older_dirty(last_write) && (is_to_write || state.cache.writing() > 0);
            (!is_left && !state.cache.is_older_writing(last_write)).then_some(())
        })
        .await
    }

    /// Extends the file to the size given to [`Self::truncate`], once no dirty block reaches beyond its end. Returns
    /// false if one still does.
    async fn lengthen(&self) -> Result<bool> {
        let is_short = |state: &State| state.ends.on_device < state.promised;
        if !is_short(&self.state.borrow()) {
            return Ok(true);
        }
        let _still = self.hold_still().await?;
        let promised = {
            let state = self.state.borrow();
            let mut beyond = state.cache.dirty(state.ends.on_device / self.block_bytes()..u64::MAX);
            if !is_short(&state) || beyond.clone().any(|(_, dirty)| dirty.has_failed) {
                // The failure is reported, and tried again before the file is extended.
                return Ok(true);
            }
            if beyond.next().is_some() {
                return Ok(false);
            }
            state.promised
        };
        protect(self.channel.buffered.truncate(promised)).await?;
        self.state.borrow_mut().ends.on_device = promised;
        Ok(true)
    }

    /// Waits until no request is in flight. None begins until the guard is dropped.
    async fn hold_still(&self) -> Result<Still<'_>> {
        self.until(|| (!self.is_still.replace(true)).then_some(())).await?;
        let still = Still { is_still: &self.is_still, waiters: &self.waiters };
        self.until(|| self.is_quiet().then_some(())).await?;
        Ok(still)
    }

    /// Drops the page of the file's odd end from the page cache.
    fn forget_odd_end(&self) {
        let odd_end = self.state.borrow_mut().odd_end.take();
        if let Some(at) = odd_end {
            self.channel.buffered.forget_cached(at, self.channel.unit as u64);
        }
    }

    /// Flushes and closes the file.
    ///
    /// # Errors
    /// Those of [`Self::flush`]; bytes that could not be written are lost.
    pub async fn close(self) -> std::result::Result<(), Failures> {
        self.flush().await
    }

    /// Sets the size. Bytes beyond it are discarded, in the cache too; new bytes read as zero. On the device the file
    /// grows only with the next flush, after all earlier writes.
    ///
    /// # Errors
    /// Those of ftruncate(2), EINVAL if the file was opened for reading. If the file grows, the next flush reports
    /// them.
    pub async fn truncate(&self, size: u64) -> Result<()> {
        if !self.is_writable || i64::try_from(size).is_err() {
            return Err(Error::errno(Operation::Truncate, Errno::INVAL));
        }
        let _still = self.hold_still().await?;
        if size < self.state.borrow().ends.on_device {
            // Not cancellable: the size on the device must be known afterwards.
            protect(self.channel.buffered.truncate(size)).await?;
        }
        let mut state = self.state.borrow_mut();
        state.cache.truncate(size, self.options.block_bytes);
        state.ends.on_device = state.ends.on_device.min(size);
        (state.ends.size, state.promised) = (size, size);
        Ok(())
    }
}

/// No request begins while this guard is alive.
struct Still<'a> {
    is_still: &'a Cell<bool>,
    waiters: &'a Waiters,
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.is_still.set(false);
        self.waiters.wake_all();
    }
}

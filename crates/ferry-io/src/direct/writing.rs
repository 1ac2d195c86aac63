//! Writing to a direct file: into its cache, and behind the writer's back to the device; made durable when asked.

use std::cell::Cell;

use rustix::io::Errno;

use super::DirectFile;
use super::cache::Where;
use super::changed::Changed;
use super::failures::{Failure, Failures};
use super::requests::answer;
use crate::buffers::Block;
use crate::cancel;
use crate::descriptor::Descriptor;
use crate::error::{Error, Operation, Result};
use crate::sys;

/// Requests that writing behind leaves to those who wait.
const SPARED: usize = 2;
/// Of whatever was written so far, and will be.
const EVERYTHING: u64 = u64::MAX;

impl DirectFile<'_> {
    /// Writes all of the block's bytes at `offset`, as [`crate::File::write_all_at`] does.
    pub async fn write_all_at(&self, block: Block, offset: u64) -> (Block, Result<()>) {
        let result = self.write_from(block.as_slice(), offset).await;
        (block, result)
    }

    /// Writes bytes at `offset`. They are in the cache then, and for [`Self::flush`] to make durable.
    ///
    /// # Errors
    /// EBADF for a file that was opened for reading; EINVAL beyond the largest offset. What a block's other bytes could not
    /// be read with. If the cache is full of what could not be written, what came of trying it again. Blocks before the one
    /// with the error are written.
    pub async fn write_from(&self, bytes: &[u8], offset: u64) -> Result<()> {
        if !self.is_writable {
            return Err(Error::errno(Operation::Write, Errno::BADF));
        }
        self.take_landed();
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
            if self.state.borrow().cache.find(index) == Where::Absent {
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

    /// Brings a block into the cache to be changed from its byte `start` up to `end` of the file, if that is done without
    /// waiting; if not, waits, and then it is to be tried again. A block of which nothing is left is not read.
    async fn make_ready(&self, index: u64, start: usize, end: u64) -> Result<bool> {
        let found = self.state.borrow().cache.find(index);
        match found {
            Where::Here => return Ok(true),
            Where::OnItsWay => {
                let is_here = || (self.state.borrow().cache.find(index) != Where::OnItsWay).then_some(());
                self.until(is_here).await?;
                return Ok(false);
            }
            Where::Absent => {}
        }
        let there = self.state.borrow().ends.on_device;
        let at = index * self.block_bytes();
        let is_whole = start == 0 && end >= there.min(at + self.block_bytes());
        if at < there && !is_whole {
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

    /// Begins to write what a writer has left behind: a request's worth of blocks, or more if much is dirty.
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

    /// Whether so much is being written that to go on would only fill more memory, which is slower than to fill the same
    /// again. What makes the file longer is one large request, beside which its writer goes on.
    fn is_far_behind(&self) -> bool {
        let state = self.state.borrow();
        !state.ends.is_extending && state.cache.writing() >= self.options.most_behind()
    }

    /// Waits until one more block may be dirty.
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
        // All of it failed: who needs room is told what comes of trying again.
        self.state.borrow_mut().cache.forgive();
        let told = answer();
        if self.begin_write(0, EVERYTHING, Some(&told)) {
            return self.until(|| told.take()).await?;
        }
        Ok(())
    }

    /// Writes everything that was written before this call, and makes it durable (fdatasync(2)).
    ///
    /// # Errors
    /// Each request that failed since the last flush, once; those that [`Self::write_from`] told are not among them. What they
    /// were of stays in the cache and is tried again by the next flush. Where one failed that would have made the file longer,
    /// nothing beyond it was tried. After a failed sync the bytes are not written again: what was written since the last
    /// flush that succeeded may be lost with the power. If the scope is cancelled, that is the only error, and the others
    /// are kept for the next flush.
    pub async fn flush(&self) -> std::result::Result<(), Failures> {
        let of_no_bytes = |error: Error| Failure { error, offset: 0, size: 0 };
        self.state.borrow_mut().cache.forgive();
        let written = async {
            self.write_out().await?;
            while !self.lengthen().await? {
                self.write_out().await?;
            }
            self.file.sync_data().await
        };
        match written.await {
            Err(error) if error.is_cancelled() => return Err(Failures::of(of_no_bytes(error))),
            Err(error) => self.state.borrow_mut().failures.add(of_no_bytes(error)),
            Ok(()) => self.forget_odd_end(),
        }
        let failures = std::mem::take(&mut self.state.borrow_mut().failures);
        if failures.count() == 0 { Ok(()) } else { Err(failures) }
    }

    /// Writes what was written so far, but what fails.
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

    /// Makes the file as long as [`Self::truncate`] was asked for, once nothing in the cache will; `false` if something
    /// still is to be written.
    async fn lengthen(&self) -> Result<bool> {
        let is_short = |state: &super::State| state.ends.on_device < state.promised;
        if !is_short(&self.state.borrow()) {
            return Ok(true);
        }
        let _still = self.hold_still().await?;
        let promised = {
            let state = self.state.borrow();
            let mut beyond = state.cache.dirty(state.ends.on_device / self.block_bytes()..u64::MAX);
            if !is_short(&state) || beyond.clone().any(|(_, dirty)| dirty.has_failed) {
                // What failed is told, and tried again before.
                return Ok(true);
            }
            if beyond.next().is_some() {
                return Ok(false);
            }
            state.promised
        };
        cancel::protect(self.file.truncate(promised)).await?;
        self.state.borrow_mut().ends.on_device = promised;
        Ok(true)
    }

    /// Waits until nothing is on its way; nothing is begun until the guard goes.
    async fn hold_still(&self) -> Result<Still<'_>> {
        self.until(|| (!self.is_still.replace(true)).then_some(())).await?;
        let still = Still { is_still: &self.is_still, changed: &self.changed };
        self.until(|| self.is_quiet().then_some(())).await?;
        Ok(still)
    }

    /// The page that the end of the file was written through leaves the page cache. Where it does not, it only stays.
    fn forget_odd_end(&self) {
        let odd_end = self.state.borrow_mut().odd_end.take();
        if let (Some(at), Descriptor::Real(handle)) = (odd_end, &*self.file.fd()) {
            sys::forget_cached(handle.fd(), at, self.path.unit as u64).ok();
        }
    }

    /// Flushes it and closes it.
    ///
    /// # Errors
    /// Those of [`Self::flush`]; what could not be written is given up then.
    pub async fn close(self) -> std::result::Result<(), Failures> {
        self.flush().await
    }

    /// Sets the size: what is beyond it is gone, also from the cache, and what is new reads as zero. On the device the file
    /// becomes longer only with the next flush, behind what was written before.
    ///
    /// # Errors
    /// Those of ftruncate(2), among them EINVAL for a file that was opened for reading. Where it becomes longer, the
    /// next flush tells them.
    pub async fn truncate(&self, size: u64) -> Result<()> {
        if !self.is_writable || i64::try_from(size).is_err() {
            return Err(Error::errno(Operation::Truncate, Errno::INVAL));
        }
        let _still = self.hold_still().await?;
        if size < self.state.borrow().ends.on_device {
            // Once begun it must be known whether it was done.
            cancel::protect(self.file.truncate(size)).await?;
        }
        let mut state = self.state.borrow_mut();
        state.cache.truncate(size, self.options.block_bytes);
        state.ends.on_device = state.ends.on_device.min(size);
        (state.ends.size, state.promised) = (size, size);
        Ok(())
    }
}

/// While this is there, nothing is begun.
struct Still<'a> {
    is_still: &'a Cell<bool>,
    changed: &'a Changed,
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.is_still.set(false);
        self.changed.tell();
    }
}

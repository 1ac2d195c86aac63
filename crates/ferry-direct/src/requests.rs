//! Requests of a direct file: begun within their bound, taken when they have completed.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use ferry_io::{Block, Error, Operation, Result, is_cancelled};

use crate::behind::{self, WriteRun};
use crate::failures::Failure;
use crate::file::{DirectFile, State};
use crate::transfer::{Answer, Completion, Moved, Read, Request, Write};

impl DirectFile<'_> {
    /// Waits until `ready` returns a value; calls it again after each completion.
    ///
    /// # Errors
    /// If the scope is cancelled first.
    pub(crate) async fn until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> Result<T> {
        std::future::poll_fn(|cx: &mut Context<'_>| {
            if is_cancelled() {
                return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
            }
            self.waiters.add(cx.waker());
            self.take_completions();
            ready().map_or(Poll::Pending, |value| Poll::Ready(Ok(value)))
        })
        .await
    }

    pub(crate) fn take_completions(&self) {
        let waker = Waker::from(std::sync::Arc::clone(&self.waiters));
        let cx = Context::from_waker(&waker);
        loop {
            let completion = self.requests.borrow_mut().poll_ready(&cx);
            let Some(completion) = completion else { return };
            self.complete(completion);
        }
    }

    fn begin(&self, request: Request) {
        let completion = self.requests.borrow_mut().spawn(|| request);
        if let Some(completion) = completion {
            self.complete(completion);
        }
    }

    fn complete(&self, completion: Completion) {
        self.state.borrow_mut().complete(completion, self.block_bytes());
        self.waiters.wake_all();
    }

    /// Number of requests that may begin now.
    pub(crate) fn room(&self) -> usize {
        self.options.in_flight.saturating_sub(self.requests.borrow().alive())
    }

    /// Returns true if no request is in flight.
    pub(crate) fn is_quiet(&self) -> bool {
        self.requests.borrow().alive() == 0
    }

    /// Begins to read absent blocks into the given memory.
    pub(crate) fn begin_read(&self, first: u64, blocks: Vec<Block>, answer: Option<Answer>) {
        let at = first * self.block_bytes();
        let mut state = self.state.borrow_mut();
        for index in first..first + blocks.len() as u64 {
            state.cache.expect(index, answer.is_none() || index > first);
        }
        let on_device = state.ends.on_device.saturating_sub(at);
        let capacity = blocks.len() * self.options.block_bytes;
        let wanted = usize::try_from(on_device).unwrap_or(usize::MAX).min(capacity);
        drop(state);
        let read = Read { first, at, blocks, wanted, answer };
        self.begin(Box::pin(read.perform(self.channel.clone())));
    }

    /// Begins one request for blocks written up to `last_write`, preferably from block `from` on. Returns false if
    /// there was nothing to begin.
    pub(crate) fn begin_write(&self, from: u64, last_write: u64, answer: Option<&Answer>) -> bool {
        if self.room() == 0 || self.is_still.get() {
            return false;
        }
        let mut state = self.state.borrow_mut();
        let Some(run) = behind::next(&state.cache, &self.options, state.ends, from, last_write) else {
            return false;
        };
        state.ends.is_extending |= run.extends;
        let blocks = state.cache.send(run.blocks.clone());
        drop(state);
        let at = run.blocks.start * self.block_bytes();
        let write = Write { run, at, blocks, answer: answer.map(Rc::clone) };
        self.begin(Box::pin(write.perform(self.channel.clone())));
        true
    }

    /// Returns true if a request for blocks written up to `last_write` could begin.
    pub(crate) fn is_to_write(&self, last_write: u64) -> bool {
        let state = self.state.borrow();
        behind::next(&state.cache, &self.options, state.ends, 0, last_write).is_some()
    }
}

impl State {
    fn complete(&mut self, completion: Completion, block_bytes: u64) {
        let Completion { first, blocks, moved, result, answer } = completion;
        match moved {
            Moved::Read { filled, wanted } => {
                self.complete_read(first, blocks, filled, result);
                if result.is_ok() && filled < wanted {
                    self.shrink(first * block_bytes + filled as u64, block_bytes);
                }
            }
            Moved::Write { run, end } => {
                self.complete_write(&run, end, blocks, result, block_bytes);
                if let Err(error) = result
                    && answer.is_none()
                {
                    self.failures.add(Failure { error, offset: end, size: run.bytes.end - end });
                }
            }
        }
        if let Some(answer) = answer {
            answer.set(Some(result));
        }
    }

    fn complete_read(&mut self, first: u64, mut blocks: Vec<Block>, filled: usize, result: Result<()>) {
        let block_bytes = blocks.first().map_or(1, Block::capacity);
        let whole = if result.is_ok() { blocks.len() } else { filled / block_bytes };
        // Beyond the file's end a block is zero.
        for (number, block) in blocks.iter_mut().enumerate() {
            let held = filled.saturating_sub(number * block_bytes).min(block_bytes);
            block.as_mut_capacity()[held..].fill(0);
        }
        self.cache.arrive(first, whole, blocks);
    }

    /// Notes that a read found the file's end earlier than expected: another process truncated it.
    fn shrink(&mut self, end: u64, block_bytes: u64) {
        self.ends.on_device = self.ends.on_device.min(end);
        let is_written_beyond = self.cache.dirty(end / block_bytes..u64::MAX).next().is_some();
        if !is_written_beyond && self.cache.writing() == 0 {
            self.ends.size = self.ends.size.min(end);
        }
    }

    fn complete_write(
        &mut self,
        run: &WriteRun,
        end: u64,
        blocks: Vec<Block>,
        result: Result<()>,
        block_bytes: u64,
    ) {
        if run.extends {
            self.ends.is_extending = false;
        }
        if end > run.bytes.start {
            self.ends.on_device = self.ends.on_device.max(end);
        }
        let written = match result {
            Ok(()) => blocks.len(),
            Err(_) => usize::try_from(end / block_bytes - run.blocks.start).unwrap_or_default(),
        };
        self.cache.come_back(run.blocks.start, written, blocks);
        if result.is_ok() && !end.is_multiple_of(self.ends.unit) {
            self.odd_end = Some(end - end % self.ends.unit);
        }
    }
}

/// An empty place for a result.
pub(crate) fn answer() -> Answer {
    Rc::new(Cell::new(None))
}

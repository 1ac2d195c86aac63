//! Requests of a direct file: begun within their bound, taken when they land.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::behind::{self, Run};
use super::failures::Failure;
use super::transfer::{self, Answer, Flight, Kind, Landed};
use super::{DirectFile, State};
use crate::buffers::Block;
use crate::cancel;
use crate::error::{Error, Operation, Result};

impl DirectFile<'_> {
    /// Waits until `ready` has an answer, which it is asked for whenever a request has landed.
    ///
    /// # Errors
    /// If the scope is cancelled first.
    pub(super) async fn until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> Result<T> {
        std::future::poll_fn(|cx: &mut Context<'_>| {
            if cancel::is_cancelled() {
                return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
            }
            self.changed.join(cx.waker());
            self.take_landed();
            ready().map_or(Poll::Pending, |value| Poll::Ready(Ok(value)))
        })
        .await
    }

    /// Takes what has landed.
    pub(super) fn take_landed(&self) {
        let waker = Waker::from(std::sync::Arc::clone(&self.changed));
        let cx = Context::from_waker(&waker);
        loop {
            let landed = self.flights.borrow_mut().poll_ready(&cx);
            let Some(landed) = landed else { return };
            self.state.borrow_mut().land(landed, self.block_bytes());
            self.changed.tell();
        }
    }

    fn begin(&self, flight: Flight) {
        let landed = self.flights.borrow_mut().spawn(|| flight);
        if let Some(landed) = landed {
            self.state.borrow_mut().land(landed, self.block_bytes());
            self.changed.tell();
        }
    }

    /// Requests that may be begun now.
    pub(super) fn room(&self) -> usize {
        self.options.in_flight.saturating_sub(self.flights.borrow().alive())
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.flights.borrow().alive() == 0
    }

    /// Reads blocks that are not in the cache, into memory that was had for them.
    pub(super) fn begin_read(&self, first: u64, blocks: Vec<Block>, answer: Option<Answer>) {
        let at = first * self.block_bytes();
        let mut state = self.state.borrow_mut();
        for index in first..first + blocks.len() as u64 {
            state.cache.expect(index, answer.is_none() || index > first);
        }
        let there = state.ends.on_device.saturating_sub(at);
        let room = blocks.len() * self.options.block_bytes;
        let wanted = usize::try_from(there).unwrap_or(usize::MAX).min(room);
        drop(state);
        self.begin(Box::pin(transfer::read(self.path.clone(), (first, at), blocks, wanted, answer)));
    }

    /// Begins one request of what was written up to `last_write`, from block `from` on if there is a choice; whether there
    /// was one to begin.
    pub(super) fn begin_write(&self, from: u64, last_write: u64, answer: Option<&Answer>) -> bool {
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
        let answer = answer.map(Rc::clone);
        self.begin(Box::pin(transfer::write(self.path.clone(), at, run, blocks, answer)));
        true
    }

    /// Whether there is something to be written, up to `last_write`, that can be begun.
    pub(super) fn is_to_write(&self, last_write: u64) -> bool {
        let state = self.state.borrow();
        behind::next(&state.cache, &self.options, state.ends, 0, last_write).is_some()
    }
}

impl State {
    fn land(&mut self, landed: Landed, block_bytes: u64) {
        let Landed { first, blocks, kind, result, answer } = landed;
        match kind {
            Kind::Read { filled, wanted } => self.land_read(first, blocks, (filled, wanted), result),
            Kind::Write { run, end } => {
                self.land_written(&run, end, blocks, result, answer.is_some(), block_bytes)
            }
        }
        if let Some(answer) = answer {
            answer.set(Some(result));
        }
    }

    fn land_read(
        &mut self,
        first: u64,
        mut blocks: Vec<Block>,
        (filled, wanted): (usize, usize),
        result: Result<()>,
    ) {
        let block_bytes = blocks.first().map_or(1, Block::capacity);
        let whole = if result.is_ok() { blocks.len() } else { filled / block_bytes };
        // Beyond the file's end a block is zero.
        for (number, block) in blocks.iter_mut().enumerate() {
            let held = filled.saturating_sub(number * block_bytes).min(block_bytes);
            block.as_mut_capacity()[held..].fill(0);
        }
        if result.is_ok() && filled < wanted {
            self.shrink(first * block_bytes as u64 + filled as u64, block_bytes as u64);
        }
        self.cache.arrive(first, whole, blocks);
    }

    /// The file was found to end sooner than it did: somebody else made it shorter.
    fn shrink(&mut self, end: u64, block_bytes: u64) {
        self.ends.on_device = self.ends.on_device.min(end);
        let is_written_beyond = self.cache.dirty(end / block_bytes..u64::MAX).next().is_some();
        if !is_written_beyond && self.cache.writing() == 0 {
            self.ends.size = self.ends.size.min(end);
        }
    }

    fn land_written(
        &mut self,
        run: &Run,
        end: u64,
        blocks: Vec<Block>,
        result: Result<()>,
        is_told: bool,
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
        if let Err(error) = result
            && !is_told
        {
            self.failures.add(Failure { error, offset: end, size: run.bytes.end - end });
        }
    }
}

/// A place for an answer.
pub(super) fn answer() -> Answer {
    Rc::new(Cell::new(None))
}

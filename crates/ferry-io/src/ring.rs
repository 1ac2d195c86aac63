//! The io_uring backend: one ring per worker, from the request that is pushed to the completion that is taken.
//!
//! [`Ring::push`] queues a request. [`Ring::enter`] submits all queued requests and takes all completions in one system
//! call, and sleeps in it if the worker asks. A request that the kernel answers with EINTR or EAGAIN is tried again,
//! and then goes to the pool. Parts: `setup` (flags, degrading, refusals), `request` (a request as an entry, an answer
//! as an outcome), `enter` (the call, and each completion), `flight` (requests in flight), `chain` (open, read, close
//! on direct descriptors), `sighting` (a ring of its own for a measurement), `holding` (descriptors closed with a ring).
//! `absent.rs` stands in for all of it in a build without the feature `uring`.
//!
//! Invariants: a request, with its memory and descriptors, belongs to the ring from `push` until its last completion
//! (guard: `dropping_a_runtime_reaps_direct_reads`). Requests in flight never owe more completions than fit in the
//! completion queue (guard: `a_full_queue_makes_progress`). A notified inbox ends a sleep in the ring, because a poll
//! of its eventfd is armed before each sleep (guard: `another_thread_ends_a_sleep_in_the_ring`). That poll is multishot
//! and has no buffer, so closing the ring leaves nothing behind. Reading the eventfd instead would need memory that
//! outlives the ring, and a request per wake-up.
//!
//! Limits: IOPOLL supports only reads and writes, and only their completions end its sleep. A FIFO is never opened
//! here, because an open without waiting for the other end succeeds at once.

mod chain;
mod enter;
mod flight;
pub(crate) mod holding;
mod request;
mod setup;
mod sighting;

use std::sync::Arc;

use io_uring::squeue::Entry;
use io_uring::{IoUring, cqueue};

use crate::error::{Operation, SetupError};
use crate::event::{self, Event};
use crate::inbox::Inbox;
use crate::op::Op;
use crate::options::RingMode;
use crate::ring::enter::Meeting;
use crate::ring::flight::{Flight, Flights, MOST_SLOTS, Step, Token};
use crate::ring::request::Registered;
use crate::ring::setup::Opcodes;
pub(crate) use crate::ring::setup::probe;
pub use crate::ring::sighting::{Sighting, Unseen, sightings};
use crate::route::{Reason, Route};
use crate::shared::{RingPermit, Shared};
use crate::slots::Key;
use crate::stats::Counters;

/// Smallest early batch if more requests will follow; see `docs/decisions/0009-batch-submission.md`.
const LEAST_BATCH: usize = 2;

/// One worker's ring.
pub(crate) struct Ring {
    io: IoUring,
    mode: RingMode,
    can: Opcodes,
    registered: Option<Registered>,
    flights: Flights,
    chains: chain::Table,
    /// Completions that requests in flight will still bring, and their bound.
    owed: usize,
    most_owed: usize,
    /// Requests queued since the last submission, and their bound.
    fresh: usize,
    most_fresh: usize,
    /// Set if the last push was refused for lack of completions, not of submissions.
    is_saturated: bool,
    /// Cancellations to be queued, and number of answers to earlier ones still to come.
    cancels: Vec<u64>,
    cancels_owed: usize,
    is_inbox_armed: bool,
    /// State of completions when they are taken, for a recording.
    meeting: Meeting,
    passed_on: Vec<(Operation, Reason)>,
    /// Reused for its memory.
    taken: Vec<cqueue::Entry>,
    inbox: Arc<Inbox>,
    /// Owns the blocks that the kernel may write to. It outlives `io`, which is dropped first.
    shared: Arc<Shared>,
    _permit: RingPermit,
}

#[cfg(feature = "trace")]
impl event::Key {
    /// User data of the operation's completion; of a chain, of its first step.
    ///
    /// ```
    /// use ferry_io::event::Key;
    ///
    /// let key = Key { index: 1, generation: 0 };
    /// assert_ne!(key.user_data(), Key { generation: 1, ..key }.user_data());
    /// ```
    #[must_use]
    pub fn user_data(self) -> u64 {
        let key = Key { index: self.index, generation: self.generation };
        Token::Request(key, Step::First).to_user_data()
    }
}

impl Ring {
    /// Sets up the calling thread's ring.
    pub(crate) fn open(shared: &Arc<Shared>, inbox: &Arc<Inbox>) -> Result<Self, SetupError> {
        let permit = RingPermit::take(shared).ok_or_else(|| {
            let reason = "too few open files are allowed for a ring (`ulimit -n`)".to_owned();
            SetupError::NoUring { reason }
        })?;
        inbox.event().map_err(|errno| SetupError::NoUring { reason: format!("eventfd: {errno}") })?;
        let options = &shared.options;
        let setup::Opened { io, can, depth, mut reasons, left_out } = setup::open(options)?;
        let mut registered = None;
        if options.registered_buffers {
            match setup::register_blocks(&io, &shared.blocks) {
                Ok(each) => registered = Some(Registered { base: shared.blocks.arena().0, each }),
                Err(why) => reasons.push(why),
            }
        }
        shared.note_ring(reasons, &left_out);
        let completions = io.params().cq_entries() as usize;
        Ok(Self {
            io,
            mode: options.ring_mode,
            can,
            registered,
            flights: Flights::default(),
            chains: chain::Table::default(),
            owed: 0,
            most_owed: (2 * depth).max(chain::STEPS).min(completions / 2),
            fresh: 0,
            most_fresh: depth,
            is_saturated: false,
            cancels: Vec::new(),
            cancels_owed: 0,
            is_inbox_armed: false,
            meeting: Meeting::default(),
            passed_on: Vec::new(),
            taken: Vec::new(),
            inbox: Arc::clone(inbox),
            shared: Arc::clone(shared),
            _permit: permit,
        })
    }

    /// Returns true if this ring supports the operation.
    pub(crate) fn can(&mut self, operation: Operation) -> bool {
        if operation == Operation::Chain {
            return self.mode != RingMode::IoPoll && self.chains.is_there(&self.io);
        }
        self.can.contains(operation)
    }

    /// Returns true if [`Self::enter`] has requests to submit, completions to take, or task work to run.
    pub(crate) fn is_due(&self) -> bool {
        if self.fresh > 0 || !self.cancels.is_empty() {
            return true;
        }
        // SAFETY: no other view of the completion queue exists during this call.
        let completions = unsafe { self.io.completion_shared() };
        if !completions.is_empty() || (self.mode == RingMode::IoPoll && self.owed > 0) {
            return true;
        }
        // SAFETY: no other view of the submission queue exists during this call.
        let submissions = unsafe { self.io.submission_shared() };
        submissions.taskrun() || submissions.cq_overflow()
    }

    /// Number of operations in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.count()
    }

    /// Returns true if the thread slept in the last recorded call.
    pub(crate) fn has_slept(&self) -> bool {
        self.meeting.slept()
    }

    /// Returns true if the last refusal of [`Self::push`] lasts until a completion.
    pub(crate) fn is_saturated(&self) -> bool {
        self.is_saturated
    }

    /// Queues a request that was asked for at time `asked` and sent here for `reason`. Gives it back if there is no
    /// room.
    pub(crate) fn push(&mut self, key: Key, op: Op, reason: Reason, asked: u64) -> Result<(), Op> {
        if key.index >= MOST_SLOTS {
            event::queued(key, &op, (Route::Ring, reason), asked);
            self.hand_over(key, Flight::new(op, reason));
            return Ok(());
        }
        let is_chain = matches!(op, Op::Chain { .. });
        let entries = if is_chain { chain::STEPS } else { 1 };
        self.is_saturated = self.owed + entries > self.most_owed || (is_chain && !self.chains.has_room());
        // A chain takes three entries; alone it may exceed the depth.
        let is_full = self.fresh > 0 && self.fresh + entries > self.most_fresh;
        if self.is_saturated || is_full || self.room() < entries {
            return Err(op);
        }
        event::queued(key, &op, (Route::Ring, reason), asked);
        self.submit(key, Flight::new(op, reason));
        Ok(())
    }

    /// Queues a request for which there is room.
    fn submit(&mut self, key: Key, mut flight: Flight) {
        let Flight { op, statx, parts, chain, .. } = &mut flight;
        let queued = if let Op::Chain { dir, name, block: Some(block) } = op {
            self.chains.take().and_then(|place| {
                *chain = Some(chain::Chain::new(place));
                let entries = chain::entries(key, place, dir, name, block)?;
                self.queue(&entries).then_some(chain::STEPS)
            })
        } else {
            request::entry(op, (statx, parts), self.registered).and_then(|entry| {
                let token = Token::Request(key, Step::First);
                self.queue(&[entry.user_data(token.to_user_data())]).then_some(1)
            })
        };
        match queued {
            Some(entries) => {
                self.owed += entries;
                self.fresh += entries;
                self.flights.insert(key, flight);
            }
            None => self.hand_over(key, flight),
        }
    }

    /// Adds entries to the submission queue, all or none.
    fn queue(&mut self, entries: &[Entry]) -> bool {
        // SAFETY: what the entries point to is in `flights` until their last completion was taken, or, for the inbox
        // and cancellations, they point to nothing.
        unsafe { self.io.submission().push_multiple(entries) }.is_ok()
    }

    fn room(&mut self) -> usize {
        let submissions = self.io.submission();
        submissions.capacity() - submissions.len()
    }

    /// Hands a request over to the pool.
    fn hand_over(&mut self, key: Key, flight: Flight) {
        if let Some(chain) = &flight.chain {
            self.chains.give_back(&self.io, chain);
        }
        let reason = Reason::NotInRing as u8;
        event::record(&Event::PassedOn { key: key.into(), reason });
        self.passed_on.push((flight.op.operation(), flight.reason));
        self.shared.pool.push(key, flight.op, &self.inbox, Reason::NotInRing);
    }

    /// Returns the operations passed on to the pool since the last call, with the reason why they had been sent here.
    pub(crate) fn take_passed_on(&mut self) -> Vec<(Operation, Reason)> {
        std::mem::take(&mut self.passed_on)
    }

    /// Asks the kernel to cancel a request, which still completes.
    pub(crate) fn cancel(&mut self, key: Key) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        if std::mem::replace(&mut flight.cancelled, true) {
            return;
        }
        // A chain's close is not cancelled, or its file would stay open.
        let steps: &[Step] = if flight.chain.is_some() { &[Step::First, Step::Read] } else { &[Step::First] };
        self.cancels.extend(steps.iter().map(|&step| Token::Request(key, step).to_user_data()));
    }
}

impl Drop for Ring {
    /// Closing a ring does not wait for its requests, so all of them are reaped first. Then `io` is dropped, then the
    /// memory. Only an unwinding worker has not reaped before.
    fn drop(&mut self) {
        let counters = Counters::new();
        for key in self.flights.keys() {
            self.cancel(key);
        }
        while self.flights.count() > 0 {
            drop(self.enter(Some(None), &counters));
        }
    }
}

#[cfg(test)]
mod tests;

//! The worker's ring: opened when an operation first needs it, entered in turns and sleeps, waited for when it is full.

use std::time::Duration;

use super::{INLINE_STRETCH, Worker};
use crate::error::{Operation, SetupError};
use crate::event::SubmitReason;
use crate::op::Op;
use crate::options::{Backend, RingMode};
use crate::ring::Ring;
use crate::route::{Reason, RingLack};
use crate::sim::Sim;
use crate::slots::Key;

impl Worker {
    /// Returns true if the ring is entered although fibers can run: after a stretch of inline calls, or after many
    /// turns without. Otherwise the fibers may submit more, and the sleep submits everything and takes completions in
    /// one call.
    pub(super) fn is_ring_to_be_entered(&self, inline_calls: u32) -> bool {
        let ring = self.ring.borrow();
        if !ring.as_ref().is_some_and(Ring::is_due) {
            return false;
        }
        let put_off = self.put_off.get() + 1;
        let is_time = inline_calls >= INLINE_STRETCH || put_off >= INLINE_STRETCH;
        self.put_off.set(if is_time { 0 } else { put_off });
        is_time
    }

    /// Enters the ring once and takes its completions. With `wait` it sleeps for at least one completion, up to the
    /// inner limit.
    pub(super) fn enter_ring(&self, wait: Option<Option<Duration>>) {
        self.enter_ring_because(if wait.is_some() { SubmitReason::Idle } else { SubmitReason::Forced }, wait);
    }

    fn enter_ring_because(&self, why: SubmitReason, wait: Option<Option<Duration>>) {
        let (completions, made_room, is_empty) = match self.ring.borrow_mut().as_mut() {
            Some(ring) => {
                let before = ring.in_flight();
                let completions = ring.enter_because(why, wait, &self.counters);
                (completions, before.saturating_sub(ring.in_flight()), ring.in_flight() == 0)
            }
            None => (Vec::new(), 0, true),
        };
        // The worker is awake: wake-ups from here on need no eventfd.
        self.inbox.leave_ring();
        for (key, completion) in completions {
            self.complete(key, completion);
        }
        self.count_passed_on();
        // An empty ring completes nothing more, so all waiters are woken.
        self.thin_crowd(if is_empty { usize::MAX } else { made_room });
    }

    /// Counts requests that the ring passed on as the pool's.
    pub(super) fn count_passed_on(&self) {
        let passed_on = self.ring.borrow_mut().as_mut().map(Ring::take_passed_on).unwrap_or_default();
        for (operation, reason) in passed_on {
            self.counters.recount(operation, reason);
        }
    }

    pub(super) fn take_simulated(&self, sim: &Sim) {
        let (completions, is_empty) = sim.take_completed();
        let made_room = if is_empty { usize::MAX } else { completions.len() };
        for (key, completion) in completions {
            self.complete(key, completion);
        }
        self.thin_crowd(made_room);
    }

    /// Wakes up to `most` of the fibers that wait for room in the ring, oldest first.
    pub(super) fn thin_crowd(&self, most: usize) {
        for _ in 0..most {
            let Some(waker) = self.crowd.borrow_mut().next() else { return };
            waker.wake();
        }
    }

    /// Removes a fiber from those that wait for room in the ring. If it gives up after it was woken, its room goes to
    /// the next.
    pub(super) fn leave_crowd(&self, place: u64, gives_up: bool) {
        let next = self.crowd.borrow_mut().leave(place, gives_up);
        if let Some(waker) = next {
            waker.wake();
        }
    }

    /// Gives a request to the ring; returns it if only a completion makes room.
    pub(super) fn push_to_ring(
        &self,
        key: Key,
        op: Op,
        reason: Reason,
        asked: u64,
    ) -> std::result::Result<(), Op> {
        if let Some(sim) = &self.shared.sim {
            return sim.push_to_ring(key, op, (reason, asked));
        }
        let mut waiting = op;
        loop {
            let is_transfer = matches!(waiting.operation(), Operation::Read | Operation::Write);
            let pushed = match self.ring.borrow_mut().as_mut() {
                Some(ring) => ring.push(key, waiting, reason, asked),
                None => return Err(waiting),
            };
            let Err(refused) = pushed else {
                if is_transfer {
                    self.start_batch();
                }
                return Ok(());
            };
            if self.ring.borrow().as_ref().is_some_and(Ring::is_saturated) {
                return Err(refused);
            }
            self.enter_ring_because(SubmitReason::Full, None);
            waiting = refused;
        }
    }

    /// Submits now if fibers will follow whose operations have completed: they will queue more, and the device has work
    /// meanwhile. Otherwise the following sleep submits and waits in one call.
    fn start_batch(&self) {
        if self.shared.options.early_batches
            && self.slots.borrow().done() > 0
            && let Some(ring) = self.ring.borrow_mut().as_mut()
        {
            ring.start_batch(&self.counters);
        }
    }

    /// Opens the ring when it is first needed; returns false if the worker can't have one.
    fn open_ring(&self) -> bool {
        if self.ring.borrow().is_some() {
            return true;
        }
        if !self.router.may_use_ring() {
            return false;
        }
        if self.shared.sim.is_some() {
            return true;
        }
        match Ring::open(&self.shared, &self.inbox) {
            Ok(ring) => {
                *self.ring.borrow_mut() = Some(ring);
                true
            }
            Err(error) => {
                self.router.give_up_ring();
                self.shared.note_no_ring(&error);
                false
            }
        }
    }

    /// The reason why an operation can't go to the worker's ring, which is opened if need be.
    pub(super) fn ring_lack(&self, op: &Op) -> Option<RingLack> {
        if !self.open_ring() {
            return Some(RingLack::Ring);
        }
        (!self.can_in_ring(op.operation())).then_some(RingLack::Operation)
    }

    fn can_in_ring(&self, operation: Operation) -> bool {
        match &self.shared.sim {
            Some(sim) => sim.can_in_ring(operation),
            None => self.ring.borrow_mut().as_mut().is_some_and(|ring| ring.can(operation)),
        }
    }

    /// Returns true if open, read and close can be linked to a chain; opens the ring if need be.
    pub(crate) fn may_chain(&self) -> bool {
        self.router.may_chain() && self.open_ring() && self.can_in_ring(Operation::Chain)
    }

    /// Opens the ring now if the options insist on one: a mode that is unavailable is refused, not replaced.
    pub(crate) fn open_ring_if_required(&self) -> std::result::Result<(), SetupError> {
        let options = &self.shared.options;
        let insists = options.backend == Backend::Uring
            || options.backend == Backend::Auto && options.ring_mode == RingMode::IoPoll;
        if insists && self.shared.sim.is_none() {
            *self.ring.borrow_mut() = Some(Ring::open(&self.shared, &self.inbox)?);
        }
        Ok(())
    }
}

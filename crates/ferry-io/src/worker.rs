//! One worker: its thread's operations, from the fiber that asks to the backend that answers.
//!
//! A worker is one thread with an inbox, slots for what is in flight, a router, counters and, once something needs
//! it, a ring. [`submit`] is the only way in for every operation; [`Worker::turn`] the only place where completions
//! are taken. Neither blocks: sleeping is the executor's affair (`task.rs`), and who finds the ring full waits as a fiber
//! (guard: `a_saturated_ring_keeps_timers_alive`).
//!
//! Invariants: the worker of a thread is the one entered by its executor, so operations run only within
//! [`crate::run`] (guard: `an_operation_outside_a_run_panics`); during a long stretch of inline calls completions
//! are still taken and fibers that wait get their turn ([`Worker::is_due`]; guard:
//! `for_each_takes_every_item_though_completions_come_in_between`).

mod inline;
mod own_ring;
mod submit;

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::concurrent::{thread, thread_local};
use crate::event::{self, Event};
use crate::inbox::Inbox;
use crate::op::{Op, Outcome};
use crate::ring::Ring;
use crate::route::{Choice, Reason, Router};
use crate::shared::Shared;
use crate::slots::{Completion, Key, Slots};
use crate::spare;
use crate::stats::{Counters, Route, add};
use crate::sys;
use crate::time::Timers;

use own_ring::Crowd;
pub(crate) use submit::{submit, submit_overlapping};

/// After so many inline calls without a turn, completions are looked for.
const INLINE_STRETCH: u32 = 16;
/// After so many, timers and the fibers that are ready get their turn, whoever never waits.
const LONGEST_STRETCH: u32 = 256;

/// So many cold files go to the pool together.
const BATCH: usize = 8;

/// What one worker owns.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) counters: Counters,
    slots: RefCell<Slots>,
    router: Router,
    ring: RefCell<Option<Ring>>,
    /// Cold files of one folder, until they go to the pool together.
    cold: RefCell<Vec<(Key, Op)>>,
    /// Why they do.
    cold_reason: Cell<Reason>,
    /// Operations for which the ring has no room, by age.
    crowd: RefCell<Crowd>,
    inline_calls: Cell<u32>,
    /// Turns in which the ring was left alone.
    put_off: Cell<u32>,
    /// Voluntary context switches of this thread, when last looked at.
    switches: Cell<i64>,
}

/// The kernel's answer.
type Completed = std::result::Result<Outcome, Errno>;

/// What became of an operation that left the worker.
#[allow(clippy::large_enum_variant, reason = "a request moves once, to where it runs")]
enum HandedOver {
    InFlight(Key),
    /// The ring has no room, and the worker has other things to do than to wait for it.
    NoRoom(Op, Choice),
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// The worker of this thread.
///
/// # Panics
/// Outside [`crate::run`].
pub(crate) fn current() -> Rc<Worker> {
    let worker = CURRENT.with_borrow(Clone::clone);
    let Some(worker) = worker else { panic!("ferry-io's operations run only within ferry_io::run") };
    worker
}

/// Makes a worker its thread's; the end of this ends every operation in flight, and the worker of a run around this one
/// is its thread's again.
pub(crate) struct Entered {
    worker: Rc<Worker>,
    outer: Option<Rc<Worker>>,
    kept_spares: bool,
    /// The last to go: what is reaped is recorded.
    _traced: event::Traced,
}

impl Worker {
    /// The calling thread's worker.
    pub(crate) fn new(shared: &Arc<Shared>) -> Rc<Self> {
        let recording = shared.recording.as_ref();
        let number = recording.map_or(0, |recording| recording.add_thread(event::Role::Worker));
        let inbox = Arc::new(Inbox::numbered(number, shared.sim.is_none()));
        if let Some(sim) = &shared.sim {
            sim.introduce(&inbox);
        }
        let fruitless = Arc::clone(&inbox.fruitless);
        Rc::new(Self {
            shared: Arc::clone(shared),
            router: Router::new(shared.options.route, shared.may_have_ring(), fruitless),
            inbox,
            timers: RefCell::default(),
            counters: Counters::new(),
            slots: RefCell::default(),
            ring: RefCell::new(None),
            cold: RefCell::default(),
            cold_reason: Cell::new(Reason::Missed),
            crowd: RefCell::default(),
            inline_calls: Cell::new(0),
            put_off: Cell::new(0),
            switches: Cell::new(0),
        })
    }

    pub(crate) fn enter(self: &Rc<Self>) -> Entered {
        let outer = CURRENT.replace(Some(Rc::clone(self)));
        self.switches.set(voluntary_switches());
        let recording = self.shared.recording.as_ref().map(|recording| (recording, self.inbox.number));
        let _traced = event::enter(recording);
        Entered { worker: Rc::clone(self), outer, kept_spares: spare::keep(true), _traced }
    }

    /// Whether everything that the ring has must go there.
    pub(crate) fn forces_ring(&self) -> bool {
        self.router.forces_ring()
    }

    /// Whether fibers should give way so that completions are taken.
    pub(crate) fn is_due(&self) -> bool {
        let calls = self.inline_calls.get();
        if calls < INLINE_STRETCH {
            return false;
        }
        self.is_overdue()
            || self.inbox.is_filled()
            || !self.cold.borrow().is_empty()
            || self.ring.borrow().as_ref().is_some_and(Ring::is_due)
            || self.shared.sim.as_ref().is_some_and(|sim| sim.has_completed())
    }

    /// Whether they should, whatever they are doing.
    pub(crate) fn is_overdue(&self) -> bool {
        self.inline_calls.get() >= LONGEST_STRETCH
    }

    /// The time: the backend's own, if it simulates it.
    pub(crate) fn now(&self) -> Instant {
        self.shared.sim.as_ref().map_or_else(Instant::now, |sim| sim.now())
    }

    /// Submits what is queued and takes what has completed, without waiting. If no fiber can run, the ring is left to
    /// the sleep that follows, which submits and waits in one call.
    ///
    /// # Panics
    /// With the panic of a pool thread that performed a request of this worker.
    pub(crate) fn turn(&self) {
        if self.take_completions()
            && let Some(panic) = self.inbox.take_panic()
        {
            resume_unwind(panic);
        }
    }

    /// Does a turn's work, and raises nothing; true if the inbox held completions.
    fn take_completions(&self) -> bool {
        let inline_calls = self.inline_calls.replace(0);
        self.send_cold();
        if let Some(sim) = &self.shared.sim {
            sim.turn();
        }
        let delivered = self.inbox.collect();
        let has_collected = !delivered.is_empty();
        for (key, completion) in delivered {
            self.complete(key, completion);
        }
        if let Some(sim) = &self.shared.sim {
            self.take_simulated(sim);
        }
        self.timers.borrow_mut().fire(|| self.now());
        if self.inbox.is_ready() && self.is_ring_to_be_entered(inline_calls) {
            self.enter_ring(None);
        }
        // Last: what was not wanted any more has come back.
        spare::give_back();
        if event::is_on() {
            event::sample(self.slots.borrow().in_flight(), self.shared.blocks.in_use());
        }
        has_collected
    }

    /// Sleeps until something completes or the inbox is told of something.
    pub(crate) fn sleep(&self, at_most: Option<Duration>) {
        let began = event::clock();
        let slept = self.sleep_untold(at_most);
        if slept && event::is_on() {
            event::record_at(began, &Event::Rested { took: event::clock().saturating_sub(began) });
        }
    }

    /// Whether it may have slept.
    fn sleep_untold(&self, at_most: Option<Duration>) -> bool {
        let next = self.timers.borrow().next();
        if let Some(sim) = &self.shared.sim {
            sim.sleep(next, at_most.is_some());
            return true;
        }
        let timer = next.map(|at| at.saturating_duration_since(self.now()));
        let at_most = match (at_most, timer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let mut slept = true;
        if self.ring.borrow().as_ref().is_some_and(|ring| ring.in_flight() > 0) {
            if self.inbox.enter_ring() {
                self.enter_ring(Some(at_most));
                slept = self.ring.borrow().as_ref().is_some_and(Ring::has_slept);
            }
        } else {
            sys::count_call();
            match at_most {
                Some(at_most) => thread::park_timeout(at_most),
                None => thread::park(),
            }
        }
        self.switches.set(voluntary_switches());
        slept
    }

    /// Waits until nothing is in flight any more.
    fn drain(&self) {
        // Futures may outlive the run, and what they wait for may never come.
        let waited_for = self.slots.borrow().waited_for();
        for key in waited_for {
            self.cancel(key);
        }
        self.take_completions();
        while self.slots.borrow().in_flight() > 0 {
            // Nobody polls any more: that a fiber is ready must not keep the worker from sleeping.
            self.inbox.take_ready();
            self.sleep(None);
            self.take_completions();
        }
    }

    fn complete(&self, key: Key, completion: Completion) {
        let result = event::is_on().then(|| event::result_of(&completion.1));
        let (waker, unwanted) = self.slots.borrow_mut().complete(key, completion);
        if let Some(result) = result {
            event::record(&Event::Taken { key: key.into(), result, abandoned: unwanted.is_some() });
        }
        drop(unwanted);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn hand_over(&self, op: Op, choice: Choice, asked: u64) -> HandedOver {
        let key = self.slots.borrow_mut().take();
        let choice = match choice.route {
            Route::Ring if !self.open_ring() => {
                let reason = if choice.reason == Reason::Forced { Reason::NoRing } else { choice.reason };
                Choice { route: Route::Pool, reason, ..choice }
            }
            Route::Ring if !self.can_in_ring(op.operation()) => {
                Choice { route: Route::Pool, reason: Reason::NotInRing, ..choice }
            }
            Route::Inline | Route::Ring | Route::Pool | Route::Offload => choice,
        };
        let operation = op.operation();
        let mut op = Some(op);
        if choice.route == Route::Pool {
            if let Some(op) = &op {
                event::queued(key, op, (Route::Pool, choice.reason), asked);
            }
            if matches!(choice.reason, Reason::Missed | Reason::RecentlySlow) {
                self.join_cold(key, &mut op, choice.reason);
            }
            if let Some(op) = op {
                add(&self.counters.pool_requests, 1);
                event::record(&Event::Sent { key: key.into() });
                self.shared.pool.push(key, op, &self.inbox, choice.reason);
            }
        } else if let Some(op) = op
            && let Err(refused) = self.push_to_ring(key, op, choice.reason, asked)
        {
            self.slots.borrow_mut().give_back(key);
            return HandedOver::NoRoom(refused, choice);
        }
        self.counters.count(operation, choice.route, choice.reason);
        HandedOver::InFlight(key)
    }

    /// Keeps a cold file back for its folder's others, of which the next is asked for at once: one hand-over for all of
    /// them, and their reads under way together. `op` is taken if it is one.
    fn join_cold(&self, key: Key, op: &mut Option<Op>, reason: Reason) {
        let Some(Op::Load { dir, .. }) = &op else { return };
        let folder =
            |other: &(Key, Op)| matches!(&other.1, Op::Load { dir: other, .. } if Arc::ptr_eq(other, dir));
        if self.cold_reason.get() != reason || !self.cold.borrow().iter().all(folder) {
            self.send_cold();
        }
        self.cold_reason.set(reason);
        let mut cold = self.cold.borrow_mut();
        cold.extend(op.take().map(|op| (key, op)));
        let is_full = cold.len() >= BATCH;
        drop(cold);
        if is_full {
            self.send_cold();
        }
    }

    /// Gives the pool what was kept back.
    fn send_cold(&self) {
        let mut cold = self.cold.take().into_iter();
        if let Some(first) = cold.next() {
            add(&self.counters.pool_requests, 1);
            let rest: Vec<_> = cold.collect();
            for (key, _) in std::iter::once(&first).chain(&rest) {
                event::record(&Event::Sent { key: (*key).into() });
            }
            self.shared.pool.push_batch(first, rest, &self.inbox, self.cold_reason.get());
        }
    }

    /// Whether this thread has slept since it was last looked at: a slow call that did not was preempted.
    fn has_waited(&self) -> bool {
        if let Some(sim) = &self.shared.sim {
            return sim.has_waited();
        }
        let switches = voluntary_switches();
        self.switches.replace(switches) != switches
    }

    /// Tells the backend that nobody wants the result.
    fn cancel(&self, key: Key) {
        self.send_cold();
        if let Some(op) = self.shared.pool.withdraw(key, &self.inbox) {
            self.complete(key, (op, Err(Errno::CANCELED)));
        } else if let Some(sim) = &self.shared.sim {
            sim.cancel(key);
        } else if let Some(ring) = self.ring.borrow_mut().as_mut() {
            ring.cancel(key);
        }
    }
}

impl Drop for Entered {
    /// Reaps everything in flight, adds up the worker's counters, and restores the thread's worker, in this order: a
    /// request that completed later would write to memory that is gone. Last it raises the panic of a pool thread that
    /// came meanwhile, unless the thread unwinds already.
    fn drop(&mut self) {
        let worker = &self.worker;
        worker.drain();
        spare::keep(self.kept_spares);
        worker.count_passed_on();
        add(&worker.counters.system_calls, sys::take_calls());
        worker.shared.add_stats(&worker.counters);
        CURRENT.set(self.outer.take());
        let panic = worker.inbox.take_panic();
        if let Some(panic) = panic.filter(|_| !std::thread::panicking()) {
            resume_unwind(panic);
        }
    }
}

/// Voluntary context switches of this thread so far, by a call that is counted.
fn voluntary_switches() -> i64 {
    sys::count_call();
    sys::voluntary_switches()
}

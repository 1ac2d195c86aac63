//! One worker: one thread's operations, from the fiber that asks to the backend that answers.
//!
//! A worker has an inbox, slots for operations in flight, a router, counters and, once an operation needs one, a ring.
//! Every operation enters by [`submit`], or with other small files (`many.rs`); completions are taken by
//! [`Worker::turn`], and at the end of a run by its drain, which raises no panic. Neither blocks: the executor sleeps
//! (`task.rs`), and a fiber that finds the ring full waits for room (guard: `a_saturated_ring_keeps_timers_alive`).
//!
//! Protocol. Wakers run on any thread: they set the inbox's `ready` flag and end the sleep. The executor clears
//! `ready`, polls, takes a turn, and sleeps only if `ready` and `filled` are both clear afterwards. A turn clears
//! `filled`, stores each completion in its slot, and then calls the waker that the slot holds. A future that finds its
//! slot pending leaves its waker there on the same thread, so no completion can come between its look and its waker.
//! The inbox explains the sleep itself.
//!
//! Operations run only within [`crate::run`] (guard: `an_operation_outside_a_run_panics`). During a long stretch of
//! inline calls completions are still taken ([`Worker::is_due`]; guard:
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
use crate::descriptor::Fd;
use crate::event::{self, Event};
use crate::inbox::Inbox;
use crate::line::Line;
use crate::op::{Op, Outcome};
use crate::ring::Ring;
use crate::route::{Choice, Reason, Route, Router};
use crate::shared::Shared;
use crate::slots::{Completion, Key, Slots};
use crate::spare;
use crate::stats::{Counters, add};
use crate::sys::{self, Patience};
use crate::time::Timers;

pub(crate) use submit::{Submit, submit, submit_overlapping};

/// Inline calls without a turn after which fibers give way to completions that have come.
const INLINE_STRETCH: u32 = 16;
/// Inline calls without a turn after which fibers give way to timers and to other fibers, even if nothing has
/// completed.
const LONGEST_STRETCH: u32 = 256;

/// Cold files handed to the pool together.
const BATCH: usize = 8;

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) counters: Counters,
    slots: RefCell<Slots>,
    router: Router,
    ring: RefCell<Option<Ring>>,
    /// Cold files of one folder, kept back until they go to the pool together.
    cold: RefCell<Vec<(Key, Op)>>,
    /// The reason why the router sent them there.
    cold_reason: Cell<Reason>,
    /// Fibers that wait for room in the ring, oldest first.
    crowd: RefCell<Line>,
    inline_calls: Cell<u32>,
    /// Turns in a row that left the ring alone.
    put_off: Cell<u32>,
    /// Voluntary context switches of this thread at the last look.
    switches: Cell<i64>,
    /// Number of files that begin no run of transfers, because those of one were slow.
    slow_runs: Cell<u32>,
}

type Completed = std::result::Result<Outcome, Errno>;

#[allow(clippy::large_enum_variant, reason = "a request moves once, to where it runs")]
enum HandedOver {
    InFlight(Key),
    /// The ring has no room; only a completion makes some.
    NoRoom(Op, Choice),
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// The worker of the calling thread.
///
/// # Panics
/// Outside [`crate::run`].
pub(crate) fn current() -> Rc<Worker> {
    let worker = CURRENT.with_borrow(Clone::clone);
    let Some(worker) = worker else { panic!("ferry-io's operations run only within ferry_io::run") };
    worker
}

/// Adds to [`crate::Stats::unwritten_bytes`] of the run on this thread; does nothing outside a run.
///
/// ```
/// use ferry_io::{Options, count_unwritten, run};
///
/// let ((), stats) = run(&Options::default(), async |_io| count_unwritten(4096))?;
/// assert_eq!(stats.unwritten_bytes, 4096);
/// # Ok::<(), ferry_io::SetupError>(())
/// ```
pub fn count_unwritten(bytes: u64) {
    CURRENT.with_borrow(|worker| {
        if let Some(worker) = worker {
            add(&worker.counters.unwritten_bytes, bytes);
        }
    });
}

/// While it lives, the worker is its thread's. Its end reaps every operation in flight and restores the worker of a run
/// around this one.
pub(crate) struct Entered {
    worker: Rc<Worker>,
    outer: Option<Rc<Worker>>,
    kept_spares: bool,
    /// Dropped last, so that reaped operations are recorded.
    _traced: event::Traced,
}

impl Worker {
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
            slow_runs: Cell::new(0),
        })
    }

    pub(crate) fn enter(self: &Rc<Self>) -> Entered {
        let outer = CURRENT.replace(Some(Rc::clone(self)));
        self.switches.set(voluntary_switches());
        let recording = self.shared.recording.as_ref().map(|recording| (recording, self.inbox.number));
        let _traced = event::enter(recording);
        Entered { worker: Rc::clone(self), outer, kept_spares: spare::keep(true), _traced }
    }

    pub(crate) fn splits_requests(&self) -> bool {
        self.router.splits_requests()
    }

    pub(crate) fn may_preload(&self) -> bool {
        self.router.may_preload()
    }

    pub(crate) fn waits_for_entries(&self, device: u64) -> bool {
        self.router.waits_for_entries(device)
    }

    pub(crate) fn may_offload(&self) -> bool {
        self.router.may_offload()
    }

    /// Returns true if fibers should give way so that completions are taken.
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

    /// Returns true if fibers should give way even in the middle of a file.
    pub(crate) fn is_overdue(&self) -> bool {
        self.inline_calls.get() >= LONGEST_STRETCH
    }

    /// The time; in a simulation, the virtual one.
    pub(crate) fn now(&self) -> Instant {
        self.shared.sim.as_ref().map_or_else(Instant::now, |sim| sim.now())
    }

    /// Submits what is queued and takes what has completed, without waiting. If no fiber can run, the ring is left to
    /// the sleep that follows, which submits and waits in one call.
    ///
    /// # Panics
    /// With the panic of a pool thread that performed a request of this worker.
    pub(crate) fn turn(&self) {
        // While this thread unwinds, the panic is kept for the end of the run.
        if self.take_completions()
            && !std::thread::panicking()
            && let Some(panic) = self.inbox.take_panic()
        {
            resume_unwind(panic);
        }
    }

    /// Does the work of a turn without raising; returns true if the inbox held completions.
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
        // After the completions: blocks and permits of abandoned operations have come back.
        spare::give_back();
        if event::is_on() {
            event::sample(self.slots.borrow().in_flight(), self.shared.blocks.in_use());
        }
        has_collected
    }

    /// Sleeps until something completes, the inbox is notified, or a timer or `at_most` has passed.
    pub(crate) fn sleep(&self, at_most: Option<Duration>) {
        let began = event::clock();
        let slept = self.sleep_untold(at_most);
        if slept && event::is_on() {
            event::record_at(began, &Event::Rested { took: event::clock().saturating_sub(began) });
        }
    }

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

    fn drain(&self) {
        // These futures may outlive the run, and their operations may never complete by themselves.
        let waited_for = self.slots.borrow().waited_for();
        for key in waited_for {
            self.cancel(key);
        }
        self.take_completions();
        while self.slots.borrow().in_flight() > 0 {
            // No fiber is polled any more: a set flag must not keep the worker awake.
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
        let lack = if choice.route == Route::Ring { self.ring_lack(&op) } else { None };
        let choice = lack.map_or(choice, |lack| choice.without_ring(lack));
        let operation = op.operation();
        let mut op = Some(op);
        if choice.route == Route::Pool {
            if let Some(op) = &op {
                event::queued(key, op, (Route::Pool, choice.reason), asked);
            }
            if matches!(choice.reason, Reason::Missed | Reason::WithFolder | Reason::RecentlySlow) {
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

    /// Keeps a cold file back, because the folder's others are usually asked for next: one hand-over serves all of
    /// them, and their reads are in flight together. Takes `op` if it is such a file.
    fn join_cold(&self, key: Key, op: &mut Option<Op>, reason: Reason) {
        let Some(Op::Load { dir, .. }) = &op else { return };
        if !self.keeps_cold_of(dir) {
            self.send_cold();
            self.cold_reason.set(reason);
        }
        let mut cold = self.cold.borrow_mut();
        cold.extend(op.take().map(|op| (key, op)));
        let is_full = cold.len() >= BATCH;
        drop(cold);
        if is_full {
            self.send_cold();
        }
    }

    /// Returns the route of a file of the folder whose cold files are kept back: it joins them unasked.
    fn joins_cold(&self, op: &Op) -> Option<Choice> {
        let Op::Load { dir, .. } = op else { return None };
        let joins = self.cold_reason.get() == Reason::Missed && self.keeps_cold_of(dir);
        joins.then_some(Choice { route: Route::Pool, patience: Patience::Wait, reason: Reason::WithFolder })
    }

    /// Returns true if cold files of this folder are kept back.
    fn keeps_cold_of(&self, dir: &Fd) -> bool {
        matches!(self.cold.borrow().first(), Some((_, Op::Load { dir: other, .. })) if Arc::ptr_eq(other, dir))
    }

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

    /// Returns true if this thread has slept since the last look. A slow call during which it did not was only
    /// preempted.
    fn has_waited(&self) -> bool {
        if let Some(sim) = &self.shared.sim {
            return sim.has_waited();
        }
        let switches = voluntary_switches();
        self.switches.replace(switches) != switches
    }

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
    /// Reaps everything in flight, adds up the counters, and restores the thread's worker, in this order: a request
    /// that completed later would write to freed memory. Raises last: a pool thread's panic must not keep the rest from
    /// happening.
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

fn voluntary_switches() -> i64 {
    sys::count_call();
    sys::voluntary_switches()
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;

//! Chooses the running worker: one at a time, though each has its own thread.
//!
//! Each worker's thread has a *seat*, and the thread that holds the baton runs. It passes the baton on when it would
//! sleep, when it waits for other workers to end, and sometimes between two calls. The seed chooses the next worker
//! among those that are ready. If none is ready, time passes until one is (`schedule.rs`). So nothing depends on the
//! machine's scheduler. Inboxes and wakers need not know the simulation, because the seats look into them.
//!
//! Rejected: polling all workers on one thread. Each would need its own set of all thread-local variables, and could be
//! interrupted only between two polls of its outermost future.

use crate::concurrent::thread::{self, JoinHandle, Thread};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::schedule::{Schedule, Sim};
use crate::inbox::Inbox;
use crate::slots::{Completion, Key};

/// Seat of the first worker: the thread that called [`crate::run`].
const FIRST: usize = 0;

/// One worker's place in the schedule.
#[derive(Default)]
pub(super) struct Seat {
    state: State,
    thread: Option<Thread>,
    inbox: Option<Arc<Inbox>>,
    /// Index of the shared jobs for which the worker was started.
    crew: Option<usize>,
    pub(super) in_ring: usize,
    /// Completions of the ring that the worker has not taken.
    pub(super) completed: Vec<(Key, Completion)>,
    /// True if the last inline call blocked.
    pub(super) has_waited: bool,
}

#[derive(Default, Clone, Copy)]
enum State {
    /// Running or ready to run.
    #[default]
    Ready,
    Asleep {
        /// Time of the next timer, in virtual nanoseconds.
        timer_ns: Option<u64>,
        looks_for_stop: bool,
    },
    /// Waiting until all workers of a crew have left.
    Joins(usize),
    Left,
}

/// Seat of the calling thread; passes the baton on when dropped.
struct Seated {
    sim: Arc<Sim>,
    number: usize,
}

impl Drop for Seated {
    fn drop(&mut self) {
        let mut schedule = self.sim.lock();
        schedule.seats[self.number].state = State::Left;
        let next = self.sim.next(&mut schedule);
        self.sim.hand_to(schedule, next);
    }
}

impl Schedule {
    pub(super) fn first_seat() -> Vec<Seat> {
        vec![Seat { thread: Some(thread::current()), ..Seat::default() }]
    }

    pub(super) fn has_others(&self) -> bool {
        self.seats.iter().filter(|seat| !matches!(seat.state, State::Left)).count() > 1
    }

    fn ready(&self, now_ns: u64, is_stopped: bool) -> Vec<usize> {
        let is_ready = |seat: &Seat| match seat.state {
            State::Ready => true,
            State::Asleep { timer_ns, looks_for_stop } => {
                let is_told = seat.inbox.as_ref().is_some_and(|inbox| inbox.is_ready() || inbox.is_filled());
                let is_due = timer_ns.is_some_and(|at| at <= now_ns);
                is_told || is_due || !seat.completed.is_empty() || looks_for_stop && is_stopped
            }
            State::Joins(crew) => {
                let is_of_crew =
                    |other: &Seat| other.crew == Some(crew) && !matches!(other.state, State::Left);
                !self.seats.iter().any(is_of_crew)
            }
            State::Left => false,
        };
        (0..self.seats.len()).filter(|&number| is_ready(&self.seats[number])).collect()
    }

    /// Returns the earliest timer of the sleeping workers.
    fn next_timer(&self) -> Option<u64> {
        let timer = |seat: &Seat| match seat.state {
            State::Asleep { timer_ns, .. } => timer_ns,
            State::Ready | State::Joins(_) | State::Left => None,
        };
        self.seats.iter().filter_map(timer).min()
    }
}

impl Sim {
    /// Starts a thread that runs `work` as a worker of a crew, in its turns.
    ///
    /// # Errors
    /// Those of pthread_create(3).
    pub(crate) fn start_worker(
        self: &Arc<Self>,
        crew: usize,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<JoinHandle<()>> {
        let number = {
            let mut schedule = self.lock();
            schedule.seats.push(Seat { crew: Some(crew), ..Seat::default() });
            schedule.seats.len() - 1
        };
        let sim = Arc::clone(self);
        let started = thread::Builder::new().name("ferry-worker".to_owned()).spawn(move || {
            sim.lock().seats[number].thread = Some(thread::current());
            sim.wait_for_turn(number);
            let _seated = Seated { sim, number };
            work();
        });
        if started.is_err() {
            self.lock().seats[number].state = State::Left;
        }
        started
    }

    /// Sets the inbox of the running thread's worker.
    pub(crate) fn introduce(&self, inbox: &Arc<Inbox>) {
        self.lock().running().inbox = Some(Arc::clone(inbox));
    }

    /// Puts the calling worker to sleep until its inbox has something, its timer is due or, with `looks_for_stop`, the
    /// run is to stop.
    ///
    /// # Panics
    /// On the first worker's thread, if nothing can happen any more.
    pub(crate) fn sleep(&self, timer: Option<Instant>, looks_for_stop: bool) {
        let timer_ns = timer.map(|timer| self.ns_of(timer));
        self.pause(State::Asleep { timer_ns, looks_for_stop });
    }

    pub(crate) fn join(&self, crew: usize) {
        self.pause(State::Joins(crew));
    }

    pub(super) fn give_way(&self) {
        self.pause(State::Ready);
    }

    fn pause(&self, state: State) {
        let mut schedule = self.lock();
        let own = schedule.holder;
        schedule.seats[own].state = state;
        let next = self.next(&mut schedule);
        if next != Some(own) {
            self.hand_to(schedule, next);
            self.wait_for_turn(own);
            schedule = self.lock();
        }
        schedule.seats[own].state = State::Ready;
        if own == FIRST && std::mem::take(&mut schedule.is_deadlocked) {
            drop(schedule);
            panic!(
                "simulation with seed {}: deadlock: no operation is in flight, no timer is set, no fiber can run",
                self.seed
            );
        }
    }

    /// Advances time until a worker is ready; returns `None` if none ever will be.
    fn next(&self, schedule: &mut Schedule) -> Option<usize> {
        loop {
            let ready = schedule.ready(self.clock_ns(), self.is_stopped());
            let moment = schedule.moments.first_key_value().map(|(&(at, _), _)| at);
            if !ready.is_empty() && (moment.is_none() || schedule.chance.happens(600_000)) {
                let chosen = schedule.chance.below(ready.len() as u64);
                return usize::try_from(chosen).ok().and_then(|chosen| ready.get(chosen).copied());
            }
            match (moment, schedule.next_timer()) {
                (None, None) => {
                    schedule.is_deadlocked = true;
                    return None;
                }
                (Some(at), timer) if timer.is_none_or(|timer| at <= timer) => self.step(schedule),
                (_, Some(timer)) => self.set_clock(timer),
                (Some(_), None) => self.step(schedule),
            }
        }
    }

    /// Passes the baton to a worker; in a deadlock to the first, which reports it.
    fn hand_to(&self, mut schedule: MutexGuard<'_, Schedule>, next: Option<usize>) {
        let next = next.unwrap_or(FIRST);
        schedule.holder = next;
        let thread = schedule.seats[next].thread.clone();
        self.holder.store(next, Ordering::Release);
        drop(schedule);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    fn wait_for_turn(&self, own: usize) {
        while self.holder.load(Ordering::Acquire) != own {
            thread::park();
        }
    }
}

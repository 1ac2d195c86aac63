//! The thread pool: blocking calls away from the workers.
//!
//! Requests wait in one queue, in order of arrival. A thread takes one, runs it as plain system calls, and delivers the
//! completion to the worker that asked. A request may be a batch, such as a folder's cold files: the thread begins all
//! of their reads before it waits for any. A request that may wait without end gets a thread for a short while and then
//! queues again. The queue is bounded by the operations in flight, which fibers, blocks and descriptors bound.
//!
//! Protocol. Everything but the sleep happens under one lock. `push` queues a request, then wakes one idle thread, or
//! starts one if more requests can begin than threads are idle. A thread looks through the queue under the lock before
//! it sleeps and after it wakes; the sleep releases the lock in the same step, so no request can be queued between the
//! look and the sleep. A thread that was woken counts as idle until it has the lock again; if another thread takes the
//! request first, the woken one sleeps again. Requests of one lane begin one after another: the thread that finishes
//! one looks for the next before it sleeps. `close` sets `closing`, wakes all and joins them; a thread ends when it
//! then finds no request that can begin.
//!
//! Invariants: a thread never touches a fiber, it only delivers (guard: the types). Every request is answered or given
//! back (guards: `every_request_is_answered_once_however_many_threads_there_are`,
//! `what_is_queued_when_the_pool_ends_is_answered`, `a_run_that_ends_with_operations_in_flight_reaps_them`). A panic
//! ends the run, and its request is answered all the same (guards: `a_panic_on_a_pool_thread_ends_the_run`,
//! `a_batch_is_answered_whichever_of_its_files_panics`).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use rustix::io::Errno;

use crate::concurrent::atomic::{AtomicU64, Ordering};
use crate::concurrent::thread::{self, JoinHandle};
use crate::concurrent::{Condvar, Mutex, MutexGuard};
use crate::error::Operation;
use crate::event::{self, Recording, Role};
use crate::inbox::Inbox;
use crate::op::{Op, Outcome};
use crate::route::Reason;
use crate::sim::Sim;
use crate::slots::{Completion, Key};
use crate::sys::{self, Patience, Wait};

/// Writes joined to one call. More gain little, and the file's other blocks are filled meanwhile (docs/decisions/0006).
const MOST_JOINED: usize = 2;

struct Request {
    key: Key,
    op: Op,
    /// The rest of a batch.
    rest: Vec<(Key, Op)>,
    owner: Arc<Inbox>,
    lane: Option<Lane>,
    /// Set if the kernel was asked before and its answer was not in memory.
    missed: bool,
    /// Progress of a request that may wait without end.
    wait: Option<Box<Wait>>,
}

impl Request {
    fn is(&self, key: Key, owner: &Arc<Inbox>) -> bool {
        self.key == key && Arc::ptr_eq(&self.owner, owner)
    }
}

/// A request that may wait without end, while it has a thread.
struct Waiter {
    key: Key,
    owner: Arc<Inbox>,
    given_up: bool,
}

/// The buffered reads, or the buffered writes, of one file: a single thread performs them in order. Several threads
/// would only contend for the inode's lock, and reads in order keep the kernel reading ahead.
pub(crate) type Lane = (usize, Operation);

fn lane_of(op: &Op) -> Option<Lane> {
    if let Op::Read { file, .. } | Op::Write { file, .. } = op
        && !file.is_direct()
    {
        return Some((Arc::as_ptr(file).addr(), op.operation()));
    }
    None
}

/// Offset behind a write's last byte; `None` for other operations.
fn end_of(op: &Op) -> Option<u64> {
    let Op::Write { at, .. } = op else { return None };
    at.checked_add(sys::bytes_to_write(op)?.len() as u64)
}

/// The performer of a thread's calls: the kernel or the simulation.
pub(crate) trait Calls {
    /// Set if each request's beginning and end are recorded.
    const IS_RECORDED: bool;

    fn perform(&mut self, op: &mut Op, patience: Patience) -> Result<Outcome, Errno>;

    /// Performs consecutive writes of one file in one call; returns the bytes written of all.
    fn write_joined(&mut self, ops: &[&Op]) -> Result<usize, Errno>;
}

struct Kernel;

impl Calls for Kernel {
    const IS_RECORDED: bool = true;

    fn perform(&mut self, op: &mut Op, patience: Patience) -> Result<Outcome, Errno> {
        sys::perform(op, patience)
    }

    fn write_joined(&mut self, ops: &[&Op]) -> Result<usize, Errno> {
        sys::write_joined(ops.iter().copied())
    }
}

/// Makes calls for a worker. A panic is kept for the worker, and the request is answered: no other thread would answer
/// it.
fn guarded<T>(owner: &Inbox, calls: impl FnOnce() -> T) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(calls)).map_err(|panic| {
        owner.deliver_panic(panic);
        Errno::CANCELED
    })
}

/// A request in the hands of a thread, call by call. Everything is begun before anything is waited for. Consecutive
/// writes are one call, and one more for each write that it did not reach.
pub(crate) struct Work {
    /// Results; EAGAIN until there is one.
    requests: Vec<(Key, Completion)>,
    owner: Arc<Inbox>,
    lane: Option<Lane>,
    missed: bool,
    calls: VecDeque<Call>,
    begun: Instant,
}

#[derive(Clone, Copy)]
enum Call {
    /// All writes at once.
    Joined,
    /// One request, by its index.
    One(usize, Patience),
}

impl Work {
    fn new(request: Request, begun: Instant) -> Self {
        let Request { key, op, rest, owner, lane, missed, .. } = request;
        let unanswered = |(key, op)| (key, (op, Err(Errno::AGAIN)));
        let requests: Vec<_> = std::iter::once((key, op)).chain(rest).map(unanswered).collect();
        let calls = match requests.len() {
            1 => VecDeque::from([Call::One(0, Patience::Wait)]),
            _ if lane.is_some() => VecDeque::from([Call::Joined]),
            several => (0..several).map(|at| Call::One(at, Patience::Begin)).collect(),
        };
        Self { requests, owner, lane, missed, calls, begun }
    }

    /// Makes the next call; returns false if it was the last.
    pub(crate) fn step<C: Calls>(&mut self, calls: &mut C) -> bool {
        match self.calls.pop_front() {
            Some(Call::Joined) => self.write_joined(calls),
            Some(Call::One(at, patience)) => self.perform_one(calls, at, patience),
            None => {}
        }
        !self.calls.is_empty()
    }

    fn perform_one<C: Calls>(&mut self, calls: &mut C, at: usize, patience: Patience) {
        let is_alone = self.requests.len() == 1;
        let Some((key, (op, result))) = self.requests.get_mut(at) else { return };
        // A request begun before, or written with others, has been recorded.
        if C::IS_RECORDED && (is_alone || patience == Patience::Begin) {
            event::started(&self.owner, *key);
        }
        *result = guarded(&self.owner, || calls.perform(op, patience)).flatten();
        if patience == Patience::Begin && matches!(result, Err(Errno::AGAIN)) {
            self.calls.push_back(Call::One(at, Patience::Wait));
        } else if C::IS_RECORDED {
            event::finished(&self.owner, [*key]);
        }
    }

    fn write_joined<C: Calls>(&mut self, calls: &mut C) {
        if C::IS_RECORDED {
            self.requests.iter().for_each(|(key, _)| event::started(&self.owner, *key));
        }
        let ops: Vec<_> = self.requests.iter().map(|(_, (op, _))| op).collect();
        let written = guarded(&self.owner, || calls.write_joined(&ops)).flatten().unwrap_or(0);
        let sizes = ops.iter().map(|op| sys::bytes_to_write(op).map_or(0, <[u8]>::len)).collect();
        for (at, count) in share_out(written, sizes).enumerate() {
            if count == 0 {
                self.calls.push_back(Call::One(at, Patience::Wait));
            } else if let Some((key, (_, result))) = self.requests.get_mut(at) {
                *result = Ok(Outcome::Count(count));
                if C::IS_RECORDED {
                    event::finished(&self.owner, [*key]);
                }
            }
        }
    }

    /// Delivers the answers and returns the lane to be left.
    pub(crate) fn deliver(self, now: Instant) -> Option<Lane> {
        if self.missed {
            // A batch in memory takes longer than one call, though less than one wait.
            let calls = if self.requests.len() > 1 { 2 } else { 1 };
            self.owner.fruitless.observe(now.saturating_duration_since(self.begun) / calls);
        }
        self.owner.deliver(self.requests);
        self.lane
    }
}

fn perform(request: Request) {
    let mut work = Work::new(request, Instant::now());
    while work.step(&mut Kernel) {}
    work.deliver(Instant::now());
}

/// Each write's share of the bytes that one call wrote.
fn share_out(mut written: usize, sizes: Vec<usize>) -> impl Iterator<Item = usize> {
    sizes.into_iter().map(move |size| {
        let share = size.min(written);
        written -= share;
        share
    })
}

/// Performs a request on the calling worker's thread, unless it may wait without end.
fn perform_here(request: Request) {
    if request.wait.is_none() {
        return perform(request);
    }
    let Request { key, op, owner, .. } = request;
    owner.deliver([(key, (op, Err(Errno::AGAIN)))]);
}

#[derive(Default)]
struct State {
    queue: VecDeque<Request>,
    /// Lanes whose requests a thread is performing.
    busy: Vec<Lane>,
    waiters: Vec<Waiter>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    /// Number of simulated threads.
    simulated: usize,
    closing: bool,
}

impl State {
    fn is_runnable(&self, request: &Request) -> bool {
        request.lane.is_none_or(|lane| !self.busy.contains(&lane))
    }

    /// Number of requests that threads could begin now, one of each lane.
    fn runnable(&self) -> usize {
        let is_first = |at: usize, lane| !self.queue.iter().take(at).any(|before| before.lane == Some(lane));
        let can_begin = |(at, request): &(usize, &Request)| match request.lane {
            Some(lane) => !self.busy.contains(&lane) && is_first(*at, lane),
            None => true,
        };
        self.queue.iter().enumerate().filter(can_begin).count()
    }

    /// Takes the first request that can begin.
    fn take(&mut self) -> Option<Request> {
        let at = self.queue.iter().position(|request| self.is_runnable(request))?;
        let mut request = self.queue.remove(at)?;
        self.busy.extend(request.lane);
        if request.lane.is_some() {
            self.join(&mut request, at);
        }
        if request.wait.is_some() {
            let owner = Arc::clone(&request.owner);
            self.waiters.push(Waiter { key: request.key, owner, given_up: false });
        }
        Some(request)
    }

    /// Moves the writes that follow `first` without a gap into its request.
    fn join(&mut self, first: &mut Request, from: usize) {
        let mut end = end_of(&first.op);
        let mut at = from;
        while end.is_some() && first.rest.len() + 1 < MOST_JOINED {
            let Some(next) = self.queue.get(at) else { return };
            let begins_there = matches!(next.op, Op::Write { at, .. } if Some(at) == end);
            if next.lane != first.lane || !begins_there || !Arc::ptr_eq(&next.owner, &first.owner) {
                at += 1;
                continue;
            }
            let Some(next) = self.queue.remove(at) else { return };
            end = end_of(&next.op);
            first.rest.push((next.key, next.op));
        }
    }

    fn leave(&mut self, lane: Option<Lane>) {
        if let Some(lane) = lane {
            self.busy.retain(|&busy| busy != lane);
        }
    }

    /// Ends a waiter's turn; returns true if it was given up meanwhile.
    fn end_while(&mut self, request: &Request) -> bool {
        let at = self.waiters.iter().position(|waiter| request.is(waiter.key, &waiter.owner));
        at.is_some_and(|at| self.waiters.swap_remove(at).given_up)
    }
}

/// The pool, as workers and threads share it.
pub(crate) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    most: usize,
    /// System calls of threads that have ended.
    calls: AtomicU64,
    /// Number of threads started.
    started: AtomicU64,
    recording: Option<Arc<Recording>>,
    /// Set if the threads are simulated.
    sim: Option<Arc<Sim>>,
}

impl Pool {
    /// A pool of at most `most` threads; none is started yet.
    pub(crate) fn new(most: usize, recording: Option<Arc<Recording>>, sim: Option<Arc<Sim>>) -> Arc<Self> {
        Arc::new(Self {
            sim,
            state: Mutex::default(),
            work: Condvar::new(),
            most,
            calls: AtomicU64::new(0),
            started: AtomicU64::new(0),
            recording,
        })
    }

    /// Queues an operation. If no thread can be started at all, the caller performs it.
    pub(crate) fn push(self: &Arc<Self>, key: Key, op: Op, owner: &Arc<Inbox>, reason: Reason) {
        self.push_batch((key, op), Vec::new(), owner, reason);
    }

    /// Queues an operation with others that one thread is to begin together.
    pub(crate) fn push_batch(
        self: &Arc<Self>,
        (key, op): (Key, Op),
        rest: Vec<(Key, Op)>,
        owner: &Arc<Inbox>,
        reason: Reason,
    ) {
        let lane = if reason == Reason::Overlaps { lane_of(&op) } else { None };
        // In a simulation, nothing waits without end.
        let waits_without_end = self.sim.is_none() && sys::may_wait_for_ever(&op);
        let wait = waits_without_end.then(Box::default);
        let missed = reason == Reason::Missed;
        let mut state = self.lock();
        state.queue.push_back(Request { key, op, rest, owner: Arc::clone(owner), lane, missed, wait });
        let runnable = state.runnable();
        if let Some(sim) = &self.sim {
            self.find_simulated(sim, state, runnable);
            return;
        }
        if runnable <= state.idle {
            drop(state);
            if runnable > 0 {
                self.work.notify_one();
            }
            return;
        }
        if state.threads.len() < self.most {
            let pool = Arc::clone(self);
            let spawned = thread::Builder::new().name("ferry-pool".to_owned()).spawn(move || pool.work());
            match spawned {
                Ok(thread) => {
                    state.threads.push(thread);
                    self.started.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) if state.threads.is_empty() => {
                    let refused = state.queue.pop_back();
                    drop(state);
                    if let Some(refused) = refused {
                        perform_here(refused);
                    }
                }
                // The running threads will reach it.
                Err(_) => {}
            }
        }
    }

    /// Lets the simulation wake or start a thread, by the same rule.
    fn find_simulated(&self, sim: &Sim, mut state: MutexGuard<'_, State>, runnable: usize) {
        let is_new = runnable > state.idle;
        if is_new && state.simulated >= self.most || runnable == 0 {
            return;
        }
        if is_new {
            state.simulated += 1;
        }
        drop(state);
        sim.need_thread(is_new);
    }

    /// Wakes an idle simulated thread; returns false if none is idle.
    pub(crate) fn wake_simulated(&self) -> bool {
        let mut state = self.lock();
        let is_one = state.idle > 0;
        state.idle -= usize::from(is_one);
        is_one
    }

    /// Leaves a lane and takes a request for a simulated thread, which becomes idle if there is none.
    pub(crate) fn take_simulated(&self, left: Option<Lane>, now: Instant) -> Option<Work> {
        let mut state = self.lock();
        state.leave(left);
        let Some(request) = state.take() else {
            state.idle += 1;
            return None;
        };
        drop(state);
        Some(Work::new(request, now))
    }

    /// Takes a request back if no thread has begun it. One that may wait without end is given up at its next turn.
    pub(crate) fn withdraw(&self, key: Key, owner: &Arc<Inbox>) -> Option<Op> {
        let mut state = self.lock();
        for request in state.queue.iter_mut().filter(|request| Arc::ptr_eq(&request.owner, owner)) {
            if request.key == key
                && let Some((next, op)) = request.rest.pop()
            {
                request.key = next;
                return Some(std::mem::replace(&mut request.op, op));
            }
            if let Some(at) = request.rest.iter().position(|&(other, _)| other == key) {
                return Some(request.rest.swap_remove(at).1);
            }
        }
        let at = state.queue.iter().position(|request| request.is(key, owner));
        let Some(at) = at else {
            let waiter = state.waiters.iter_mut().find(|w| w.key == key && Arc::ptr_eq(&w.owner, owner));
            if let Some(waiter) = waiter {
                waiter.given_up = true;
            }
            return None;
        };
        state.queue.remove(at).map(|request| request.op)
    }

    /// Ends the threads once the queue is empty, and joins them.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.lock();
            state.closing = true;
            std::mem::take(&mut state.threads)
        };
        self.work.notify_all();
        for thread in threads {
            // Panics of calls are caught; the thread's own was printed.
            thread.join().ok();
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Number of threads started.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    fn work(&self) {
        let number = |recording: &Arc<Recording>| recording.add_thread(Role::Pool);
        let recording = self.recording.as_ref();
        let _traced = event::enter(recording.map(|recording| (recording, number(recording))));
        let mut lane = None;
        while let Some(mut request) = self.next(lane) {
            lane = request.lane;
            if let Some(wait) = &mut request.wait {
                event::started(&request.owner, request.key);
                let (op, owner) = (&mut request.op, &request.owner);
                let answer = guarded(owner, || wait.go_on(op)).unwrap_or_else(|errno| Some(Err(errno)));
                self.go_on(request, answer);
                continue;
            }
            perform(request);
        }
        self.calls.fetch_add(sys::take_calls(), Ordering::Relaxed);
    }

    /// Delivers the answer of a request that may wait without end, or queues it again.
    fn go_on(&self, request: Request, answer: Option<Result<Outcome, Errno>>) {
        let mut state = self.lock();
        let given_up = state.end_while(&request) || state.closing;
        let answer = match answer {
            None if given_up => Err(Errno::CANCELED),
            None => return state.queue.push_back(request),
            Some(answer) => answer,
        };
        drop(state);
        let Request { key, op, owner, .. } = request;
        event::finished(&owner, [key]);
        owner.deliver([(key, (op, answer))]);
    }

    /// Leaves a lane and waits for a request; `None` once the pool closes and no request can begin.
    fn next(&self, left: Option<Lane>) -> Option<Request> {
        let mut state = self.lock();
        state.leave(left);
        loop {
            if let Some(request) = state.take() {
                return Some(request);
            }
            if state.closing {
                return None;
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

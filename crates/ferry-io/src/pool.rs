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

mod work;

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use rustix::io::Errno;

use crate::concurrent::atomic::{AtomicU64, Ordering};
use crate::concurrent::thread::{self, JoinHandle};
use crate::concurrent::{Condvar, Mutex, MutexGuard};
use crate::event::{self, Recording, Role};
use crate::inbox::Inbox;
use crate::op::{Op, Outcome};
use crate::route::Reason;
use crate::sim::Sim;
use crate::slots::Key;
use crate::sys;

pub(crate) use work::{Calls, Lane, Work};
use work::{Request, end_of, guarded, lane_of, perform, perform_here};

/// Writes joined to one call. More gain little, and the file's other blocks are filled meanwhile (docs/decisions/0006).
const MOST_JOINED: usize = 2;

/// A request that may wait without end, while it has a thread.
struct Waiter {
    key: Key,
    owner: Arc<Inbox>,
    given_up: bool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Request>,
    busy: Vec<Lane>,
    waiters: Vec<Waiter>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
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

pub(crate) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    most: usize,
    /// System calls of threads that have ended.
    calls: AtomicU64,
    started: AtomicU64,
    recording: Option<Arc<Recording>>,
    sim: Option<Arc<Sim>>,
}

impl Pool {
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

//! Blocking threads: the POSIX backend's way of waiting, and one of the routes.
//!
//! Requests wait in one queue, first come first served; a thread takes one, runs it as plain system calls, and
//! delivers the completion to the worker that asked. Threads are started when a request finds none idle, up to the
//! options' bound, and end with the runtime. What may wait without end has a thread for a short while and then stands in
//! line again, so that it keeps no thread from the others. Invariants: a thread never touches a fiber, it only delivers (guard: the
//! types); when the pool is dropped every queued request has been run or given back (guard:
//! `a_run_that_ends_with_operations_in_flight_reaps_them`). The queue is bounded by the operations in flight, which fibers,
//! blocks and descriptors bound.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::io::Errno;

use crate::error::Operation;
use crate::inbox::Inbox;
use crate::op::{Op, Outcome};
use crate::route::Reason;
use crate::slots::Key;
use crate::sys::{self, Patience, Wait};

struct Request {
    key: Key,
    op: Op,
    owner: Arc<Inbox>,
    lane: Option<Lane>,
    /// Whether the kernel was asked before, and said that it would wait.
    missed: bool,
    /// How far it has come, if it may wait without end.
    wait: Option<Box<Wait>>,
}

impl Request {
    fn is(&self, key: Key, owner: &Arc<Inbox>) -> bool {
        self.key == key && Arc::ptr_eq(&self.owner, owner)
    }
}

/// A request that may wait without end and has a thread for a while.
struct Waiter {
    key: Key,
    owner: Arc<Inbox>,
    given_up: bool,
}

/// The reads, or the writes, of one file in order: one thread does them all, one after another. A file's writes are
/// serialised by its inode's lock anyway, for which several threads would only take turns at spinning, and reads in order
/// keep the kernel reading ahead.
type Lane = (usize, Operation);

/// The lane of a request that belongs to one.
fn lane_of(op: &Op) -> Option<Lane> {
    if let Op::Read { file, .. } | Op::Write { file, .. } = op {
        return Some((Arc::as_ptr(file).addr(), op.operation()));
    }
    None
}

/// Performs a request on the thread that asked; not one that may wait without end.
fn perform_here(request: Request) {
    let Request { key, mut op, owner, wait, .. } = request;
    let result = if wait.is_some() { Err(Errno::AGAIN) } else { sys::perform(&mut op, Patience::Wait) };
    owner.deliver(key, (op, result));
}

#[derive(Default)]
struct State {
    queue: VecDeque<Request>,
    /// Lanes in which a thread is at work.
    busy: Vec<Lane>,
    waiters: Vec<Waiter>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    closing: bool,
}

impl State {
    fn is_runnable(&self, request: &Request) -> bool {
        request.lane.is_none_or(|lane| !self.busy.contains(&lane))
    }

    /// Requests that threads could begin now, one of each lane.
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
        let request = self.queue.remove(at)?;
        self.busy.extend(request.lane);
        if request.wait.is_some() {
            let owner = Arc::clone(&request.owner);
            self.waiters.push(Waiter { key: request.key, owner, given_up: false });
        }
        Some(request)
    }

    /// The end of a waiter's while; whether it was given up meanwhile.
    fn end_while(&mut self, request: &Request) -> bool {
        let at = self.waiters.iter().position(|waiter| request.is(waiter.key, &waiter.owner));
        at.is_some_and(|at| self.waiters.swap_remove(at).given_up)
    }
}

/// What the threads share with the workers.
pub(crate) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    most: usize,
    /// System calls of threads that have ended.
    calls: AtomicU64,
    /// The most threads that there have been.
    started: AtomicU64,
}

impl Pool {
    /// A pool of at most `most` threads; none is started yet.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            work: Condvar::new(),
            most,
            calls: AtomicU64::new(0),
            started: AtomicU64::new(0),
        })
    }

    /// Queues a request; after those before it on the same file, if it overlaps. If no thread can be had at all, the
    /// caller does it itself.
    pub(crate) fn push(self: &Arc<Self>, key: Key, op: Op, owner: &Arc<Inbox>, reason: Reason) {
        let lane = if reason == Reason::Overlaps { lane_of(&op) } else { None };
        let wait = sys::may_wait_for_ever(&op).then(Box::default);
        let missed = reason == Reason::Missed;
        let mut state = self.lock();
        state.queue.push_back(Request { key, op, owner: Arc::clone(owner), lane, missed, wait });
        let runnable = state.runnable();
        if runnable <= state.idle {
            drop(state);
            if runnable > 0 {
                self.work.notify_one();
            }
            return;
        }
        if state.threads.len() < self.most {
            let pool = Arc::clone(self);
            let spawned =
                std::thread::Builder::new().name("ferry-pool".to_owned()).spawn(move || pool.work());
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
                // Those that run will come to it.
                Err(_) => {}
            }
        }
    }

    /// Takes a request back if no thread has begun it; one that waits without end is given up soon.
    pub(crate) fn withdraw(&self, key: Key, owner: &Arc<Inbox>) -> Option<Op> {
        let mut state = self.lock();
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

    /// Ends the threads once the queue is empty, and waits for them.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.lock();
            state.closing = true;
            std::mem::take(&mut state.threads)
        };
        self.work.notify_all();
        for thread in threads {
            // A panic in a system call wrapper has been printed by its thread.
            thread.join().ok();
        }
    }

    /// System calls made by threads that have ended.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Threads that were started.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    fn work(&self) {
        let mut lane = None;
        while let Some(mut request) = self.next(lane) {
            lane = request.lane;
            if let Some(wait) = &mut request.wait {
                let answer = wait.go_on(&mut request.op);
                self.go_on(request, answer);
                continue;
            }
            let Request { key, mut op, owner, missed, .. } = request;
            let begun = Instant::now();
            let result = sys::perform(&mut op, Patience::Wait);
            if missed {
                owner.fruitless.observe(begun.elapsed());
            }
            owner.deliver(key, (op, result));
        }
        self.calls.fetch_add(sys::take_calls(), Ordering::Relaxed);
    }

    /// Delivers the answer of a request that waits without end, or puts it back behind the others.
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
        owner.deliver(key, (op, answer));
    }

    /// Leaves a lane and waits for a request; `None` when the pool is closing and nothing is left for this thread.
    fn next(&self, left: Option<Lane>) -> Option<Request> {
        let mut state = self.lock();
        if let Some(left) = left {
            state.busy.retain(|&busy| busy != left);
        }
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

#[cfg(test)]
mod tests;

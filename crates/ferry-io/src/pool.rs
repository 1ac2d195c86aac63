//! Blocking threads: the POSIX backend's way of waiting, and one of the routes.
//!
//! Requests wait in one queue, first come first served; a thread takes one, runs it as plain system calls, and
//! delivers the completions to the worker that asked. A request is one operation or a batch: a folder's cold files, whose
//! reads the thread begins all before it waits for any, with one hand-over for all of them. Threads are started when a request finds none idle, up to the
//! options' bound, and end with the runtime. Invariants: a thread never touches a fiber, it only delivers (guard: the
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
use crate::op::Op;
use crate::slots::{Completion, Key};
use crate::sys::{self, Patience};

struct Request {
    batch: Vec<(Key, Op)>,
    owner: Arc<Inbox>,
    lane: Option<Lane>,
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

#[derive(Default)]
struct State {
    queue: VecDeque<Request>,
    /// Lanes in which a thread is at work.
    busy: Vec<Lane>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    closing: bool,
}

impl State {
    fn is_runnable(&self, request: &Request) -> bool {
        request.lane.is_none_or(|lane| !self.busy.contains(&lane))
    }

    /// Requests that a thread could begin now.
    fn runnable(&self) -> usize {
        if self.busy.is_empty() {
            return self.queue.len();
        }
        self.queue.iter().filter(|request| self.is_runnable(request)).count()
    }

    /// Takes the first request that can begin.
    fn take(&mut self) -> Option<Request> {
        let at = self.queue.iter().position(|request| self.is_runnable(request))?;
        let request = self.queue.remove(at)?;
        self.busy.extend(request.lane);
        Some(request)
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

    /// Queues an operation; after those before it on the same file, if `in_order`. If no thread can be had at all, it is
    /// answered with EAGAIN.
    pub(crate) fn push(self: &Arc<Self>, key: Key, op: Op, owner: &Arc<Inbox>, in_order: bool) {
        let lane = if in_order { lane_of(&op) } else { None };
        self.push_request(Request { batch: vec![(key, op)], owner: Arc::clone(owner), lane });
    }

    /// Queues operations that one thread begins together.
    pub(crate) fn push_batch(self: &Arc<Self>, batch: Vec<(Key, Op)>, owner: &Arc<Inbox>) {
        self.push_request(Request { batch, owner: Arc::clone(owner), lane: None });
    }

    fn push_request(self: &Arc<Self>, request: Request) {
        let mut state = self.lock();
        state.queue.push_back(request);
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
                    if let Some(Request { batch, owner, .. }) = refused {
                        owner.deliver(batch.into_iter().map(|(key, op)| (key, (op, Err(Errno::AGAIN)))));
                    }
                }
                // Those that run will come to it.
                Err(_) => {}
            }
        }
    }

    /// Takes an operation back if no thread has begun it.
    pub(crate) fn withdraw(&self, key: Key, owner: &Arc<Inbox>) -> Option<Op> {
        let mut state = self.lock();
        let mine = state.queue.iter_mut().filter(|request| Arc::ptr_eq(&request.owner, owner));
        for request in mine {
            if let Some(at) = request.batch.iter().position(|&(other, _)| other == key) {
                // A batch that is left empty is taken and done in no time.
                return Some(request.batch.swap_remove(at).1);
            }
        }
        None
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
        while let Some(request) = self.next(lane) {
            let Request { batch, owner, .. } = request;
            lane = request.lane;
            let count = u32::try_from(batch.len()).unwrap_or(u32::MAX).max(1);
            let begun = Instant::now();
            let done = perform(batch);
            owner.fruitless.observe(begun.elapsed() / count);
            owner.deliver(done);
        }
        self.calls.fetch_add(sys::take_calls(), Ordering::Relaxed);
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

/// Runs a batch: each operation is begun before any is waited for.
fn perform(batch: Vec<(Key, Op)>) -> Vec<(Key, Completion)> {
    let first = if batch.len() == 1 { Patience::Wait } else { Patience::Begin };
    let begin = |(key, mut op): (Key, Op)| {
        let result = sys::perform(&mut op, first);
        (key, (op, result))
    };
    let mut done: Vec<_> = batch.into_iter().map(begin).collect();
    for (_, (op, result)) in &mut done {
        if first == Patience::Begin && matches!(result, Err(Errno::AGAIN)) {
            *result = sys::perform(op, Patience::Wait);
        }
    }
    done
}

//! How other threads reach a worker: completions from the pool, and waking it when it sleeps.
//!
//! A thread that delivers pushes its completions, sets `filled` and notifies; a waker sets `ready` and notifies. Only the
//! worker clears the two: `filled` before it takes the completions, `ready` before it polls. It looks at both again before
//! it sleeps. Parked, it is woken by an unpark, even by one that came after that look. In its ring only the event wakes
//! it, so it sets `in_ring` before the look, and a notifier that finds `in_ring` set clears it and signals the event, which
//! stays readable for a poll that begins later. These accesses are sequentially consistent: either the worker sees the
//! flag, or the notifier sees `in_ring`. Guard: `no_wake_up_is_lost_by_a_worker_that_parks`,
//! `no_wake_up_is_lost_by_a_worker_that_sleeps_in_its_ring`, `no_wake_up_is_lost_between_two_ways_to_sleep`.

use std::any::Any;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::Wake;

use rustix::io::Errno;

use crate::concurrent::atomic::{AtomicBool, Ordering};
use crate::concurrent::thread::{self, Thread};
use crate::concurrent::{Event, Mutex};
use crate::route::Fruitless;
use crate::slots::{Completion, Key};

/// One worker's letter box; also the waker of its outermost future.
pub(crate) struct Inbox {
    /// `None` in a simulation, whose scheduler looks into inboxes by itself.
    thread: Option<Thread>,
    completions: Mutex<Vec<(Key, Completion)>>,
    /// Whether `completions` may hold something: read without the lock.
    filled: AtomicBool,
    /// The first panic of a pool thread that performed a request of this worker.
    panic: std::sync::Mutex<Option<Box<dyn Any + Send>>>,
    /// Whether the outermost future is to be polled.
    ready: AtomicBool,
    /// Whether the worker sleeps in `io_uring_enter`, where only its eventfd wakes it.
    in_ring: AtomicBool,
    event: OnceLock<Event>,
    /// Its thread's number in a recording.
    pub(crate) number: u32,
    /// What the pool learned about asking the kernel first.
    pub(crate) fruitless: Arc<Fruitless>,
}

impl Inbox {
    /// The calling thread's.
    #[cfg(test)]
    pub(crate) fn of_this_thread() -> Self {
        Self::numbered(0, true)
    }

    /// The calling thread's, which has this number in a recording; `wakes` if what is told to it ends the thread's sleep.
    pub(crate) fn numbered(number: u32, wakes: bool) -> Self {
        Self {
            thread: wakes.then(thread::current),
            completions: Mutex::new(Vec::new()),
            filled: AtomicBool::new(false),
            panic: std::sync::Mutex::new(None),
            ready: AtomicBool::new(true),
            in_ring: AtomicBool::new(false),
            event: OnceLock::new(),
            number,
            fruitless: Arc::default(),
        }
    }

    /// Brings completions, and wakes the worker if it sleeps.
    pub(crate) fn deliver(&self, completions: impl IntoIterator<Item = (Key, Completion)>) {
        self.completions.lock().unwrap_or_else(PoisonError::into_inner).extend(completions);
        self.filled.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Keeps a panic of a pool thread, the first of several. The thread delivers its request's answer afterwards, so a
    /// worker that has collected the answer finds the panic.
    pub(crate) fn deliver_panic(&self, panic: Box<dyn Any + Send>) {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
    }

    /// Takes the panic of a pool thread, which ends the run as if it had happened on the worker's thread.
    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether there is something to collect.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::SeqCst)
    }

    /// Takes everything that was delivered.
    pub(crate) fn collect(&self) -> Vec<(Key, Completion)> {
        if !self.filled.swap(false, Ordering::SeqCst) {
            return Vec::new();
        }
        std::mem::take(&mut *self.completions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the outermost future asked to be polled; asks once.
    pub(crate) fn take_ready(&self) -> bool {
        self.ready.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// Ends the worker's sleep, or the next one before it begins.
    pub(crate) fn notify(&self) {
        if self.in_ring.swap(false, Ordering::SeqCst) {
            if let Some(event) = self.event.get() {
                event.signal();
            }
        } else if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }

    /// The descriptor that wakes the worker in its ring.
    pub(crate) fn event(&self) -> Result<&Event, Errno> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        let event = Event::open()?;
        Ok(self.event.get_or_init(|| event))
    }

    /// Says that the worker is about to sleep in its ring; `false` if there is a reason not to.
    pub(crate) fn enter_ring(&self) -> bool {
        self.in_ring.store(true, Ordering::SeqCst);
        if self.is_filled() || self.is_ready() {
            self.in_ring.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Says that it is awake again.
    pub(crate) fn leave_ring(&self) {
        self.in_ring.store(false, Ordering::SeqCst);
    }
}

impl Wake for Inbox {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.ready.swap(true, Ordering::SeqCst) {
            self.notify();
        }
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;

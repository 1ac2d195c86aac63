//! A worker's inbox: completions from pool threads, wake-ups of its outermost future, and the wake-up of the worker
//! itself.
//!
//! Protocol. A pool thread pushes its completions, sets `filled` and notifies. A waker sets `ready` and notifies,
//! unless `ready` was set already. Only the worker clears the flags: `filled` before it takes the completions, `ready`
//! before it polls. A completion or a wake-up that comes later sets its flag again, so the next look finds it.
//!
//! Sleep. The worker looks at both flags before it sleeps. When it parks, any later notification unparks it, and an
//! unpark that comes before the park makes the park return at once. When it sleeps in its ring, only the event wakes
//! it: the worker sets `in_ring` *before* it looks at the flags, and a notifier sets its flag *before* it swaps
//! `in_ring` to false. The accesses are sequentially consistent, so either the worker sees the flag and stays awake, or
//! the notifier sees `in_ring` and signals the event. The event stays readable, so a poll that begins later sees it
//! too.
//!
//! Guards: `no_wake_up_is_lost_by_a_worker_that_parks`, `no_wake_up_is_lost_by_a_worker_that_sleeps_in_its_ring`,
//! `no_wake_up_is_lost_between_two_ways_to_sleep`.

use std::any::Any;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::Wake;

use rustix::io::Errno;

use crate::concurrent::atomic::{AtomicBool, Ordering};
use crate::concurrent::thread::{self, Thread};
use crate::concurrent::{Event, Mutex};
use crate::route::Fruitless;
use crate::slots::{Completion, Key};

/// One worker's inbox, and the waker of its outermost future.
pub(crate) struct Inbox {
    /// The worker's thread; `None` in a simulation, whose scheduler looks into inboxes itself.
    thread: Option<Thread>,
    completions: Mutex<Vec<(Key, Completion)>>,
    /// Set if `completions` may hold something; read without the lock.
    filled: AtomicBool,
    /// The first panic of a pool thread that performed a request of this worker.
    panic: std::sync::Mutex<Option<Box<dyn Any + Send>>>,
    /// Set if the outermost future is to be polled.
    ready: AtomicBool,
    /// Set while the worker sleeps in `io_uring_enter`, where only `event` wakes it.
    in_ring: AtomicBool,
    event: OnceLock<Event>,
    pub(crate) number: u32,
    /// The pool's experience with asking the kernel first.
    pub(crate) fruitless: Arc<Fruitless>,
}

impl Inbox {
    #[cfg(test)]
    pub(crate) fn of_this_thread() -> Self {
        Self::numbered(0, true)
    }

    /// The inbox of the calling thread, which has this number in a recording. With `wakes`, notifications unpark the
    /// thread.
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

    pub(crate) fn deliver(&self, completions: impl IntoIterator<Item = (Key, Completion)>) {
        self.completions.lock().unwrap_or_else(PoisonError::into_inner).extend(completions);
        self.filled.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Keeps the first panic of a pool thread. The thread delivers its request's answer afterwards, so a worker that
    /// has collected the answer finds the panic.
    pub(crate) fn deliver_panic(&self, panic: Box<dyn Any + Send>) {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
    }

    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::SeqCst)
    }

    pub(crate) fn collect(&self) -> Vec<(Key, Completion)> {
        if !self.filled.swap(false, Ordering::SeqCst) {
            return Vec::new();
        }
        std::mem::take(&mut *self.completions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true once for each wake-up of the outermost future.
    pub(crate) fn take_ready(&self) -> bool {
        self.ready.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// Ends the worker's sleep, or keeps the next one from beginning.
    pub(crate) fn notify(&self) {
        if self.in_ring.swap(false, Ordering::SeqCst) {
            if let Some(event) = self.event.get() {
                event.signal();
            }
        } else if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }

    pub(crate) fn event(&self) -> Result<&Event, Errno> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        let event = Event::open()?;
        Ok(self.event.get_or_init(|| event))
    }

    /// Announces a sleep in the ring; returns false if a flag is set and the worker must stay awake.
    pub(crate) fn enter_ring(&self) -> bool {
        self.in_ring.store(true, Ordering::SeqCst);
        if self.is_filled() || self.is_ready() {
            self.in_ring.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

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

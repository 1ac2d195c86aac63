//! How other threads reach a worker: completions from the pool, and waking it when it sleeps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Wake;
use std::thread::Thread;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::route::Fruitless;
use crate::slots::{Completion, Key};

/// One worker's letter box; also the waker of its outermost future.
pub(crate) struct Inbox {
    thread: Thread,
    completions: Mutex<Vec<(Key, Completion)>>,
    /// Whether `completions` may hold something: read without the lock.
    filled: AtomicBool,
    /// Whether the outermost future is to be polled.
    ready: AtomicBool,
    /// Whether the worker sleeps in `io_uring_enter`, where only its eventfd wakes it.
    in_ring: AtomicBool,
    event: OnceLock<OwnedFd>,
    /// Its thread's number in a recording.
    pub(crate) number: u32,
    /// What the pool learned about asking the kernel first.
    pub(crate) fruitless: Arc<Fruitless>,
}

impl Inbox {
    /// The calling thread's.
    #[cfg(test)]
    pub(crate) fn of_this_thread() -> Self {
        Self::numbered(0)
    }

    /// The calling thread's, which has this number in a recording.
    pub(crate) fn numbered(number: u32) -> Self {
        Self {
            thread: std::thread::current(),
            completions: Mutex::new(Vec::new()),
            filled: AtomicBool::new(false),
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

    /// Whether there is something to collect.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::SeqCst)
    }

    /// Everything that was delivered.
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
                crate::sys::count_call();
                // A full counter wakes as well as one more.
                rustix::io::write(event, &1_u64.to_ne_bytes()).ok();
            }
        } else {
            self.thread.unpark();
        }
    }

    /// The descriptor that wakes the worker in its ring.
    pub(crate) fn event(&self) -> Result<&OwnedFd, Errno> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        crate::sys::count_call();
        let event = eventfd(0, EventfdFlags::CLOEXEC)?;
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

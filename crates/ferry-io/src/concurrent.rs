//! Locks, atomics and threads of the wake-up protocols: the standard library's, or loom's in a model.
//!
//! With `--cfg loom` the runtime's own code runs in a model that tries the orders in which its threads can interleave
//! (`model.rs` beside each modelled module). Loom has no timeouts, so a sleep with a limit is one without: a lost
//! wake-up that the limit would hide is a deadlock there.

#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::{thread, thread_local};

#[cfg(not(loom))]
pub(crate) use crate::thread::start_beside;

#[cfg(loom)]
mod modelled;
#[cfg(loom)]
pub(crate) use modelled::*;

/// The descriptor that wakes a worker in its ring.
#[cfg(not(loom))]
pub(crate) struct Event(rustix::fd::OwnedFd);

#[cfg(not(loom))]
impl Event {
    /// A new event, not signalled.
    ///
    /// # Errors
    /// Those of eventfd(2).
    pub(crate) fn open() -> Result<Self, rustix::io::Errno> {
        use rustix::event::{EventfdFlags, eventfd};
        crate::sys::count_call();
        eventfd(0, EventfdFlags::CLOEXEC).map(Self)
    }

    /// Ends the sleep of the ring that polls it.
    pub(crate) fn signal(&self) {
        crate::sys::count_call();
        // A full counter wakes the ring as well.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).ok();
    }

    pub(crate) fn as_raw_fd(&self) -> i32 {
        rustix::fd::AsRawFd::as_raw_fd(&self.0)
    }
}

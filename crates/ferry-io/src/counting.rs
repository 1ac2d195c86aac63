//! Counting what the kernel does for a program, by perf_event_open(2) as far as it lets us.
//!
//! Tracepoints and the kernel's own counters count events of threads and of all that these start: their threads and
//! children, and the kernel's workers for their rings. A tracepoint's number comes from tracefs; where that is not
//! mounted, root gets a mount of it that no other process sees. Nothing is recorded but the count.

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::perf::{
    self, Attributes, CONTEXT_SWITCHES, Control, DISABLED, ENABLE_ON_EXEC, INHERIT, SOFTWARE, TRACEPOINT,
    Where,
};

#[cfg(test)]
mod tests;

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Calls of io_uring_enter(2).
    RingEnter,
    /// Requests that a ring took, whoever submitted them.
    RingRequest,
    /// Requests that were handed to the kernel's own workers (io-wq).
    KernelWorkerHandover,
    /// Those of them that wait until the one before on the same inode has ended.
    SerialHandover,
    /// Context switches, of kernel workers too.
    ContextSwitch,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 5] = [
        Self::RingEnter,
        Self::RingRequest,
        Self::KernelWorkerHandover,
        Self::SerialHandover,
        Self::ContextSwitch,
    ];

    /// The tracepoint's or counter's name, as perf(1) has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RingEnter => "syscalls:sys_enter_io_uring_enter",
            Self::RingRequest => "io_uring:io_uring_submit_req",
            Self::KernelWorkerHandover | Self::SerialHandover => "io_uring:io_uring_queue_async_work",
            Self::ContextSwitch => "context-switches",
        }
    }

    /// Which of a tracepoint's events are meant, where not all are (tracefs' `filter`).
    fn filter(self) -> Option<&'static std::ffi::CStr> {
        // The field has been the queue's kind since it was about reading and writing; the kernel prints it as "hashed".
        (self == Self::SerialHandover).then_some(c"rw != 0")
    }

    /// What perf_event_open(2) calls it.
    fn kind_and_number(self) -> Result<(u32, u64), Errno> {
        let file = match self {
            Self::RingEnter => c"events/syscalls/sys_enter_io_uring_enter/id",
            Self::RingRequest => c"events/io_uring/io_uring_submit_req/id",
            Self::KernelWorkerHandover | Self::SerialHandover => {
                c"events/io_uring/io_uring_queue_async_work/id"
            }
            Self::ContextSwitch => return Ok((SOFTWARE, CONTEXT_SWITCHES)),
        };
        Ok((TRACEPOINT, tracepoint(file)?))
    }
}

/// A running count of one event.
#[derive(Debug)]
pub struct Count {
    counter: OwnedFd,
}

impl Count {
    /// Of the programs that the calling thread will start, each from its execve(2) on; not of the thread itself.
    ///
    /// # Errors
    /// EACCES or EPERM without the right to it (kernel.perf_event_paranoid, tracefs), ENOENT where the kernel lacks the
    /// event.
    pub fn of_programs(event: Event) -> Result<Self, Errno> {
        Self::open(event, INHERIT | DISABLED | ENABLE_ON_EXEC)
    }

    /// Of the calling thread, and of those that it will start.
    ///
    /// # Errors
    /// Those of [`Self::of_programs`].
    pub fn of_this_thread(event: Event) -> Result<Self, Errno> {
        Self::open(event, INHERIT)
    }

    fn open(event: Event, flags: u64) -> Result<Self, Errno> {
        let (kind, config) = event.kind_and_number()?;
        let counter = perf::open(Attributes { kind, config, flags, ..Attributes::default() }, Where::Thread)?;
        event.filter().map_or(Ok(()), |filter| perf::control(&counter, Control::Filter(filter)))?;
        Ok(Self { counter })
    }

    /// Events so far; those of threads that have ended are in it.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn so_far(&self) -> Result<u64, Errno> {
        let mut count = [0; size_of::<u64>()];
        let size = rustix::io::read(&self.counter, &mut count)?;
        if size == count.len() { Ok(u64::from_ne_bytes(count)) } else { Err(Errno::IO) }
    }
}

/// Context switches of this process's children that have been waited for, with those of their kernel workers
/// (getrusage(2)): needs no right.
#[must_use]
pub fn switches_of_ended_children() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is the kernel's, and large enough.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: zero is a valid value of each field, and the kernel filled them.
    let usage = unsafe { usage.assume_init() };
    let count = |switches: libc::c_long| u64::try_from(switches).unwrap_or(0);
    count(usage.ru_nvcsw).saturating_add(count(usage.ru_nivcsw))
}

/// The tracepoint's number.
fn tracepoint(file: &std::ffi::CStr) -> Result<u64, Errno> {
    perf::tracefs(file, 32)?.trim().parse().map_err(|_| Errno::IO)
}

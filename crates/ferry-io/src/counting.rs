//! Counts of kernel events caused by a program, from perf_event_open(2).
//!
//! Tracepoints and software counters count events of threads and of everything that they start: threads, children, and
//! the kernel's workers for their rings. Tracefs gives a tracepoint's number; if it is not mounted, root gets a private
//! mount. Nothing but the count is recorded.
//!
//! ```
//! use ferry_io::counting::{Count, Event, switches_of_ended_children};
//! use ferry_io::{Options, run};
//!
//! match Count::of_this_thread(Event::RingEnter) {
//!     Ok(enters) => {
//!         run(&Options::default(), async |_io| ()).expect("valid options");
//!         println!("{}: {}", Event::RingEnter.name(), enters.so_far()?);
//!     }
//!     Err(errno) => println!("not permitted, or not known to this kernel: {errno}"),
//! }
//! let switches = Count::of_programs(Event::ContextSwitch);
//! std::process::Command::new("true").status().expect("it is installed");
//! let switches = switches.and_then(|count| count.so_far());
//! println!("{switches:?} switches of one program, {} of all", switches_of_ended_children());
//! # Ok::<(), ferry_io::Errno>(())
//! ```

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::perf::{
    self, Attributes, CONTEXT_SWITCHES, Control, DISABLED, ENABLE_ON_EXEC, EventScope, INHERIT, SOFTWARE,
    TRACEPOINT,
};

#[cfg(test)]
mod tests;

/// A countable event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Calls of io_uring_enter(2).
    RingEnter,
    /// Requests that a ring took, from any submitter.
    RingRequest,
    /// Requests handed to the kernel's workers (io-wq).
    KernelWorkerHandover,
    /// The handovers that wait for an earlier request on the same inode.
    SerialHandover,
    /// Context switches, including those of kernel workers.
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

    /// Name of the tracepoint or counter in perf(1).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RingEnter => "syscalls:sys_enter_io_uring_enter",
            Self::RingRequest => "io_uring:io_uring_submit_req",
            Self::KernelWorkerHandover | Self::SerialHandover => "io_uring:io_uring_queue_async_work",
            Self::ContextSwitch => "context-switches",
        }
    }

    /// Filter for a part of the tracepoint's events (tracefs' `filter`).
    fn filter(self) -> Option<&'static std::ffi::CStr> {
        // The field `rw` holds the kind of queue; the kernel prints it as "hashed".
        (self == Self::SerialHandover).then_some(c"rw != 0")
    }

    /// Type and number for perf_event_open(2).
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
    /// Counts for programs that the calling thread will start, each from its execve(2) on; not for the thread itself.
    ///
    /// # Errors
    /// EACCES or EPERM without permission (kernel.perf_event_paranoid, tracefs), ENOENT if the kernel lacks the event.
    pub fn of_programs(event: Event) -> Result<Self, Errno> {
        Self::open(event, INHERIT | DISABLED | ENABLE_ON_EXEC)
    }

    /// Counts for the calling thread, and for threads and programs that it will start.
    ///
    /// # Errors
    /// Those of [`Self::of_programs`].
    pub fn of_this_thread(event: Event) -> Result<Self, Errno> {
        Self::open(event, INHERIT)
    }

    fn open(event: Event, flags: u64) -> Result<Self, Errno> {
        let (kind, config) = event.kind_and_number()?;
        let counter =
            perf::open(Attributes { kind, config, flags, ..Attributes::default() }, EventScope::Thread)?;
        event.filter().map_or(Ok(()), |filter| perf::control(&counter, Control::Filter(filter)))?;
        Ok(Self { counter })
    }

    /// Returns the number of events so far, including those of ended threads.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn so_far(&self) -> Result<u64, Errno> {
        let mut count = [0; size_of::<u64>()];
        let size = rustix::io::read(&self.counter, &mut count)?;
        if size == count.len() { Ok(u64::from_ne_bytes(count)) } else { Err(Errno::IO) }
    }
}

/// Context switches of waited-for children and their kernel workers (getrusage(2)). Needs no permission.
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

/// Looks up a tracepoint's number.
fn tracepoint(file: &std::ffi::CStr) -> Result<u64, Errno> {
    perf::tracefs(file, 32)?.trim().parse().map_err(|_| Errno::IO)
}

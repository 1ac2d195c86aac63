//! Counting what the kernel does for a program, by perf_event_open(2) as far as it lets us.
//!
//! Tracepoints and the kernel's own counters count events of threads and of all that these start: their threads and
//! children, and the kernel's workers for their rings. A tracepoint's number comes from tracefs; where that is not
//! mounted, root gets a mount of it that no other process sees. Nothing is recorded but the count.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

#[cfg(test)]
mod tests;

const TRACEFS: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_COUNT_SW_CONTEXT_SWITCHES: u64 = 3;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// Bits of `perf_event_attr`'s flags.
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const ENABLE_ON_EXEC: u64 = 1 << 12;

/// The first version of the kernel's `perf_event_attr`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_kind: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_kind: u32,
    config1: u64,
}

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Calls of io_uring_enter(2).
    RingEnter,
    /// Requests that a ring took, whoever submitted them.
    RingRequest,
    /// Requests that were handed to the kernel's own workers (io-wq).
    KernelWorkerHandover,
    /// Context switches, of kernel workers too.
    ContextSwitch,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 4] =
        [Self::RingEnter, Self::RingRequest, Self::KernelWorkerHandover, Self::ContextSwitch];

    /// The tracepoint's or counter's name, as perf(1) has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RingEnter => "syscalls:sys_enter_io_uring_enter",
            Self::RingRequest => "io_uring:io_uring_submit_req",
            Self::KernelWorkerHandover => "io_uring:io_uring_queue_async_work",
            Self::ContextSwitch => "context-switches",
        }
    }

    /// What perf_event_open(2) calls it.
    fn kind_and_number(self) -> Result<(u32, u64), Errno> {
        let file = match self {
            Self::RingEnter => c"events/syscalls/sys_enter_io_uring_enter/id",
            Self::RingRequest => c"events/io_uring/io_uring_submit_req/id",
            Self::KernelWorkerHandover => c"events/io_uring/io_uring_queue_async_work/id",
            Self::ContextSwitch => return Ok((PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES)),
        };
        Ok((PERF_TYPE_TRACEPOINT, tracepoint(file)?))
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
    pub(crate) fn of_this_thread(event: Event) -> Result<Self, Errno> {
        Self::open(event, INHERIT)
    }

    fn open(event: Event, flags: u64) -> Result<Self, Errno> {
        let (kind, config) = event.kind_and_number()?;
        let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
        let attributes = Attributes { kind, size, config, flags, ..Attributes::default() };
        let (this_thread, any_processor, no_group) = (0, -1, -1);
        // SAFETY: the structure has the layout of the size that it names, and is only read.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                any_processor,
                no_group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        let Some(fd) = i32::try_from(fd).ok().filter(|&fd| fd >= 0) else {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        };
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        let counter = unsafe { OwnedFd::from_raw_fd(fd) };
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
fn tracepoint(file: &CStr) -> Result<u64, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut why = Errno::NOENT;
    for path in TRACEFS {
        let root = rustix::fs::openat(CWD, path, flags, Mode::empty());
        match root.and_then(|root| number_in(root.as_fd(), file)) {
            Ok(number) => return Ok(number),
            // Where it may not be looked into says more than where it is not.
            Err(Errno::NOENT) => {}
            Err(errno) => why = errno,
        }
    }
    private_tracefs().map_or(Err(why), |root| number_in(root.as_fd(), file))
}

fn number_in(tracefs: BorrowedFd<'_>, file: &CStr) -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(tracefs, file, flags, Mode::empty())?;
    let mut text = [0; 32];
    let size = rustix::io::read(&file, &mut text)?;
    let number = str::from_utf8(&text[..size]).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or(Errno::IO)
}

/// A tracefs mounted nowhere (Linux 5.2, CAP_SYS_ADMIN): it ends with its descriptor.
fn private_tracefs() -> Option<OwnedFd> {
    let context = fsopen(c"tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    fsconfig_create(context.as_fd()).ok()?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY).ok()
}

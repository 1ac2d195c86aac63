//! Counting the operations that the kernel hands to its own workers (io-wq), as far as it lets us.
//!
//! A counter on the tracepoint `io_uring:io_uring_queue_async_work`, for the calling thread and the threads that it
//! starts (perf_event_open(2)). The tracepoint's number comes from tracefs; where that is not mounted, root gets a
//! mount of it that no other process sees. Without the rights there is no count.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const EVENT: &CStr = c"events/io_uring/io_uring_queue_async_work/id";
const TRACEFS: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `perf_event_attr.inherit`: the second bit of its flags.
const INHERIT: u64 = 1 << 1;

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

/// A running count of hand-overs.
pub(crate) struct Handovers {
    counter: OwnedFd,
}

impl Handovers {
    /// Begins to count for the calling thread and those that it will start; `None` where that is not allowed.
    pub(crate) fn count() -> Option<Self> {
        let attributes = Attributes {
            kind: PERF_TYPE_TRACEPOINT,
            size: u32::try_from(size_of::<Attributes>()).ok()?,
            config: tracepoint()?,
            flags: INHERIT,
            ..Attributes::default()
        };
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
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        let counter = unsafe { OwnedFd::from_raw_fd(fd) };
        Some(Self { counter })
    }

    /// Hand-overs so far.
    pub(crate) fn so_far(&self) -> Option<u64> {
        let mut count = [0; size_of::<u64>()];
        let size = rustix::io::read(&self.counter, &mut count).ok()?;
        (size == count.len()).then(|| u64::from_ne_bytes(count))
    }
}

/// The tracepoint's number.
fn tracepoint() -> Option<u64> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    TRACEFS
        .into_iter()
        .filter_map(|path| rustix::fs::openat(CWD, path, flags, Mode::empty()).ok())
        .find_map(|root| number_in(root.as_fd()))
        .or_else(|| number_in(private_tracefs()?.as_fd()))
}

fn number_in(tracefs: BorrowedFd<'_>) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(tracefs, EVENT, flags, Mode::empty()).ok()?;
    let mut text = [0; 32];
    let size = rustix::io::read(&file, &mut text).ok()?;
    str::from_utf8(&text[..size]).ok()?.trim().parse().ok()
}

/// A tracefs mounted nowhere (Linux 5.2, CAP_SYS_ADMIN): it ends with its descriptor.
fn private_tracefs() -> Option<OwnedFd> {
    let context = fsopen(c"tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    fsconfig_create(context.as_fd()).ok()?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY).ok()
}

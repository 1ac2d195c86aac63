//! perf_event_open(2), its descriptors, and tracefs, where tracepoints are looked up.

use std::ffi::CStr;

use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, statat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

pub(crate) const SOFTWARE: u32 = 1;
pub(crate) const TRACEPOINT: u32 = 2;
pub(crate) const CONTEXT_SWITCHES: u64 = 3;
/// A software event that never occurs; opened for the records about threads that come with it.
pub(crate) const NOTHING: u64 = 9;

/// Bits of [`Attributes::flags`].
pub(crate) const DISABLED: u64 = 1;
pub(crate) const INHERIT: u64 = 1 << 1;
pub(crate) const NAMES: u64 = 1 << 9;
pub(crate) const ENABLE_ON_EXEC: u64 = 1 << 12;
pub(crate) const THREADS: u64 = 1 << 13;
pub(crate) const WITH_ORIGIN: u64 = 1 << 18;
pub(crate) const NO_KERNEL_CHAIN: u64 = 1 << 21;
pub(crate) const NO_USER_CHAIN: u64 = 1 << 22;
pub(crate) const USE_CLOCK: u64 = 1 << 25;
pub(crate) const SWITCHES: u64 = 1 << 26;

const CLOSE_ON_EXEC: libc::c_ulong = 8;
const TRACEFS: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];

/// The kernel's `perf_event_attr` in its fifth version (Linux 4.1). Older kernels accept it if the later fields are
/// zero.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_kind: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) breakpoint_kind: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branches: u64,
    pub(crate) user_registers: u64,
    pub(crate) user_stack: u32,
    pub(crate) clock: i32,
    pub(crate) interrupt_registers: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) longest_chain: u16,
    pub(crate) reserved: u16,
}

/// Scope of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventScope {
    /// The calling thread.
    Thread,
    /// The calling thread while it runs on this processor.
    ThreadOn(u32),
    /// Every thread on this processor.
    Processor(u32),
}

/// Opens an event.
///
/// # Errors
/// Those of perf_event_open(2).
pub(crate) fn open(attributes: Attributes, place: EventScope) -> Result<OwnedFd, Errno> {
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let attributes = Attributes { size, ..attributes };
    let number = |processor| i32::try_from(processor).map_err(|_| Errno::INVAL);
    let (thread, processor) = match place {
        EventScope::Thread => (0, -1),
        EventScope::ThreadOn(processor) => (0, number(processor)?),
        EventScope::Processor(processor) => (-1, number(processor)?),
    };
    let no_group = -1;
    // SAFETY: the structure has the layout of the size that it names, and is only read.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            processor,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    let Some(fd) = i32::try_from(fd).ok().filter(|&fd| fd >= 0) else { return Err(last_error()) };
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Change to an event and to those inherited from it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control<'a> {
    /// Sends its samples to another event's buffer.
    Output(BorrowedFd<'a>),
    /// Stops counting.
    Disable,
    /// Samples only matching events (tracefs' `filter`).
    Filter(&'a CStr),
}

/// Applies a change to an event.
///
/// # Errors
/// Those of ioctl(2).
pub(crate) fn control(event: impl AsFd, what: Control<'_>) -> Result<(), Errno> {
    const DISABLE: libc::c_ulong = 0x2401;
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    const SET_FILTER: libc::c_ulong = 0x4008_2406;
    let number = |fd: BorrowedFd<'_>| usize::try_from(fd.as_raw_fd()).unwrap_or(0);
    let (request, argument) = match what {
        Control::Output(other) => (SET_OUTPUT, std::ptr::without_provenance(number(other))),
        Control::Disable => (DISABLE, std::ptr::null()),
        Control::Filter(text) => (SET_FILTER, text.as_ptr()),
    };
    // SAFETY: these requests take a number, or a string that ends with a zero and is only read meanwhile.
    let done = unsafe { libc::ioctl(event.as_fd().as_raw_fd(), request, argument) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Reads a file of tracefs, such as `events/sched/sched_waking/id`, up to `limit` bytes. If tracefs is not mounted,
/// root gets a private mount.
///
/// # Errors
/// EACCES or EPERM without permission, ENOENT if tracefs is missing or the kernel lacks the event.
pub(crate) fn tracefs(file: &CStr, limit: usize) -> Result<String, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (mut why, mut is_mounted) = (Errno::NOENT, false);
    for path in TRACEFS {
        let root = rustix::fs::openat(CWD, path, flags, Mode::empty());
        // Without a mount the folder is empty.
        is_mounted |= root.as_ref().is_ok_and(|root| statat(root, c"events", AtFlags::empty()).is_ok());
        match root.and_then(|root| text_of(root.as_fd(), file, limit)) {
            Ok(text) => return Ok(text),
            // A permission error in one place says more than ENOENT in the other.
            Err(Errno::NOENT) => {}
            Err(errno) => why = errno,
        }
    }
    match private_tracefs() {
        Ok(root) => text_of(root.as_fd(), file, limit),
        Err(Errno::PERM) if why == Errno::NOENT && !is_mounted => Err(Errno::PERM),
        Err(_) => Err(why),
    }
}

fn text_of(tracefs: BorrowedFd<'_>, file: &CStr, limit: usize) -> Result<String, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(tracefs, file, flags, Mode::empty())?;
    let mut text = vec![0; limit];
    let mut filled = 0;
    while filled < limit {
        match rustix::io::read(&file, &mut text[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    text.truncate(filled);
    String::from_utf8(text).map_err(|_| Errno::IO)
}

/// Mounts a tracefs that no other process sees (Linux 5.2, CAP_SYS_ADMIN); it is gone when its descriptor is closed.
fn private_tracefs() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
}

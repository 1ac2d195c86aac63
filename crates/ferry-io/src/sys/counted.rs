//! System calls: counted, repeated after a signal, and replaced by older ones that the kernel has.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::io::{Errno, retry_on_intr};

/// Permission of a request to block on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// EAGAIN instead of blocking, where the kernel offers a way.
    Ask,
    /// Opens may block. Reads that would block start read-ahead and answer EAGAIN.
    Begin,
    /// May block.
    Wait,
}

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of system calls of this thread for the runtime, and resets it.
pub(crate) fn take_calls() -> u64 {
    CALLS.take()
}

/// Counts one system call.
pub(crate) fn count_call() {
    CALLS.set(CALLS.get() + 1);
}

/// Voluntary context switches of this thread (getrusage(2)).
pub(crate) fn voluntary_switches() -> i64 {
    if cfg!(miri) {
        // Miri does not support getrusage(2).
        return 0;
    }
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is the kernel's, and large enough.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: zero is a valid value of each field, and the kernel filled them.
    let usage = unsafe { usage.assume_init() };
    usage.ru_nvcsw
}

/// A system call that older kernels lack, and that filters of containers answer with EPERM.
pub(super) struct Newer(AtomicU8);

impl Newer {
    const UNKNOWN: u8 = 0;
    const THERE: u8 = 1;
    const ABSENT: u8 = 2;

    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(Self::UNKNOWN))
    }

    /// Answer of the newer call, or `None` if the older one should be tried. Once the newer call has worked, EPERM is a
    /// real answer.
    pub(super) fn answer<T>(&self, newer: impl FnMut() -> Result<T, Errno>) -> Option<Result<T, Errno>> {
        let known = self.0.load(Ordering::Relaxed);
        if known == Self::ABSENT {
            return None;
        }
        match call(newer) {
            Err(Errno::NOSYS) => {
                self.0.store(Self::ABSENT, Ordering::Relaxed);
                None
            }
            Err(Errno::PERM) if known == Self::UNKNOWN => None,
            answer => {
                if answer.is_ok() {
                    self.0.store(Self::THERE, Ordering::Relaxed);
                }
                Some(answer)
            }
        }
    }

    /// Passes on the older call's answer; if it succeeded, the newer call is not tried again.
    pub(super) fn instead<T>(&self, answer: Result<T, Errno>) -> Result<T, Errno> {
        if answer.is_ok() {
            self.0.store(Self::ABSENT, Ordering::Relaxed);
        }
        answer
    }
}

/// Makes one counted system call; repeats it after EINTR.
pub(crate) fn call<T>(mut f: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    retry_on_intr(|| {
        count_call();
        f()
    })
}

/// The result of a raw system call: its value, or errno.
pub(super) fn checked(answer: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(answer)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

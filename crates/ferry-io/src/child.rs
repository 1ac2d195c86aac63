//! Waits for a child process and returns what it used (wait4(2)).
//!
//! ```
//! use ferry_io::child::{Usage, wait};
//!
//! let child = std::process::Command::new("true").spawn()?;
//! let (status, Usage { user, system, peak_bytes }) = wait(child)?;
//! assert!(status.success() && peak_bytes > 0);
//! println!("{:?} of processor time", user + system);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};

#[cfg(all(test, not(miri)))]
mod tests;

/// Use of resources by a process, and by those of its children that it has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in programs.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Largest resident memory of one of the processes, in bytes. It is never below that of the process that started
    /// the child, because execve(2) keeps the peak of the memory that is replaced.
    pub peak_bytes: u64,
}

/// Waits until a child ends. The handle is used up, because the child's number may be another process's afterwards.
///
/// # Errors
/// Those of wait4(2).
pub fn wait(child: Child) -> std::io::Result<(ExitStatus, Usage)> {
    let process = libc::pid_t::try_from(child.id()).map_err(|_| Errno::SRCH)?;
    let mut status: libc::c_int = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    retry_on_intr(|| {
        // SAFETY: both addresses are valid for writes of the kernel's types during the call.
        let ended = unsafe { libc::wait4(process, &raw mut status, 0, usage.as_mut_ptr()) };
        if ended == process {
            return Ok(());
        }
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    })?;
    // SAFETY: zero is a valid value of each field, and the kernel filled them.
    let usage = unsafe { usage.assume_init() };
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    let time = |spent: libc::timeval| {
        Duration::from_secs(number(spent.tv_sec)) + Duration::from_micros(number(spent.tv_usec))
    };
    let used = Usage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        // Linux counts it in KiB.
        peak_bytes: number(usage.ru_maxrss).saturating_mul(1024),
    };
    Ok((ExitStatus::from_raw(status), used))
}

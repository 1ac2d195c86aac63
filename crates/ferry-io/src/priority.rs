//! Priorities of the calling thread. Threads that it starts later inherit them.
//!
//! Linux keeps both priorities for each thread, and not for each process. So a program sets them before [`crate::run()`]
//! starts threads. Threads of the kernel that work for a ring share the priority for devices with the thread that they
//! work for.
//!
//! ```
//! use ferry_io::priority::{yield_devices, yield_processors};
//! use ferry_io::{Errno, Options, run};
//!
//! let thread = std::thread::spawn(|| {
//!     yield_processors()?;
//!     yield_devices()?;
//!     run(&Options::default(), async |_io| ()).expect("valid options");
//!     Ok::<(), Errno>(())
//! });
//! thread.join().expect("no panic")?;
//! # Ok::<(), Errno>(())
//! ```

use rustix::io::Errno;
use rustix::process::setpriority_process;

/// The nice value that gives other threads the most.
const LOWEST: i32 = 19;
/// IOPRIO_WHO_PROCESS: a single thread, whose number follows. Zero is the calling thread.
const WHO_THREAD: libc::c_int = 1;
const CALLER: libc::c_int = 0;
/// IOPRIO_CLASS_IDLE in the bits of the class; the class has no levels.
const IDLE: libc::c_int = 3 << 13;

/// Gives the calling thread the lowest priority for processors: nice value 19 (setpriority(2)).
///
/// # Errors
/// Those of setpriority(2).
pub fn yield_processors() -> Result<(), Errno> {
    setpriority_process(None, LOWEST)
}

/// Gives the calling thread the lowest priority for devices: the class `idle` (ioprio_set(2)). Schedulers without
/// priorities (`none`, `kyber`) ignore it.
///
/// # Errors
/// Those of ioprio_set(2).
pub fn yield_devices() -> Result<(), Errno> {
    // SAFETY: the call takes three numbers and no memory.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, CALLER, IDLE) };
    if done == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    fn io_priority() -> libc::c_long {
        // SAFETY: the call takes two numbers and no memory.
        unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, CALLER) }
    }

    #[test]
    fn threads_inherit_lowered_priorities() {
        let before = (getpriority_process(None), io_priority());
        // A thread of its own, because a priority is not raised again without a privilege.
        let inherited = std::thread::spawn(|| {
            yield_processors().unwrap();
            yield_devices().unwrap();
            std::thread::spawn(|| (getpriority_process(None), io_priority())).join().unwrap()
        });
        let (nice, io) = inherited.join().unwrap();
        assert_eq!((nice, io >> 13), (Ok(LOWEST), 3));
        // The test's own thread has kept its priorities.
        assert_eq!((getpriority_process(None), io_priority()), before);
    }
}

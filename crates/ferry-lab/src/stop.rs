//! Interrupts: the running command ends, finished runs are kept.
//!
//! A signal sets a flag and writes to a socket, which wakes a thread that waits for a command. Further signals have no
//! effect, because timeout(1) sends two and the work folder would stay behind. SIGKILL ends everything at once.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::Failure;

/// Time in which a wait notices a signal.
const STEP: Duration = Duration::from_millis(100);

/// Flag set by signals.
#[derive(Debug, Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

impl Stop {
    /// Makes SIGINT, SIGTERM and SIGHUP stop the experiment instead of killing the process.
    ///
    /// # Errors
    /// If a signal handler cannot be installed.
    pub fn on_signals() -> Result<Self, Failure> {
        Self::install().map_err(|error| Failure::Run(format!("cannot handle signals: {error}")))
    }

    fn install() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let (wake, writer) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self { flag, wake: Arc::new(wake) })
    }

    /// Returns true after a signal.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Fails after a signal.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_set() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Waits for this time, or fails after a signal.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn wait(&self, time: Duration) -> Result<(), Failure> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.check()?;
            std::thread::sleep(STEP.min(time));
        }
        self.check()
    }

    /// The state after a signal, of which other tests know nothing.
    #[cfg(test)]
    pub(crate) fn after_signal() -> std::io::Result<Self> {
        // Readable, because the other end is closed.
        let (wake, _) = UnixStream::pair()?;
        Ok(Self { flag: Arc::new(AtomicBool::new(true)), wake: Arc::new(wake) })
    }

    /// Readable from the first signal on.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

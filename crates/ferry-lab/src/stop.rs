//! Ctrl-C: what is running ends, what was taken is kept.
//!
//! A signal sets a flag and writes to a socket, so that whoever waits for a command wakes up at once. A second signal
//! kills the process as if nothing had been arranged.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::Failure;

/// Whether the experiment is to end.
#[derive(Debug, Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

impl Stop {
    /// From now on SIGINT and SIGTERM stop the experiment instead of killing the process.
    ///
    /// # Errors
    /// If a signal's action can't be set.
    pub fn on_signals() -> Result<Self, Failure> {
        Self::install().map_err(|error| Failure::Run(format!("cannot handle signals: {error}")))
    }

    fn install() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let (wake, writer) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
            signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self { flag, wake: Arc::new(wake) })
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Goes on unless it was asked for.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] if it was.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_set() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Becomes readable when it is asked for, and stays so.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

//! Load beside the reads: separate processes, or a computation in the reading thread.

use std::hint::black_box;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::fill::derive;

use super::processors::pin;
use crate::error::Failure;
use crate::message::reason;
use crate::units::real;

/// Counts, and looks now and then whether it is still wanted: it must not outlive a lab that was killed.
pub(super) const BUSY: &str =
    "while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; done";

/// A process on each processor that does nothing but compute, as document 002's `busy.c`; ended when dropped.
pub(super) struct Busy(pub(super) Vec<Child>);

impl Busy {
    /// Starts them.
    ///
    /// # Errors
    /// If one can't be started.
    pub(super) fn start(processors: &[usize]) -> Result<Self, Failure> {
        let mut busy = Self(Vec::new());
        for number in processors {
            busy.0.push(start_on(*number)?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A process has the affinity of the thread that starts it.
fn start_on(number: usize) -> Result<Child, Failure> {
    let start = || {
        pin(number)?;
        let mut command = Command::new("sh");
        command.args(["-c", BUSY]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn();
        started.map_err(|error| Failure::Run(format!("cannot start a busy process: {}", reason(&error))))
    };
    std::thread::scope(|scope| match scope.spawn(start).join() {
        Ok(started) => started,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// A computation of a known length that makes no system call. It looks at no clock either, which on some machines is
/// one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Computation {
    /// Number of steps.
    pub(super) steps: u64,
}

impl Computation {
    /// Returns a computation that takes about this long on this machine.
    pub(super) fn of(length: Duration) -> Self {
        const TRIAL: u64 = 200_000;
        let trial = Self { steps: TRIAL };
        // The best of some: the others were interrupted.
        let took = (0..5).map(|_| trial.time()).min().unwrap_or(length).max(Duration::from_nanos(1));
        let steps = real(TRIAL) * length.as_secs_f64() / took.as_secs_f64();
        // Doubling from 1: close enough, and a floating-point number need not be made whole.
        let mut whole = 1_u64;
        while real(whole) * 1.5 < steps {
            whole *= 2;
        }
        Self { steps: whole }
    }

    fn time(self) -> Duration {
        let start = Instant::now();
        self.run();
        start.elapsed()
    }

    /// Computes.
    pub(super) fn run(self) {
        black_box((0..self.steps).fold(black_box(1), derive));
    }
}

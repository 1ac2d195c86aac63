//! Load beside the reads: separate processes, or a computation in the reading thread.

use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::fill::derive;
use rustix::process::Pid;

use super::processors::pin;
use super::shares::{Share, Usage, process_usage};
use crate::error::Failure;
use crate::message::reason;
use crate::units::real;

/// Counts, and looks now and then whether it is still wanted: it must not outlive a lab that was killed.
pub(super) const BUSY: &str =
    "while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; done";

/// A process on each processor that does nothing but compute, as document 002's `busy.c`; ended when dropped.
pub(super) struct Busy {
    pub(super) children: Vec<Child>,
    /// Beginning of the observation, and what each process had used before.
    begun: Instant,
    before: Vec<Usage>,
}

impl Busy {
    /// Starts them.
    ///
    /// # Errors
    /// If one can't be started.
    pub(super) fn start(processors: &[usize]) -> Result<Self, Failure> {
        let mut busy = Self { children: Vec::new(), begun: Instant::now(), before: Vec::new() };
        for number in processors {
            busy.children.push(start_on(*number)?);
        }
        let used = |child: &Child| process_usage(Pid::from_child(child)).map(|(usage, _)| usage);
        busy.before = busy.children.iter().map(|child| used(child).unwrap_or_default()).collect();
        busy.begun = Instant::now();
        Ok(busy)
    }

    /// Returns what each process had of its processor since the start.
    ///
    /// # Errors
    /// If one has ended.
    pub(super) fn shares(&mut self) -> Result<Vec<Share>, Failure> {
        let lasted = self.begun.elapsed();
        let mut shares = Vec::new();
        for (child, before) in self.children.iter_mut().zip(&self.before) {
            let has_ended = !matches!(child.try_wait(), Ok(None));
            let share = Share::of_process(Pid::from_child(child), *before, lasted);
            let share = share.filter(|_| !has_ended);
            shares.push(share.ok_or_else(|| Failure::Run("a busy process ended early".to_owned()))?);
        }
        Ok(shares)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A process has the affinity of the thread that starts it. It has a session of its own, as one that was started from
/// another terminal: with autogroups (sched(7)) the scheduler divides a processor between sessions, and not between
/// the threads of all.
fn start_on(number: usize) -> Result<Child, Failure> {
    let start = || {
        pin(number)?;
        // In a new process that leads no group, setsid(1) does not fork.
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", BUSY]);
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

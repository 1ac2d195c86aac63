//! Measures a command as its user would see it: the time from before its start until it has ended, and what it used.
//!
//! Nothing is subtracted, and no shell is between. hyperfine measures the same with `--shell=none`.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use ferry_io::child::{self, Usage};
use rustix::process::Pid;

use super::process::{aside, await_end, cannot_run, last_words, prepare};
use crate::error::Failure;
use crate::message::quoted;
use crate::stop::Stop;

/// Destination of a measured command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTo {
    /// Standard output goes to /dev/null. Standard error goes to a file in memory, whose last line explains a failure.
    Nowhere,
    /// Both go where those of this process go.
    User,
}

/// Result of one run of a measured command.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Seconds from before the start until the command was waited for.
    pub seconds: f64,
    /// Processor time and memory.
    pub used: Usage,
    /// Exit status.
    pub status: ExitStatus,
    /// Message about a status other than 0.
    pub failed: Option<String>,
}

/// Runs a command once.
///
/// # Errors
/// [`Failure::Run`] if it can't be started; [`Failure::Interrupted`] if a signal ended it.
pub fn measure(command: &mut Command, output: OutputTo, stop: &Stop) -> Result<Measured, Failure> {
    let name = command.get_program().to_owned();
    let failed = |error: std::io::Error| cannot_run(&name, &error);
    let mut said = aside().map_err(failed)?;
    prepare(command);
    match output {
        OutputTo::Nowhere => {
            command.stdout(Stdio::null()).stderr(said.try_clone().map_err(failed)?);
        }
        OutputTo::User => {
            command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        }
    }
    stop.check()?;
    let start = Instant::now();
    let child = command.spawn().map_err(failed)?;
    // It is reaped even if it could not be awaited, because it was killed then.
    let ended = await_end(Pid::from_child(&child), stop).and(child::wait(child));
    let (status, used) = ended.map_err(failed)?;
    let seconds = start.elapsed().as_secs_f64();
    stop.check()?;
    let words = || format!("{} failed: {}", quoted(&name), last_words(&mut said, status));
    let failed = (!status.success()).then(words);
    Ok(Measured { seconds, used, status, failed })
}

//! Runs and times other programs' commands.
//!
//! A command runs without a shell, in its own process group, with empty standard input. Its output goes to a file in
//! memory, so that its last line can be reported if it fails. An interrupt ends the whole process group.

mod measured;
mod process;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use self::process::{aside, await_end, cannot_run, has_ended, last_words, prepare, text};
use crate::error::Failure;
use crate::message::quoted;
use crate::search_path::find_program;
use crate::stop::Stop;

pub use self::measured::{Measured, OutputTo, measure};
pub use self::words::{line, words};

#[cfg(test)]
mod tests;

/// Time limit of `--version`.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments; `{source}` and `{target}` stand for paths.
    pub arguments: Vec<OsString>,
}

/// Result of one run of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// Seconds from start to exit.
    pub seconds: f64,
    /// Standard output.
    pub printed: String,
}

impl Stranger {
    /// A command with these arguments.
    #[must_use]
    pub fn new(program: &Path, arguments: &[&str]) -> Self {
        Self { program: program.to_owned(), arguments: arguments.iter().map(OsString::from).collect() }
    }

    /// Splits a command line as a shell would, and looks its program up on the PATH. A program that is not found keeps
    /// its name.
    ///
    /// # Errors
    /// Fails if a quote is not closed or the line is empty.
    pub fn parse(line: &str) -> Result<Self, Failure> {
        let words =
            words(line).map_err(|why| Failure::Misuse(format!("{why} in {}", quoted(line.as_ref()))))?;
        let mut words = words.into_iter().map(OsString::from);
        let name = words.next().ok_or_else(|| Failure::Misuse("an empty command can't be run".to_owned()))?;
        let program = find_program(&name).unwrap_or_else(|| name.into());
        Ok(Self { program, arguments: words.collect() })
    }

    /// Returns the reason why the command cannot run, if its program does not exist.
    #[must_use]
    pub fn absent(&self) -> Option<String> {
        let name = self.program.as_os_str();
        find_program(name).is_none().then(|| crate::needs::Unmet::Program(name.to_owned()).to_string())
    }

    /// File name of the program.
    #[must_use]
    pub fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Runs the command on `source` and `target` and waits for its end.
    ///
    /// # Errors
    /// [`Failure::Run`] with its last line of output if it cannot be started or fails; [`Failure::Interrupted`] if a
    /// signal ended it.
    pub fn run(&self, source: &Path, target: &Path, stop: &Stop) -> Result<Returned, Failure> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments.iter().map(|argument| filled(argument, source, target)));
        time(&mut command, stop)
    }
}

/// Replaces `{source}` and `{target}` in an argument.
fn filled(argument: &OsStr, source: &Path, target: &Path) -> OsString {
    let Some(text) = argument.to_str() else { return argument.to_owned() };
    let mut out = OsString::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, place) = rest.split_at(start);
        out.push(before);
        rest = if let Some(after) = place.strip_prefix("{source}") {
            out.push(source);
            after
        } else if let Some(after) = place.strip_prefix("{target}") {
            out.push(target);
            after
        } else {
            out.push("{");
            &place[1..]
        };
    }
    out.push(rest);
    out
}

/// Runs a command and measures the time from before its start until after its end.
///
/// # Errors
/// As [`Stranger::run`].
pub fn time(command: &mut Command, stop: &Stop) -> Result<Returned, Failure> {
    let name = command.get_program().to_owned();
    let failed = |error: &std::io::Error| cannot_run(&name, error);
    let (mut printed, mut said) = (aside().map_err(|e| failed(&e))?, aside().map_err(|e| failed(&e))?);
    prepare(command);
    command.stdout(printed.try_clone().map_err(|e| failed(&e))?);
    command.stderr(said.try_clone().map_err(|e| failed(&e))?);
    stop.check()?;
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    // It is reaped even if it could not be awaited, because it was killed then.
    let ended = await_end(Pid::from_child(&child), stop).and(child.wait());
    let status = ended.map_err(|error| failed(&error))?;
    let seconds = start.elapsed().as_secs_f64();
    stop.check()?;
    if !status.success() {
        return Err(Failure::Run(format!("{} failed: {}", quoted(&name), last_words(&mut said, status))));
    }
    Ok(Returned { seconds, printed: text(&mut printed) })
}

/// Loads a program into memory after the caches were dropped: its file, and the libraries that `--version` needs.
pub fn wake(program: &Path) {
    if let Ok(mut file) = std::fs::File::open(program) {
        std::io::copy(&mut file, &mut std::io::sink()).ok();
    }
    drop(version(program));
}

/// Returns the first line that a program prints for `--version`, or an empty text.
#[must_use]
pub fn version(program: &Path) -> String {
    let Ok(mut printed) = aside() else { return String::new() };
    let Ok(output) = printed.try_clone() else { return String::new() };
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let Ok(mut child) = command.spawn() else { return String::new() };
    match ended_within(&mut child, VERSION_LIMIT) {
        Ok(Some(status)) if status.success() => {
            text(&mut printed).lines().next().unwrap_or_default().trim().to_owned()
        }
        Ok(_) | Err(_) => String::new(),
    }
}

/// Waits up to `limit`, then kills the child.
fn ended_within(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let process = Pid::from_child(child);
    let end = pidfd_open(process, PidfdFlags::empty()).map_err(std::io::Error::from);
    let ended = end.and_then(|end| has_ended(&end, limit));
    if !matches!(ended, Ok(true)) {
        kill_process_group(process, Signal::KILL).ok();
    }
    let status = child.wait()?;
    Ok(ended?.then_some(status))
}

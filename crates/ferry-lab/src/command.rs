//! Runs and times other programs' commands.
//!
//! A command runs without a shell, in its own process group, with empty standard input. Its output goes to a file in
//! memory, so that its last line can be reported if it fails. An interrupt ends the whole process group.

mod words;

use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ferry_io::event::label;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::error::Failure;
use crate::message::{quoted, reason};
use crate::search_path::find_program;
use crate::stop::Stop;

pub use words::words;

#[cfg(test)]
mod tests;

/// Time for a command to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// Time limit of `--version`.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Maximum length, in characters, of a failed command's reported output.
const LAST_WORDS: usize = 300;

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
    let failed =
        |error: &std::io::Error| Failure::Run(format!("{} can't be run: {}", quoted(&name), reason(error)));
    let (mut printed, mut said) = (aside().map_err(|e| failed(&e))?, aside().map_err(|e| failed(&e))?);
    let run = label::current();
    if !run.is_empty() {
        command.env(label::VARIABLE, run);
    }
    command.stdin(Stdio::null());
    command.stdout(printed.try_clone().map_err(|e| failed(&e))?);
    command.stderr(said.try_clone().map_err(|e| failed(&e))?);
    std::os::unix::process::CommandExt::process_group(command, 0);
    stop.check()?;
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let status = wait(&mut child, stop).map_err(|error| failed(&error))?;
    let seconds = start.elapsed().as_secs_f64();
    stop.check()?;
    if !status.success() {
        return Err(Failure::Run(format!("{} failed: {}", quoted(&name), last_words(&mut said, status))));
    }
    Ok(Returned { seconds, printed: text(&mut printed) })
}

/// A file in memory for a command's output. A pipe would have to be read while the command is timed.
fn aside() -> std::io::Result<std::fs::File> {
    Ok(rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

fn text(file: &mut std::fs::File) -> String {
    let mut bytes = Vec::new();
    if file.rewind().and_then(|()| file.read_to_end(&mut bytes)).is_err() {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_words(said: &mut std::fs::File, status: ExitStatus) -> String {
    let said = text(said);
    let line = said.trim().lines().last().unwrap_or_default();
    if line.is_empty() { status.to_string() } else { line.chars().take(LAST_WORDS).collect() }
}

/// Waits for a child's end. If the experiment is stopped meanwhile, ends the child's process group.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<ExitStatus> {
    let process = Pid::from_child(child);
    let end = pidfd_open(process, PidfdFlags::empty())?;
    let mut ready =
        [PollFd::new(&end, PollFlags::IN), PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN)];
    // A signal ends poll(2) with EINTR even with SA_RESTART.
    retry_on_intr(|| poll(&mut ready, None))?;
    if !ready[0].revents().is_empty() {
        return child.wait();
    }
    for signal in [Signal::TERM, Signal::KILL] {
        // Fails if the group has ended meanwhile.
        kill_process_group(process, signal).ok();
        if has_ended(&end, GRACE)? {
            break;
        }
    }
    child.wait()
}

/// Waits up to `limit` for the end of a process.
fn has_ended(end: &OwnedFd, limit: Duration) -> std::io::Result<bool> {
    let mut ready = [PollFd::new(end, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut ready, Some(&timespec(limit))))? > 0)
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
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
    let end = pidfd_open(process, PidfdFlags::empty())?;
    if !has_ended(&end, limit)? {
        kill_process_group(process, Signal::KILL).ok();
        child.wait()?;
        return Ok(None);
    }
    child.wait().map(Some)
}

//! The process of a command: what it begins with, waiting for its end, and what it said.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use ferry_io::event::label;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::error::Failure;
use crate::message::{quoted, reason};
use crate::stop::Stop;

/// Time for a command to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// Maximum length, in characters, of a failed command's reported output.
const LAST_WORDS: usize = 300;

/// Gives a command empty standard input, a process group, and the label of its run.
pub(super) fn prepare(command: &mut Command) {
    let run = label::current();
    if !run.is_empty() {
        command.env(label::VARIABLE, run);
    }
    command.stdin(Stdio::null());
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Waits for the end of a process without reaping it. If the experiment is stopped meanwhile, or the process can't be
/// awaited, ends the whole process group.
pub(super) fn await_end(process: Pid, stop: &Stop) -> std::io::Result<()> {
    let awaited = await_end_or_stop(process, stop);
    if awaited.is_err() || stop.is_set() {
        // Others of the group may have outlived its leader. The group's number is not another's before the leader is
        // reaped. Fails if the group is empty.
        kill_process_group(process, Signal::KILL).ok();
    }
    awaited
}

/// Waits for the end of a process. If the experiment is stopped meanwhile, asks the process group to end, and waits for
/// the end of the process again.
fn await_end_or_stop(process: Pid, stop: &Stop) -> std::io::Result<()> {
    let end = pidfd_open(process, PidfdFlags::empty())?;
    let mut ready =
        [PollFd::new(&end, PollFlags::IN), PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN)];
    // A signal ends poll(2) with EINTR even with SA_RESTART.
    retry_on_intr(|| poll(&mut ready, None))?;
    if !ready[0].revents().is_empty() {
        return Ok(());
    }
    for signal in [Signal::TERM, Signal::KILL] {
        // Fails if the group has ended meanwhile.
        kill_process_group(process, signal).ok();
        if has_ended(&end, GRACE)? {
            break;
        }
    }
    Ok(())
}

/// Waits up to `limit` for the end of a process.
pub(super) fn has_ended(end: &OwnedFd, limit: Duration) -> std::io::Result<bool> {
    let mut ready = [PollFd::new(end, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut ready, Some(&timespec(limit))))? > 0)
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// A file in memory for a command's output. A pipe would have to be read while the command is timed.
pub(super) fn aside() -> std::io::Result<File> {
    Ok(rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// Reads what a command wrote.
pub(super) fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    if file.rewind().and_then(|()| file.read_to_end(&mut bytes)).is_err() {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the last line of what a failed command said, or else its status.
pub(super) fn last_words(said: &mut File, status: ExitStatus) -> String {
    let said = text(said);
    let line = said.trim().lines().last().unwrap_or_default();
    if line.is_empty() { status.to_string() } else { line.chars().take(LAST_WORDS).collect() }
}

/// A command that could not be started or waited for.
pub(super) fn cannot_run(program: &OsStr, error: &std::io::Error) -> Failure {
    Failure::Run(format!("{} can't be run: {}", quoted(program), reason(error)))
}

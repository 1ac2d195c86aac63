//! `ferry trace record`: a recording of what the kernel does for a program's rings, whatever program that is.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};

use ferry_io::Tracing;
use ferry_io::event::ProgramsRecording;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::arguments::Effect::{Print, Value};
use crate::arguments::{self, Definition, Manual, Read, Text, Usage};
use crate::cli::Parsed;
use crate::output::Output;
use crate::quote::quote;

/// The command's name.
pub(super) const NAME: &str = "record";

/// The recording or the command could not be begun, as with env(1).
const NOT_BEGUN: u8 = 125;
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace record",
    about: "Record what the kernel does for a program's rings",
    usage: "ferry trace record [--output FILE] -- COMMAND [ARGUMENT]...",
    after: "\
COMMAND is run as it is; it and all of its threads and children are recorded from then on: the requests that its rings \
took, with what came of them and when, why the kernel ran task work, what was handed to kernel workers, who slept and \
who woke whom, with the functions that led there. It needs root or CAP_PERFMON. Signals are passed on to COMMAND; those \
of a terminal reach it by themselves.

FILE is trace.ferry if it is not given. It is made when COMMAND has ended. An older recording there is replaced, \
anything else is left alone: what came there meanwhile is not replaced, and FILE.2 is made, or the next that is free. \
Of a program on ferry-io, such as ferry itself, its own --trace FILE, or FERRY_TRACE=FILE in its environment, records \
both sides into one file.

Exit status:
  that of COMMAND, or, if a signal ended it, the same end
  2    the command line is wrong
  125  nothing can be recorded here, or the recording could not be written
  126  COMMAND can't be run
  127  COMMAND is not found",
};

/// An order without its command.
#[derive(Default)]
pub(crate) struct Draft {
    output: Option<PathBuf>,
}

const OPTIONS: &[Definition<Draft>] = &[
    Definition {
        letters: "o",
        long: "output",
        help: "Record to this file instead of trace.ferry",
        effect: Value("FILE", |draft, text| {
            draft.output = Some(text.into());
            Ok(())
        }),
        own: false,
    },
    Definition { letters: "", long: "help", help: "Print this help", effect: Print(Text::Help), own: false },
];

/// What is run, and where it is recorded.
pub(crate) struct Record {
    file: PathBuf,
    command: Vec<OsString>,
}

/// The options, as clap has them.
pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

/// Reads the arguments after `record`.
pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Record>, Usage> {
    let mut draft = Draft::default();
    let end = rest.iter().position(|word| word == "--");
    let (own, command) = rest.split_at(end.unwrap_or(rest.len()));
    match arguments::read(OPTIONS, own, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(self::command()))),
        Read::Operands(operands) => {
            if let Some(word) = operands.first() {
                return Err(Usage::with_hint(format!("{} stands before '--'", quote(word))));
            }
        }
    }
    let Some((_, command)) = command.split_first().filter(|(_, command)| !command.is_empty()) else {
        return Err(Usage::with_hint("missing '-- COMMAND'"));
    };
    let file = draft.output.unwrap_or_else(|| "trace.ferry".into());
    Ok(Parsed::Run(Box::new(Record { file, command: command.to_vec() })))
}

impl Record {
    /// Runs the command, and ends as it does.
    pub(super) fn run(&self) -> ExitCode {
        let output = Output::new();
        let fail = |why: &str, code: u8| {
            output.error(&format!("{}: {why}", MANUAL.name));
            ExitCode::from(code)
        };
        let Some((program, arguments)) = self.command.split_first() else { return ExitCode::from(NOT_FOUND) };
        let heeded = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];
        let heeded = heeded.into_iter().filter(|&signal| !ferry_io::is_ignored(signal));
        let signals = match Signals::new(heeded) {
            Ok(signals) => signals,
            Err(error) => return fail(&format!("signals can't be passed on: {error}"), NOT_BEGUN),
        };
        let recording = match ProgramsRecording::begin(&Tracing::to(&self.file), &self.command) {
            Ok(recording) => recording,
            Err(error) => return fail(&error.to_string(), NOT_BEGUN),
        };
        if let Some(refusal) = recording.refusal() {
            // Dropped, it leaves an older recording as it is.
            return fail(&format!("what the kernel does can't be seen here: {refusal}"), NOT_BEGUN);
        }
        let mut child = match Command::new(program).args(arguments).spawn() {
            Ok(child) => child,
            Err(error) => {
                // Nothing was done: an older recording stays.
                drop(recording);
                let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
                return fail(&format!("cannot run {}: {}", quote(program), plain(&error)), code);
            }
        };
        let status = wait(&mut child, signals);
        let recorded = recording.finish();
        if let Some(why) = &recorded.failure {
            let how = if recorded.is_whole { "not all of it was recorded" } else { "the recording failed" };
            return fail(
                &format!("{how} to {}: {}", quote(&recorded.file), ferry_io::Cause::Errno(*why)),
                NOT_BEGUN,
            );
        }
        let told =
            recorded.instead_of.as_ref().map(|told| format!(": what {} is now is not replaced", quote(told)));
        let told = told.unwrap_or_default();
        output.error(&format!("{}: recorded to {}{told}", MANUAL.name, quote(&recorded.file)));
        match status {
            Ok(status) => ended(status),
            Err(error) => fail(&format!("waiting for it failed: {}", plain(&error)), NOT_BEGUN),
        }
    }
}

/// Waits for the command, and passes on what signals come meanwhile.
fn wait(child: &mut Child, mut signals: Signals) -> std::io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = signals.handle();
    let pass_on = move || {
        for number in signals.forever() {
            // A terminal has told everybody in the foreground.
            let is_told = matches!(number, SIGINT | SIGQUIT) && is_in_foreground();
            if let (false, Some(pid), Some(signal)) = (is_told, pid, Signal::from_named_raw(number)) {
                // It may have ended just now; nobody else has its number before it is waited for.
                kill_process(pid, signal).ok();
            }
        }
    };
    let passing = std::thread::Builder::new().name("signals".to_owned()).spawn(pass_on)?;
    if let Some(pid) = pid {
        let is_over = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while is_over().is_err_and(|errno| errno == rustix::io::Errno::INTR) {}
    }
    handle.close();
    passing.join().ok();
    child.wait()
}

fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Its exit code, or the signal that ended it.
fn ended(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        signal_hook::low_level::emulate_default_handler(signal).ok();
        return u8::try_from(128 + signal).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Its words, without the number that std adds.
fn plain(error: &std::io::Error) -> String {
    rustix::io::Errno::from_io_error(error)
        .map_or_else(|| error.to_string(), |errno| ferry_io::Cause::Errno(errno).to_string())
}

//! `ferry trace record`: records what the kernel does for the rings of any program, and the program's side if it runs on
//! ferry-io.

mod program;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};

use ferry_io::Tracing;
use ferry_io::event::{ProgramsRecording, Recorded};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use self::program::{ProgramSide, Sides};
use crate::arguments::Effect::{Print, Switch, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::output::{Output, describe};
use crate::quote::quote;
use crate::signals;

pub(super) const NAME: &str = "record";

/// Exit codes of env(1): own failure, command can't run, command not found.
const NOT_BEGUN: u8 = 125;
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace record",
    about: "Record what the kernel does for a program's rings",
    usage: "ferry trace record [OPTION]... -- COMMAND [ARGUMENT]...",
    examples: &[
        ("ferry trace record -- fio --ioengine=io_uring --size=64M --name=reads", "Record fio"),
        ("ferry trace record -o copy.trace -- ferry cp -r photos backup", "Record both sides of a copy"),
        ("ferry trace show copy.trace", "Show where its time went"),
    ],
    usual: &[],
    after: "\
Runs COMMAND and records it with all of its threads and children. A recording holds the requests of rings \
with their results and times, the reasons for task work, and requests handed to kernel workers. It also \
holds which threads slept and what woke them, with call chains, and the requests of block devices, also those \
of other programs. This needs root or CAP_PERFMON. Signals are \
forwarded to COMMAND, except those that the terminal already sent to it.

FILE is created when COMMAND ends. It replaces an older recording. If another file has the name, the \
recording is FILE.2 and so on.

If COMMAND is a program on ferry-io, such as ferry itself, the recording also holds the program's side: its \
fibers and operations, with their routes. COMMAND gets FERRY_TRACE, which names a file in a temporary \
directory, and FERRY_TRACE_KERNEL=0. If it makes several runs on ferry-io, their sides are not recorded: set \
FERRY_TRACE=FILE.%n instead, without `ferry trace record`, to get a recording of each. Without the right to \
trace the kernel, FERRY_TRACE=FILE or `ferry cp --trace FILE` records the program's side alone.

Exit status:
  that of COMMAND; if a signal ended it, ferry ends by the same signal
  2    the command line is wrong
  125  nothing can be recorded here, or the recording could not be written
  126  COMMAND can't be run
  127  COMMAND is not found

Environment:
  FERRY_TRACE  if set, COMMAND records its side there, and FILE holds only the kernel's side
  TMPDIR       directory for the program's side until it is joined [default: /tmp]",
};

#[derive(Default)]
pub(crate) struct Draft {
    output: Option<PathBuf>,
    is_kernel_only: bool,
}

const OPTIONS: &[Definition<Draft>] = &[
    Definition {
        letters: "o",
        ..option(
            "output",
            "Record to FILE [default: trace.ferry]",
            Value("FILE", |draft, text| {
                draft.output = Some(text.into());
                Ok(())
            }),
        )
    },
    option(
        "kernel-only",
        "Leave out the program's side, for COMMANDs that cannot reach the temporary directory",
        Switch(|draft| draft.is_kernel_only = true),
    ),
    option("help", "Print this help", Print(Text::Help)),
];

pub(crate) struct Record {
    file: PathBuf,
    is_kernel_only: bool,
    command: Vec<OsString>,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Record>, Usage> {
    let mut draft = Draft::default();
    let end = rest.iter().position(|word| word == "--");
    let (own, command) = rest.split_at(end.unwrap_or(rest.len()));
    match arguments::read(OPTIONS, own, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(self::command()))),
        Read::Operands(operands) => {
            if let Some(word) = operands.first() {
                return Err(Usage::with_hint(format!("unexpected operand {} before '--'", quote(word))));
            }
        }
    }
    let Some((_, command)) = command.split_first().filter(|(_, command)| !command.is_empty()) else {
        return Err(Usage::with_hint("missing '-- COMMAND'"));
    };
    let file = draft.output.unwrap_or_else(|| "trace.ferry".into());
    let is_kernel_only = draft.is_kernel_only;
    Ok(Parsed::Run(Box::new(Record { file, is_kernel_only, command: command.to_vec() })))
}

impl Record {
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
            Err(error) => return fail(&format!("cannot forward signals: {error}"), NOT_BEGUN),
        };
        let recording = match ProgramsRecording::begin(&Tracing::to(&self.file), &self.command) {
            Ok(recording) => recording,
            Err(error) => return fail(&error.to_string(), NOT_BEGUN),
        };
        if let Some(refusal) = recording.refusal() {
            // Dropping the recording keeps an older one.
            return fail(&format!("cannot trace the kernel: {refusal}"), NOT_BEGUN);
        }
        let mut command = Command::new(program);
        command.args(arguments);
        let program_side =
            if self.is_kernel_only { ProgramSide::LeftOut(None) } else { ProgramSide::ask(&mut command) };
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                // Nothing ran, so keep an older recording.
                drop(recording);
                let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
                return fail(&format!("cannot run {}: {}", quote(program), describe(&error)), code);
            }
        };
        let status = wait(&mut child, signals);
        let recorded = recording.finish();
        if let Some(why) = &recorded.failure {
            let (file, why) = (quote(&recorded.file), ferry_io::Cause::Errno(*why));
            let failed = if recorded.is_whole {
                format!("the recording {file} is incomplete: {why}")
            } else {
                format!("cannot record to {file}: {why}")
            };
            return fail(&failed, NOT_BEGUN);
        }
        tell(&output, &recorded, program_side.join(&recorded.file));
        match status {
            Ok(status) => ended(status),
            Err(error) => fail(&format!("cannot wait for the command: {}", describe(&error)), NOT_BEGUN),
        }
    }
}

/// Names the recording, and explains what it lacks.
fn tell(output: &Output, recorded: &Recorded, sides: Sides) {
    let (both, lines) = match sides {
        Sides::Both => (", with the program's side", Vec::new()),
        Sides::Kernel(lines) => ("", lines),
    };
    let told =
        recorded.instead_of.as_ref().map(|told| format!(", because {} may not be replaced", quote(told)));
    let (file, told) = (quote(&recorded.file), told.unwrap_or_default());
    output.error(&format!("{}: recorded to {file}{both}{told}", MANUAL.name));
    for (number, line) in lines.iter().enumerate() {
        let beginning = if number == 0 { "only the kernel's side: " } else { "" };
        output.error(&format!("{}: {beginning}{line}", MANUAL.name));
    }
}

/// Waits for the command, and forwards signals to it.
fn wait(child: &mut Child, mut signals: Signals) -> std::io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = signals.handle();
    let pass_on = move || {
        for number in signals.forever() {
            // The terminal already sent these to its foreground processes.
            let is_told = matches!(number, SIGINT | SIGQUIT) && is_in_foreground();
            if let (false, Some(pid), Some(signal)) = (is_told, pid, Signal::from_named_raw(number)) {
                // The command may have ended, but its process id is reserved until it is waited for.
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

/// Returns the command's exit code, or ends by the same signal.
fn ended(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        return signals::end_by(signal);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

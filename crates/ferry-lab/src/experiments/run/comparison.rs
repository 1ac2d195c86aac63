//! The two commands: how settings name them, and one run of one of them.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_io::child::Usage;

use super::names::{FLOOR, MEMORY, STATUS, SYSTEM, TIME, USER};
use crate::cache::State;
use crate::command::{OutputTo, measure, words};
use crate::error::Failure;
use crate::message::quoted;
use crate::record::{Cell, Figures, Value};
use crate::session::Session;
use crate::settings::Settings;
use crate::stop::Stop;
use crate::units::real;

/// Peaks of memory that are read twice differ by less.
const SLACK: u64 = 1 << 20;

/// Two commands, and what each run of them needs.
pub(super) struct Comparison {
    pub(super) commands: [Named; 2],
    pub(super) state: State,
    /// Files whose cache state is prepared and proved, without links in their paths.
    pub(super) files: Vec<PathBuf>,
    pub(super) ignores_failure: bool,
    prepare: Option<Words>,
    cleanup: Option<Words>,
    output: OutputTo,
}

/// A command and its name.
pub(super) struct Named {
    name: String,
    line: String,
    words: Words,
}

/// Words of a command line.
struct Words {
    program: String,
    arguments: Vec<String>,
}

impl Named {
    fn new(name: String, (words, line): (Words, String)) -> Self {
        Self { name, line, words }
    }
}

impl Comparison {
    /// Reads the settings.
    pub(super) fn of(settings: &Settings) -> Result<Self, Failure> {
        let has_shell = settings.is_on("shell");
        let read = |name: &str| -> Result<(Words, String), Failure> {
            let line = settings.text(name);
            if line.is_empty() {
                let why = "two commands are needed: '-- COMMAND -- COMMAND'".to_owned();
                return Err(Failure::Misuse(why));
            }
            Ok((Words::of(&line, has_shell)?, line))
        };
        let (one, other) = (read("first")?, read("second")?);
        let [first, second] = match settings.text("names") {
            given if given.is_empty() => unnamed([one.0.name(), other.0.name()], has_shell),
            given => named(&given)?,
        };
        let commands = [Named::new(first, one), Named::new(second, other)];
        let optional = |name: &str| {
            let line = settings.text(name);
            (!line.is_empty()).then(|| Words::of(&line, has_shell)).transpose()
        };
        let real_path = |path: String| {
            let path = PathBuf::from(path);
            path.canonicalize().map_err(|error| Failure::file("open", &path, &error))
        };
        Ok(Self {
            commands,
            state: State::named(&settings.text("state")).unwrap_or(State::Warm),
            files: settings.texts("files").into_iter().map(real_path).collect::<Result<_, _>>()?,
            ignores_failure: settings.is_on("ignore-failure"),
            prepare: optional("prepare")?,
            cleanup: optional("cleanup")?,
            output: if settings.is_on("show-output") { OutputTo::User } else { OutputTo::Nowhere },
        })
    }

    /// Programs that are run.
    pub(super) fn programs(&self) -> impl Iterator<Item = OsString> {
        let commands = self.commands.iter().map(|command| &command.words);
        commands.chain(&self.prepare).chain(&self.cleanup).map(|words| OsString::from(&words.program))
    }

    /// A cell for each command; the second is compared with the first.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let cell = |command: &Named| {
            let cell = Cell::new(&[("command", command.name.as_str().into())], self.state);
            cell.with("line", command.line.as_str().into())
        };
        let [first, second] = self.commands.each_ref().map(cell);
        let second = second.against(&first);
        vec![first, second]
    }

    /// Runs `--prepare`.
    pub(super) fn before(&self, stop: &Stop) -> Result<(), Failure> {
        self.aside(self.prepare.as_ref(), "--prepare", stop)
    }

    /// Runs a command once, and `--cleanup` even if it has failed.
    pub(super) fn take(&self, command: &Named, floor: u64, stop: &Stop) -> Result<Figures, Failure> {
        let measured = measure(&mut command.words.command(), self.output, stop);
        let cleaned = self.aside(self.cleanup.as_ref(), "--cleanup", stop);
        let measured = measured.map_err(|failure| aborted(&command.name, failure))?;
        if let Some(why) = measured.failed.filter(|_| !self.ignores_failure) {
            return Err(Failure::Aborted(format!("{}: {why}", command.name)));
        }
        cleaned?;
        let Usage { user, system, peak_bytes } = measured.used;
        let mut figures = Figures::from([
            (TIME.to_owned(), measured.seconds),
            (USER.to_owned(), user.as_secs_f64()),
            (SYSTEM.to_owned(), system.as_secs_f64()),
        ]);
        if peak_bytes > floor.max(own_peak()) {
            figures.insert(MEMORY.to_owned(), real(peak_bytes));
        }
        if self.ignores_failure {
            let signal = measured.status.signal().map(|signal| 128 + signal);
            let status = measured.status.code().or(signal).unwrap_or_default();
            figures.insert(STATUS.to_owned(), f64::from(status));
        }
        Ok(figures)
    }

    /// Runs an uncounted command, if there is one.
    fn aside(&self, words: Option<&Words>, option: &str, stop: &Stop) -> Result<(), Failure> {
        let Some(words) = words else { return Ok(()) };
        let ended = measure(&mut words.command(), self.output, stop);
        match ended.map_err(|failure| aborted(option, failure))?.failed {
            Some(why) => Err(Failure::Aborted(format!("{option}: {why}"))),
            None => Ok(()),
        }
    }
}

impl Words {
    fn of(line: &str, has_shell: bool) -> Result<Self, Failure> {
        if has_shell {
            return Ok(Self { program: "sh".to_owned(), arguments: vec!["-c".to_owned(), line.to_owned()] });
        }
        let words = words(line);
        let words = words.map_err(|why| Failure::Misuse(format!("{why} in {}", quoted(line.as_ref()))))?;
        let mut words = words.into_iter();
        let empty = || Failure::Misuse(format!("there is no command in {}", quoted(line.as_ref())));
        Ok(Self { program: words.next().ok_or_else(empty)?, arguments: words.collect() })
    }

    /// File name of the program.
    fn name(&self) -> &str {
        Path::new(&self.program).file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

/// Parses `--names`.
fn named(given: &str) -> Result<[String; 2], Failure> {
    let names: Vec<&str> = given.split(',').map(str::trim).collect();
    match names[..] {
        [first, second] if !first.is_empty() && !second.is_empty() && first != second => {
            Ok([first, second].map(str::to_owned))
        }
        _ => {
            let value = quoted(given.as_ref());
            Err(Failure::Misuse(format!(
                "invalid value {value} for '--names'; it must be two different names: A,B"
            )))
        }
    }
}

/// Names two commands after their programs, unless these are the same.
fn unnamed(programs: [&str; 2], has_shell: bool) -> [String; 2] {
    let [first, second] = programs;
    let differ = first != second && !first.is_empty() && !second.is_empty();
    let names = if differ && !has_shell { programs } else { ["A", "B"] };
    names.map(str::to_owned)
}

/// Names what could not be run.
fn aborted(name: &str, failure: Failure) -> Failure {
    let Failure::Run(why) = failure else { return failure };
    Failure::Aborted(format!("{name}: {why}"))
}

/// Returns the peak of memory up to which that of a command is not known, because a process begins with the peak of the
/// one that starts it. All sessions of a record use the same.
pub(super) fn memory_floor(session: &mut Session<'_>) -> u64 {
    if let Some(known) = session.settled(FLOOR).and_then(Value::as_number) {
        return known;
    }
    let floor = own_peak().next_multiple_of(SLACK);
    session.settle(FLOOR, floor.into());
    floor
}

/// Peak of this process's resident memory in bytes (proc_pid_status(5)), rounded up.
fn own_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024 + SLACK
}

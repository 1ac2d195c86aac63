//! `lab run`: compares two commands that the user names.
//!
//! In each round both commands run once, in random order. `run/comparison.rs` reads the commands from the settings and
//! runs them, `run/answer.rs` states the result. A command that fails ends the experiment, because nothing is left to
//! compare. The commands make their own files, so there is no work folder.

mod answer;
mod comparison;
mod names;

use std::path::PathBuf;

use self::answer::{headline, table};
use self::comparison::{Comparison, memory_floor};
use self::names::{MEMORY, STATUS, SYSTEM, TIME, USER};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Better, Cell, Measure, Record, Scale};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::Table;
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Two commands.
pub(super) struct Run;

const PARAMETERS: &[Parameter] = &[
    Parameter::new("first", "COMMAND", "First command", ParameterKind::Text, ""),
    Parameter::new("second", "COMMAND", "Second command", ParameterKind::Text, ""),
    Parameter::new(
        "names",
        "A,B",
        "Name the commands (by default after their programs, or A and B)",
        ParameterKind::Text,
        "",
    ),
    Parameter::new(
        "state",
        "STATE",
        "Bring the caches into this state before each run: warm, cold (as root)",
        ParameterKind::Word(&["warm", "cold"]),
        "warm",
    ),
    Parameter::new(
        "files",
        "PATH",
        "Prepare and prove the cache state of this file or tree; may be repeated",
        ParameterKind::Texts,
        "",
    ),
    Parameter::new("prepare", "COMMAND", "Run this before each run, uncounted", ParameterKind::Text, ""),
    Parameter::new("cleanup", "COMMAND", "Run this after each run, uncounted", ParameterKind::Text, ""),
    Parameter::new("shell", "", "Run each command by `sh -c`", ParameterKind::Switch, "no"),
    Parameter::new(
        "ignore-failure",
        "",
        "Accept any exit status of the commands",
        ParameterKind::Switch,
        "no",
    ),
    Parameter::new("show-output", "", "Show what the commands print", ParameterKind::Switch, "no"),
];

const SPEC: Spec = Spec {
    name: "run",
    about: "Compares the times of any two commands",
    manual: "\
Each round runs both commands once, in random order. There are 15 rounds (--runs), and 3 with --quick. The first \
line of the result tells which command is faster, with the 95 % confidence interval of the ratio of the times of a \
round. Fewer than 5 rounds have no interval.

The second `--` ends the first command. A time is that from before the start of a command until its end; nothing is \
subtracted from it. A command is started directly, with empty standard input. With --shell its words are joined by \
spaces and run by `sh -c`, as are --prepare and --cleanup. Without it these are split into words as by a shell. \
Standard output is discarded, and the last line of standard error explains a failure. A failure ends the \
measurement, unless --ignore-failure is given.

The state of the caches is one of
  warm  each command runs once before the first round, uncounted; --files are read, and proved to be in memory before \
each run
  cold  the kernel's caches are dropped before each run, so programs are read from the device, too; --files are \
proved not to be in memory

Memory is that of the largest process of a command. It is not known in runs in which it is not larger than that of \
ferry. A command has a median only if it is known in each run. Otherwise `up to N` is the largest one that is known, \
and `under N` means that none is.",
    parameters: PARAMETERS,
    operands: &["first", "second"],
    runs: Runs { default: 15, quick: 3, published: 15 },
    is_measured: true,
};

impl Experiment for Run {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    /// The filesystem of the first of the named files is that of the record.
    fn place(&self, settings: &Settings) -> Option<PathBuf> {
        let first = settings.texts("files").into_iter().next();
        Some(first.unwrap_or_else(|| ".".to_owned()).into())
    }

    fn makes_files(&self) -> bool {
        false
    }

    /// One for each scale: without named files it is what makes the caches warm.
    fn warm_ups(&self, _: Scale) -> u64 {
        1
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new(TIME, "time from the start of the command until its end", "s", Better::Lower),
            Measure::new(USER, "processor time in programs", "s", Better::Lower),
            Measure::new(SYSTEM, "processor time in the kernel", "s", Better::Lower),
            Measure::new(MEMORY, "largest resident memory of a process", "B", Better::Lower),
        ]
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &[TIME]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let its = Comparison::of(settings)?;
        let mut needs: Vec<Need> = its.programs().map(Need::Program).collect();
        if its.state == State::Cold {
            needs.push(Need::DropCaches);
        }
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let its = Comparison::of(session.settings())?;
        let its = &its;
        let cells = its.cells();
        session.plan(cells.len());
        if session.has_taken(&cells) {
            return Ok(());
        }
        if its.ignores_failure {
            let about = "exit status, or 128 and the number of the signal that ended it";
            session.measure(vec![Measure::new(STATUS, about, "", Better::Neither)]);
        }
        let floor = memory_floor(session);
        let sample = Sample::of_all(&its.files, session.seed())?;
        let mut subjects = Vec::new();
        for (cell, command) in cells.into_iter().zip(&its.commands) {
            let take = move |turn: &mut Turn<'_>| its.take(command, floor, turn.stop());
            subjects.push(Subject::new(cell, take).with_before(move |stop| its.before(stop)));
        }
        session.interleave(&mut subjects, &sample)
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        vec![table(record)]
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = Plot::strips(record, "Time of each command", TIME, "", record.cells.iter());
        if plot.is_empty() { Vec::new() } else { vec![plot] }
    }

    fn verdicts(&self, _: &Record) -> Vec<Verdict> {
        Vec::new()
    }

    fn headline(&self, record: &Record) -> Headline {
        headline(record)
    }
}

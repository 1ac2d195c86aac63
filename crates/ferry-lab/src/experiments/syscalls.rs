//! `lab syscalls`: counts the ring's system calls of a copy, by block size, with and without SQPOLL (document 000).
//!
//! `ferry cp` runs as a command: with all operations on the ring, as eio runs them, one request at a time and many;
//! and with the routes that it chooses itself. Its counters are compared with the kernel's tracepoints of the same
//! run, if tracing is permitted. Counting does not slow the runs measurably, so times can be compared.

mod counts;
mod verdicts;

use std::path::Path;

use ferry_io::Errno;
use ferry_tree::workload::{Made, Workload};

use self::counts::Counts;
use super::{copies, tree};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Figures, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::table::Table;
use crate::units::{figure, real, size};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// System calls of a ring.
pub(super) struct Syscalls;

/// Modes of `ferry cp`: name and options.
const MODES: [(&str, &[&str]); 5] = [
    ("one", &["--route=ring", "--backend=uring", "--queue-depth=1"]),
    ("one-sqpoll", &["--route=ring", "--backend=uring", "--queue-depth=1", "--ring-mode=sqpoll"]),
    ("many", &["--route=ring", "--backend=uring", "--queue-depth=64"]),
    ("many-sqpoll", &["--route=ring", "--backend=uring", "--queue-depth=64", "--ring-mode=sqpoll"]),
    ("auto", &[]),
];
const MODE_NAMES: &[&str] = &["one", "one-sqpoll", "many", "many-sqpoll", "auto"];
/// Its files' size, the largest block.
const FILE_BYTES: u64 = 1 << 20;

const PARAMETERS: &[Parameter] = &[
    Parameter::new("files", "N", "Number of files of 1 MiB to copy", ParameterKind::Number(1, 100_000), "64")
        .quick("8")
        .published("3905"),
    Parameter::new(
        "block-sizes",
        "BYTES,...",
        "Block sizes",
        ParameterKind::Sizes(4096, FILE_BYTES),
        "4K,16K,64K,256K,1M",
    )
    .quick("4K,64K,1M")
    .published("4K,1M"),
    Parameter::new(
        "modes",
        "MODE,...",
        "one request at a time or many, with SQPOLL or without, or ferry's own choice",
        ParameterKind::Words(MODE_NAMES),
        "one,one-sqpoll,many,many-sqpoll,auto",
    ),
];

const SPEC: Spec = Spec {
    name: "syscalls",
    about: "Counts the ring's system calls, hand-overs and context switches by block size, with and without SQPOLL",
    manual: "\
Repeats document 000's tracing. For each block size, `ferry cp` runs in these modes, in rounds of random order: every \
operation on the ring with one request at a time (one) or up to 64 (many); the same with a kernel thread that polls \
for requests (-sqpoll); and with its own choice of routes (auto). The program's counters are compared with the \
kernel's tracepoints of the same run, which usually needs root. Without that right, only the program's counters are \
shown, hand-overs are not counted, and context switches come from getrusage(2).",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 5 },
    is_measured: true,
};

impl Experiment for Syscalls {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        let counts = [
            ("ring_enters", "io_uring_enter calls"),
            ("enters_per_block", "calls a block"),
            ("operations_per_submission", "operations a submission"),
            ("handovers", "hand-overs to kernel workers"),
            ("switches", "context switches"),
            ("requests", "requests, including the ring's own"),
            ("traced_enters", "io_uring_enter calls, traced"),
            ("traced_requests", "requests, traced"),
            ("traced_handovers", "hand-overs, traced"),
        ];
        let counts = counts.map(|(name, about)| Measure::new(name, about, "", Better::Neither));
        let time = Measure::new("returned_s", "time until it returned", "s", Better::Lower);
        counts.into_iter().chain([time]).collect()
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        match cell.text("mode").as_str() {
            "auto" => &["returned_s", "switches"],
            "many" => &["ring_enters", "returned_s", "switches"],
            "one" => &["ring_enters", "enters_per_block", "returned_s"],
            _ => &["ring_enters", "returned_s"],
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let mut needs = vec![Need::Ring];
        if let Need::Space { bytes, entries } = tree::space(&workload(settings, 0)) {
            // The source and a copy, and those that are removed at the end of a group.
            needs.push(Need::Space { bytes: bytes.saturating_mul(2), entries: entries.saturating_mul(2) });
        }
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let workload = workload(session.settings(), session.seed());
        let sizes = session.settings().numbers("block-sizes");
        let modes = session.settings().texts("modes");
        let groups: Vec<(u64, Vec<(Cell, Stranger)>)> =
            sizes.iter().map(|bytes| (*bytes, subjects(session, *bytes, &modes))).collect();
        session.plan(sizes.len() * modes.len());
        if session.has_taken(groups.iter().flat_map(|(_, group)| group).map(|(cell, _)| cell)) {
            return Ok(());
        }
        if let Err(errno) = Counts::begin() {
            session.warn(untraced(errno));
        }
        session.step("making the files");
        let source = session.work().join("source");
        let made = tree::make(&workload, &source, tree::threads(), session.stop())?;
        let sample = Sample::of(&source, session.seed())?;
        for (bytes, group) in groups {
            let source = &source;
            let blocks = made.files.saturating_mul(FILE_BYTES.div_ceil(bytes));
            let subject = |(cell, command): (Cell, Stranger)| {
                Subject::new(cell, move |turn: &mut Turn<'_>| {
                    let copying =
                        |target: &Path, stop: &Stop| counted(&command, source, target, &made, blocks, stop);
                    copies::once(source, turn.fresh("copy"), turn, copying)
                })
            };
            let mut subjects: Vec<Subject<'_>> = group.into_iter().map(subject).collect();
            session.interleave(&mut subjects, &sample)?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let columns = [
            ("ring_enters", ""),
            ("enters_per_block", ""),
            ("operations_per_submission", ""),
            ("handovers", ""),
            ("switches", ""),
            ("returned_s", "s"),
        ];
        let beside = [
            ("ring_enters", ""),
            ("traced_enters", ""),
            ("requests", ""),
            ("traced_requests", ""),
            ("handovers", ""),
            ("traced_handovers", ""),
        ];
        vec![
            medians(record, "By mode and block size", &columns),
            medians(record, "The program's counters and the kernel's tracepoints", &beside),
        ]
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = |(title, measure): (&str, &str)| {
            let series = |cell: &Cell| cell.text("mode");
            Plot::lines(record, title, measure, "block_bytes", series, &record.cells)
        };
        let plots = [
            ("System calls by block size", "ring_enters"),
            ("Operations a submission by block size", "operations_per_submission"),
            ("Hand-overs by block size", "handovers"),
            ("Context switches by block size", "switches"),
            ("Time by block size", "returned_s"),
        ];
        plots.into_iter().map(plot).filter(|plot| !plot.is_empty()).collect()
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }
}

fn workload(settings: &Settings, seed: u64) -> Workload {
    Workload::plain(0, 0, settings.number("files"), FILE_BYTES, seed)
}

/// A cell and a command for each mode. SQPOLL is compared with the same without it, `auto` with many requests.
fn subjects(session: &Session<'_>, bytes: u64, modes: &[String]) -> Vec<(Cell, Stranger)> {
    let cell = |mode: &str| {
        let parameters = [("mode", mode.into()), ("block", size(bytes).as_str().into())];
        Cell::new(&parameters, State::Warm).with("block_bytes", bytes.into())
    };
    let subject = |(mode, options): &(&str, &[&str])| {
        let block = format!("--block-size={bytes}");
        let words = words(&block, options);
        let base = match *mode {
            "one-sqpoll" => Some("one"),
            "many-sqpoll" | "auto" => Some("many"),
            _ => None,
        };
        let found = base.map_or_else(|| cell(mode), |base| cell(mode).against(&cell(base)));
        (found, Stranger::new(session.ferry(), &words))
    };
    MODES.iter().filter(|(mode, _)| modes.iter().any(|wanted| wanted == mode)).map(subject).collect()
}

fn untraced(errno: Errno) -> Warning {
    Warning::note(
        WarningKind::Experiment,
        format!("the kernel's tracepoints can't be counted ({})", ferry_io::Cause::Errno(errno)),
        "the program's counters could not be checked: run it as root",
    )
}

/// `ferry cp` that moves every byte by blocks: what the kernel shares or copies would make the figures a block
/// meaningless, and is among the bytes that it counts.
fn words<'w>(block: &'w str, options: &[&'w str]) -> Vec<&'w str> {
    [&["cp", "-r", copies::NEVER_SHARED, "--stats=json", block], options, &["{source}", "{target}"]].concat()
}

/// Copies and counts.
fn counted(
    command: &Stranger,
    source: &Path,
    target: &Path,
    made: &Made,
    blocks: u64,
    stop: &Stop,
) -> Result<Figures, Failure> {
    let switches_before = ferry_io::counting::switches_of_ended_children();
    let counts = Counts::begin().ok();
    let returned = command.run(source, target, stop)?;
    let mut figures = Figures::new();
    let switches = ferry_io::counting::switches_of_ended_children().saturating_sub(switches_before);
    figures.insert("switches".to_owned(), real(switches));
    figures.extend(counts.iter().flat_map(Counts::figures));
    figures.extend(counts::of_program(&returned.printed)?);
    let copied = figures.remove("bytes").unwrap_or_default();
    // A figure for each block is valid only if every byte was copied.
    if (copied - real(made.bytes)).abs() >= 1.0 {
        let why = format!("it copied {} of {}", figure(copied, "B"), figure(real(made.bytes), "B"));
        return Err(Failure::Run(why));
    }
    if let Some(enters) = figures.get("ring_enters").copied() {
        figures.insert("enters_per_block".to_owned(), enters / real(blocks.max(1)));
    }
    figures.insert("returned_s".to_owned(), returned.seconds);
    Ok(figures)
}

/// The medians of some measures, a row a cell.
fn medians(record: &Record, title: &str, measures: &[(&str, &str)]) -> Table {
    let about = |name: &str| record.measure(name).map_or_else(String::new, |measure| measure.about.clone());
    let names: Vec<String> = measures.iter().map(|(name, _)| about(name)).collect();
    let columns: Vec<&str> = ["mode and block"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &columns);
    for cell in &record.cells {
        let text = |(name, unit): &(&str, &str)| {
            let summary = record.summary(cell, name);
            summary.map_or_else(|| "-".to_owned(), |found| figure(found.median.middle, unit))
        };
        let mut row: Vec<String> =
            std::iter::once(cell.name.clone()).chain(measures.iter().map(text)).collect();
        if let Some(why) = cell.missing.as_ref().filter(|_| cell.runs.is_empty()) {
            row[1].clone_from(why);
        }
        table.row(row);
    }
    table
}

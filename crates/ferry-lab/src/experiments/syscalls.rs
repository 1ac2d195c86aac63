//! `lab syscalls`: counts the ring's system calls of a copy, by block size, with and without SQPOLL (document 000).
//!
//! `ferry cp` runs as a command: with all operations on the ring, as eio runs them, one request at a time and many;
//! and with the routes that it chooses itself. The documents' program `dfs` copies a tree of its own, because the calls
//! of its fibers depend on the folders. Counters are compared with the kernel's tracepoints of the same run, if tracing
//! is permitted. Counting does not slow the runs measurably, so times can be compared.

mod counts;
pub(super) mod program;
mod verdicts;

use std::path::Path;

use ferry_io::Errno;
use ferry_tree::workload::Workload;

use self::counts::Counts;
use self::program::FILE_BYTES;
use super::{copies, headlines, tree};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
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
const MODE_NAMES: &[&str] = &["one", "one-sqpoll", "many", "many-sqpoll", "auto", program::NAME];

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
        "one request at a time or many, with SQPOLL or without; ferry's own choice; the documents' dfs",
        ParameterKind::Words(MODE_NAMES),
        "one,one-sqpoll,many,many-sqpoll,auto,dfs",
    ),
    Parameter::new(
        "dfs-levels",
        "N",
        "Levels of folders in the tree of dfs; fewer than the document's 4 have fewer fibers",
        ParameterKind::Number(0, 4),
        "4",
    )
    .quick("2"),
    Parameter::new(
        "dfs-file-size",
        "BYTES",
        "Size of each file in the tree of dfs",
        ParameterKind::Size(4096, FILE_BYTES),
        "64K",
    )
    .published("1M"),
];

const SPEC: Spec = Spec {
    name: "syscalls",
    about: "Counts the ring's system calls, hand-overs and context switches by block size, with and without SQPOLL",
    manual: "\
Repeats document 000's tracing. For each block size, `ferry cp` runs in these modes, in rounds of random order: every \
operation on the ring with one request at a time (one) or up to 64 (many); the same with a kernel thread that polls \
for requests (-sqpoll); and with its own choice of routes (auto). The documents' program dfs, with two fibers a \
folder, copies document 000's tree of 3,905 files in 781 folders. With --as-published, or --dfs-file-size 1M, the \
files have 1 MiB, and the calls are compared with the document's. The program's counters are compared with the kernel's tracepoints of the same \
run, which usually needs root. Without that right, only the program's counters are shown, hand-overs are not counted, \
and context switches come from getrusage(2).",
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
            program::NAME => &["enters_per_block"],
            _ => &["ring_enters", "returned_s"],
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let (mut bytes, mut entries) = (0_u64, 0_u64);
        for workload in workloads(settings, 0) {
            let Need::Space { bytes: of_tree, entries: in_tree } = tree::space(&workload) else { continue };
            // The source and a copy, and those that are removed at the end of a group.
            bytes = bytes.saturating_add(of_tree.saturating_mul(2));
            entries = entries.saturating_add(in_tree.saturating_mul(2));
        }
        Ok(vec![Need::Ring, Need::Space { bytes, entries }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let sources = Source::all(session);
        session.plan(sources.iter().map(|source| source.cells().count()).sum());
        if session.has_taken(sources.iter().flat_map(Source::cells)) {
            return Ok(());
        }
        if let Err(errno) = Counts::begin() {
            session.warn(untraced(errno));
        }
        sources.into_iter().try_for_each(|source| source.take(session))
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
        let of_ferry = record.cells.iter().filter(|cell| !is_dfs(cell));
        let by_mode = medians(record, "By mode and block size", &columns, of_ferry);
        let traced = "The program's counters and the kernel's tracepoints";
        let traced = medians(record, traced, &beside, &record.cells);
        let tables = [Some(by_mode), program::table(record), Some(traced)].into_iter().flatten();
        tables.filter(|table| !table.is_empty()).collect()
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = |(title, measure): (&str, &str)| {
            let series = |cell: &Cell| cell.text("mode");
            // Sums over another tree say nothing beside the others.
            let is_shown = |cell: &&Cell| measure == "operations_per_submission" || !is_dfs(cell);
            let cells = record.cells.iter().filter(is_shown);
            Plot::lines(record, title, measure, "block_bytes", series, cells)
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

    fn headline(&self, record: &Record) -> Headline {
        headlines::syscalls(record)
    }
}

fn is_dfs(cell: &Cell) -> bool {
    cell.text("mode") == program::NAME
}

/// The trees to copy: that of `ferry cp`, and that of dfs, as far as modes need them.
fn workloads(settings: &Settings, seed: u64) -> Vec<Workload> {
    let modes = settings.texts("modes");
    let flat = Workload::plain(0, 0, settings.number("files"), FILE_BYTES, seed);
    let flat = modes.iter().any(|mode| mode != program::NAME).then_some(flat);
    let of_dfs = modes.iter().any(|mode| mode == program::NAME);
    flat.into_iter().chain(of_dfs.then(|| program::workload(settings, seed))).collect()
}

/// Files to copy, and groups of cells that are compared with each other.
struct Source {
    name: &'static str,
    workload: Workload,
    file_bytes: u64,
    /// Set if the copier prints the number of bytes that it copied.
    tells_bytes: bool,
    groups: Vec<Vec<(Cell, Stranger)>>,
}

impl Source {
    fn all(session: &Session<'_>) -> Vec<Self> {
        let settings = session.settings();
        let modes = settings.texts("modes");
        let of_ferry = || {
            let sizes = settings.numbers("block-sizes");
            sizes.into_iter().map(|bytes| subjects(session, bytes, &modes)).collect()
        };
        let of_dfs = || {
            let subjects = program::subjects(settings, session.ferry());
            subjects.into_iter().map(|subject| vec![subject]).collect()
        };
        let source = |workload: Workload| {
            let is_flat = workload.fanout == 0;
            Self {
                name: if is_flat { "source" } else { "tree" },
                workload,
                file_bytes: if is_flat { FILE_BYTES } else { settings.number("dfs-file-size") },
                tells_bytes: is_flat,
                groups: if is_flat { of_ferry() } else { of_dfs() },
            }
        };
        workloads(settings, session.seed()).into_iter().map(source).collect()
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.groups.iter().flatten().map(|(cell, _)| cell)
    }

    /// Makes the files and takes all runs.
    fn take(self, session: &mut Session<'_>) -> Result<(), Failure> {
        if session.has_taken(self.cells()) {
            return Ok(());
        }
        session.step("making the files");
        let folder = session.work().join(self.name);
        let made = tree::make(&self.workload, &folder, tree::threads(), session.stop())?;
        let sample = Sample::of(&folder, session.seed())?;
        for group in self.groups {
            let folder = &folder;
            let subject = |(cell, command): (Cell, Stranger)| {
                let block = cell.number("block_bytes").unwrap_or(self.file_bytes);
                let expected = Expected {
                    bytes: self.tells_bytes.then_some(made.bytes),
                    blocks: made.files.saturating_mul(self.file_bytes.div_ceil(block)),
                };
                Subject::new(cell, move |turn: &mut Turn<'_>| {
                    let copying =
                        |target: &Path, stop: &Stop| counted(&command, folder, target, expected, stop);
                    copies::once(folder, turn.fresh("copy"), turn, copying)
                })
            };
            let mut subjects: Vec<Subject<'_>> = group.into_iter().map(subject).collect();
            session.interleave(&mut subjects, &sample)?;
        }
        Ok(())
    }
}

/// What a whole copy has moved.
#[derive(Clone, Copy)]
struct Expected {
    /// Bytes that the copier must print; `None` if it prints none.
    bytes: Option<u64>,
    /// Blocks of its size in all files.
    blocks: u64,
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
    expected: Expected,
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
    let copied = figures.remove("bytes");
    // A figure for each block is valid only if every byte was copied.
    if let Some(bytes) = expected.bytes.map(real) {
        let copied = copied.ok_or_else(|| Failure::Run("its statistics lack 'bytes'".to_owned()))?;
        if (copied - bytes).abs() >= 1.0 {
            let why = format!("it copied {} of {}", figure(copied, "B"), figure(bytes, "B"));
            return Err(Failure::Run(why));
        }
    }
    if let Some(enters) = figures.get("ring_enters").copied() {
        figures.insert("enters_per_block".to_owned(), enters / real(expected.blocks.max(1)));
    }
    figures.insert("returned_s".to_owned(), returned.seconds);
    Ok(figures)
}

/// The medians of some measures, a row a cell.
fn medians<'r>(
    record: &Record,
    title: &str,
    measures: &[(&str, &str)],
    cells: impl IntoIterator<Item = &'r Cell>,
) -> Table {
    let about = |name: &str| record.measure(name).map_or_else(String::new, |measure| measure.about.clone());
    let names: Vec<String> = measures.iter().map(|(name, _)| about(name)).collect();
    let columns: Vec<&str> = ["mode and block"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &columns);
    for cell in cells.into_iter().filter(|cell| !cell.runs.is_empty()) {
        let text = |(name, unit): &(&str, &str)| {
            let summary = record.summary(cell, name);
            summary.map_or_else(|| "-".to_owned(), |found| figure(found.median.middle, unit))
        };
        table.row(std::iter::once(cell.name.clone()).chain(measures.iter().map(text)).collect());
    }
    table
}

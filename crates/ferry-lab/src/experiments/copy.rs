//! `lab copy`: copiers beside cp, cold and warm, on files of 4 KiB and of 1 MiB (documents 000, 003 and 004).
//!
//! The copiers are ferry with its own choice of routes, ferry with all operations forced to the ring (as eio runs
//! them), commands given with `--vs`, and the documents' own programs by block size. Each runs as a command. It is
//! timed from its start until it returns, and until its writes are on the device. Every copy is compared with its
//! source, untimed.

pub(super) mod extent;
pub(crate) mod groups;
pub(super) mod limits;
pub(crate) mod shares;
pub(super) mod tools;
pub(super) mod trees;
mod verdicts;

use std::path::Path;

use self::groups::{group_of, heading};
use super::copies::{self, Times};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::message::quoted;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record};
use crate::session::{Session, Subject};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::Table;
use crate::units::figure;
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Copiers, side by side.
pub(super) struct Copy;

const LARGEST_BLOCK: u64 = 64 << 20;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "trees",
        "PRESET,...",
        "Trees to copy (see `ferry lab tree --help`)",
        ParameterKind::Names,
        "small,large",
    )
    .published("small,large-3905,wide,large"),
    Parameter::new(
        "fewer-levels",
        "N",
        "Number of levels of folders to leave out of each tree",
        ParameterKind::Number(0, 4),
        "0",
    )
    .quick("2"),
    Parameter::new(
        "minutes",
        "N",
        "Limit the total time by taking fewer levels of folders; 0: no limit",
        ParameterKind::Number(0, 100_000),
        "4",
    )
    .quick("0")
    .published("0"),
    Parameter::new(
        "states",
        "STATE,...",
        "Caches: cold, warm",
        ParameterKind::Words(&["cold", "warm"]),
        "cold,warm",
    ),
    Parameter::new(
        "programs",
        "NAME,...",
        "The documents' programs: sequential, dfs, bfs, blocks, or none",
        ParameterKind::Words(&["sequential", "dfs", "bfs", "blocks", "none"]),
        "sequential,dfs,bfs,blocks",
    )
    .quick("dfs")
    .published("sequential,dfs,bfs"),
    Parameter::new(
        "block-sizes",
        "BYTES,...",
        "Their blocks",
        ParameterKind::Sizes(4096, LARGEST_BLOCK),
        "4K,1M",
    ),
    Parameter::new(
        "max-fibers",
        "N",
        "Number of fibers of dfs and bfs; 0: as in the documents, 2 per folder (dfs) and 64 in total (bfs)",
        ParameterKind::Number(0, 4096),
        "0",
    ),
    Parameter::new(
        "vs",
        "COMMAND",
        "Also measure this command, such as 'rsync -a {source}/ {target}'; may be repeated",
        ParameterKind::Texts,
        "",
    ),
    extent::Extent::PARAMETER,
    Parameter::new(
        limits::OPTION,
        "NAME,...",
        "Limit programs (see `ferry lab limits --help`): auto (the best two of a pilot), all, none, or names",
        ParameterKind::Names,
        "auto",
    )
    .quick("none")
    .published("none"),
    Parameter::new(
        "dd-size",
        "BYTES",
        "Bytes that dd writes; 0: leave dd out",
        ParameterKind::Size(0, 1 << 40),
        "1G",
    )
    .quick("32M")
    .published("1000000000"),
];

const SPEC: Spec = Spec {
    name: "copy",
    about: "Times copiers beside cp, cold and warm, on small and large files",
    manual: "\
Repeats documents 000, 003 and 004. For each tree and cache state, these copiers run in rounds of random order: cp, \
ferry, ferry with every operation on the ring, each --vs command, and the documents' programs at each block size. \
Where no file is larger than one block, only the first block size is taken. Throughput counts the bytes read plus the \
bytes written. dd's sequential rate shows the throughput to expect. Each tree is first copied once to estimate the \
total time. If it exceeds --minutes, trees get fewer levels of folders, and the result says so.

Limit programs are bare copiers that preserve nothing. They show how fast a copy can be on this machine. With --limits \
auto, a pilot runs each likely program once before the first round of a tree and cache state. The two fastest then run \
in all rounds, and the faster one by median is the limit. The column 'of the limit' has the limit's time divided by the \
copier's.

Commands of --vs are split into words as by a shell, but run without one. {source} stands for the tree, {target} for \
the copy.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 10 },
    is_measured: true,
};

impl Experiment for Copy {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        copies::measures("bytes read and written per second until the command returned")
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        match (cell.text("tree").as_str(), cell.text("tool").as_str()) {
            ("dd", _) => &["throughput_b_s"],
            (_, "cp") => &["returned_s", "throughput_b_s"],
            _ => &["returned_s"],
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        limits::check(settings)?;
        extent::Extent::check(settings)?;
        let mut needs = trees::needs(settings)?;
        needs.push(Need::Space { bytes: settings.number("dd-size"), entries: 1 });
        needs.push(Need::Program("cp".into()));
        for line in settings.texts("vs") {
            let command = Stranger::parse(&line)?;
            let has =
                |place: &str| command.arguments.iter().any(|word| word.to_string_lossy().contains(place));
            if !has("{source}") || !has("{target}") {
                let line = quoted(line.as_ref()).to_string();
                return Err(Failure::Misuse(format!("{line} needs {{source}} and {{target}} in it")));
            }
        }
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let tools = tools::all(session.settings(), session.ferry())?;
        let trees = trees::all(session.settings(), session.seed())?;
        let states: Vec<State> =
            session.settings().texts("states").iter().filter_map(|name| State::named(name)).collect();
        tools::note(session, &tools);
        let trees = trees::fitting(session, &trees, &states, &tools)?;
        let mut planned = usize::from(session.settings().number("dd-size") > 0);
        for tree in &trees {
            planned += groups::planned(session, tree, &states, &tools)?;
        }
        session.plan(planned);
        dd(session)?;
        for tree in &trees {
            groups::one_tree(session, tree, &states, &tools)?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let mut tables: Vec<Table> = groups::of(record)
            .into_iter()
            .map(|group| {
                let is_dd = group == "dd";
                let title = if is_dd { "dd, sequential writes".to_owned() } else { heading(record, &group) };
                shares::table(record, &group, &title)
            })
            .collect();
        tables.extend(shares::limits(record));
        tables.extend(expectation(record));
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        for group in groups::of(record).into_iter().filter(|group| group != "dd") {
            let cells = || groups::cells_of(record, &group);
            let (title, prefix) = (heading(record, &group), format!("{group}/"));
            plots.push(Plot::strips(record, &title, "returned_s", &prefix, cells()));
            let programs = || cells().filter(|cell| cell.number("block_bytes").is_some());
            let sizes = programs().filter_map(|cell| cell.number("block_bytes"));
            if sizes.collect::<std::collections::BTreeSet<u64>>().len() > 1 {
                let title = format!("{title}: the documents' programs by block size");
                let series = |cell: &Cell| cell.text("program");
                plots.push(Plot::lines(record, &title, "returned_s", "block_bytes", series, programs()));
            }
        }
        plots.retain(|plot| !plot.is_empty());
        plots
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record).into_iter().chain(shares::verdicts(record)).collect()
    }
}

/// dd's sequential writes: what document 004 expects of the disk.
fn dd(session: &mut Session<'_>) -> Result<(), Failure> {
    const BLOCK: u64 = 1_000_000;
    let bytes = session.settings().number("dd-size");
    if bytes == 0 {
        return Ok(());
    }
    let cell = Cell::new(&[("tree", "dd".into())], State::AsItIs).with("bytes", bytes.into());
    let Some(program) = crate::search_path::find_program("dd".as_ref()) else {
        session.leave_out(cell, "'dd' is not found on the PATH");
        return Ok(());
    };
    session.note_tool("dd", &program);
    let blocks = bytes.div_ceil(BLOCK);
    let command = Stranger::new(
        &program,
        &["if=/dev/zero", "of={target}", &format!("bs={BLOCK}"), &format!("count={blocks}")],
    );
    let subject = Subject::new(cell, |turn| {
        let target = turn.fresh("dd");
        let times = Times::take(&command, Path::new(""), &target, turn.stop());
        let removed = turn.remove(target);
        let figures = times?.figures_of(blocks * BLOCK);
        removed?;
        Ok(figures)
    });
    session.interleave(&mut [subject], &Sample::none())
}

/// Table of cp's throughput as predicted from dd's by document 004, beside the measured one.
fn expectation(record: &Record) -> Option<Table> {
    let rate = record.summary(record.find(&[("tree", "dd")])?, "throughput_b_s")?.median.middle;
    let columns = ["cp", "read and written", "expected from dd's rate", "took", "share of dd's rate"];
    let mut table = Table::new("Throughput expected from dd's rate", &columns);
    for cell in record.cells.iter().filter(|cell| cell.text("tool") == "cp") {
        let first = |measure: &str| cell.figures(measure).first().copied();
        let (Some(seconds), Some(throughput)) = (first("returned_s"), first("throughput_b_s")) else {
            continue;
        };
        // Of one run: medians of both may be of different ones.
        let bytes = seconds * throughput;
        let Some(took) = record.summary(cell, "returned_s").map(|found| found.median.middle) else {
            continue;
        };
        table.row(vec![
            heading(record, &group_of(cell)),
            figure(bytes, "B"),
            figure(bytes / rate, "s"),
            figure(took, "s"),
            format!("{:.0} %", bytes / took / rate * 100.0),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

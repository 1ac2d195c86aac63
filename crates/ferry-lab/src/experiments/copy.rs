//! `lab copy`: copiers beside cp, cold and warm, on files of 4 KiB and of 1 MiB (documents 000, 003 and 004).
//!
//! The copiers are ferry with its own choice of routes, ferry with all operations forced to the ring (as eio runs
//! them), commands given with `--vs`, and the documents' own programs by block size. Each runs as a command. It is
//! timed from its start until it returns, and until its writes are on the device. Every copy is compared with its
//! source, untimed.

mod tools;
mod trees;
mod verdicts;

use std::path::Path;

use self::tools::Tool;
use self::trees::Tree;
use super::copies::{self, Times};
use super::tree;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::message::quoted;
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::table::{self, Table};
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
        let mut needs: Vec<Need> = Vec::new();
        for tree in trees::all(settings, 0)? {
            let Need::Space { bytes, entries } = tree::space(&tree.workload) else { continue };
            // The source and a copy at least.
            needs.push(Need::Space { bytes: bytes.saturating_mul(2), entries: entries.saturating_mul(2) });
        }
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
        if settings.texts("states") == ["cold"] {
            needs.push(Need::DropCaches);
        }
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let tools = tools::all(session.settings(), session.ferry())?;
        let trees = trees::all(session.settings(), session.seed())?;
        let states: Vec<State> =
            session.settings().texts("states").iter().filter_map(|name| State::named(name)).collect();
        for tool in tools.iter().filter(|tool| tool.version_counts && tool.command.absent().is_none()) {
            session.note_tool(&tool.name, &tool.command.program);
        }
        let trees = trees::fitting(session, &trees, &states, &tools)?;
        let of_tree = |tree: &Tree| tools.iter().filter(|tool| tool.suits(&tree.workload)).count();
        let cells: usize = trees.iter().map(|tree| of_tree(tree) * states.len()).sum();
        session.plan(cells + usize::from(session.settings().number("dd-size") > 0));
        dd(session)?;
        for tree in &trees {
            let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.suits(&tree.workload)).collect();
            one_tree(session, tree, &states, &tools)?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let mut tables: Vec<Table> = groups(record)
            .into_iter()
            .map(|group| {
                let title =
                    if group == "dd" { "dd, sequential writes".to_owned() } else { heading(record, &group) };
                table::of_cells(record, &title, record.cells.iter().filter(|cell| group_of(cell) == group))
            })
            .collect();
        tables.extend(expectation(record));
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        for group in groups(record).into_iter().filter(|group| group != "dd") {
            let cells = || record.cells.iter().filter(|cell| group_of(cell) == group);
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
        verdicts::all(record)
    }
}

/// A cell's tree and state, `small/cold`; `dd` alone has none.
fn group_of(cell: &Cell) -> String {
    match cell.text("cache").as_str() {
        "" => cell.text("tree"),
        cache => format!("{}/{cache}", cell.text("tree")),
    }
}

fn groups(record: &Record) -> Vec<String> {
    let mut groups = Vec::new();
    for group in record.cells.iter().map(group_of) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// `small, cold`; a tree that is not whole says so.
fn heading(record: &Record, group: &str) -> String {
    let cell = record.cells.iter().find(|cell| group_of(cell) == group);
    let levels = cell.and_then(|cell| Some((cell.text("tree"), cell.number("levels")?)));
    let fewer = match levels.map_or(0, |(name, levels)| Tree::fewer_levels(&name, levels)) {
        0 => String::new(),
        1 => " (1 level fewer)".to_owned(),
        fewer => format!(" ({fewer} levels fewer)"),
    };
    group.replacen('/', &format!("{fewer}, "), 1)
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

fn one_tree(
    session: &mut Session<'_>,
    tree: &Tree,
    states: &[State],
    tools: &[&Tool],
) -> Result<(), Failure> {
    let Tree { name, workload } = tree;
    let groups: Vec<(State, Vec<Cell>)> =
        states.iter().map(|state| (*state, cells(tree, *state, tools))).collect();
    let ring = needs::ring();
    for (state, cells) in &groups {
        for (cell, tool) in cells.iter().zip(tools) {
            if let Some(why) = missing(session, *state, tool, ring.as_ref().err()) {
                session.leave_out(cell.clone(), &why);
            }
        }
    }
    if session.has_taken(groups.iter().flat_map(|(_, cells)| cells)) {
        return Ok(());
    }
    session.step(&format!("making the tree {name}"));
    let source = session.work().join(name.replace(':', "-"));
    let made = tree::make(workload, &source, tree::threads(), session.stop())?;
    for (state, cells) in groups {
        let sample = Sample::of(&source, session.seed())?;
        let taken: Vec<(Cell, &Tool)> = cells
            .into_iter()
            .zip(tools.iter().copied())
            .filter(|(cell, _)| session.record().cell(&cell.name).is_none_or(|known| known.missing.is_none()))
            .collect();
        let source = &source;
        let mut subjects: Vec<Subject<'_>> = taken
            .into_iter()
            .map(|(cell, tool)| {
                let take = move |turn: &mut Turn<'_>| {
                    let copying =
                        |target: &Path, stop: &Stop| Times::take(&tool.command, source, target, stop);
                    let times = copies::once(source, turn.fresh("copy"), turn, copying)?;
                    Ok(times.figures_of(2 * made.bytes))
                };
                Subject::new(cell, take).with_programs(&[&tool.command.program])
            })
            .collect();
        session.step(&format!("{name}, {}", state.name()));
        session.interleave(&mut subjects, &sample)?;
    }
    ferry_tree::remove::remove(&source)?;
    Ok(())
}

/// Why a cell can't be measured here.
fn missing(session: &Session<'_>, state: State, tool: &Tool, no_ring: Option<&String>) -> Option<String> {
    if let Some(why) = no_ring.filter(|_| tool.needs_ring) {
        return Some(why.clone());
    }
    tool.command.absent().or_else(|| copies::no_cache(session, state))
}

fn cells(tree: &Tree, state: State, tools: &[&Tool]) -> Vec<Cell> {
    let cell = |tool: &str| {
        let parameters =
            [("tree", tree.name.as_str().into()), ("cache", state.name().into()), ("tool", tool.into())];
        Cell::new(&parameters, state).with("levels", tree.workload.depth.into())
    };
    let base = cell("cp");
    let of_tool = |tool: &&Tool| {
        let mut found = cell(&tool.name);
        for (name, value) in &tool.parameters {
            found = found.with(name, value.clone());
        }
        if found.name == base.name { found } else { found.against(&base) }
    };
    tools.iter().map(of_tool).collect()
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

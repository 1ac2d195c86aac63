//! Groups of cells that are compared with each other: all copiers of one tree in one cache state.

use std::path::Path;

use super::extent::Extent;
use super::limits;
use super::tools::Tool;
use super::trees::Tree;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiments::copies::{self, Times};
use crate::experiments::tree;
use crate::limits::Calls;
use crate::memory;
use crate::needs;
use crate::record::{Cell, Record, Value};
use crate::session::{Session, Subject, Turn};
use crate::stop::Stop;

/// Option for the number of bytes that dd writes.
pub(super) const DD_SIZE: &str = "dd-size";
/// Parameter of the cells that are compared with dd: the bytes that it wrote.
pub(super) const DD_BESIDE: &str = "dd_bytes";

/// A cell's tree and state, `small/cold`; `dd` alone has none.
pub(crate) fn group_of(cell: &Cell) -> String {
    match cell.text("cache").as_str() {
        "" => cell.text("tree"),
        cache => format!("{}/{cache}", cell.text("tree")),
    }
}

/// Returns the groups of a record, in their order.
pub(crate) fn of(record: &Record) -> Vec<String> {
    let mut groups = Vec::new();
    for group in record.cells.iter().map(group_of) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Returns the cells of a group.
pub(crate) fn cells_of<'r>(record: &'r Record, group: &'r str) -> impl Iterator<Item = &'r Cell> + Clone {
    record.cells.iter().filter(move |cell| group_of(cell) == group)
}

/// `small, cold`; a tree that is not whole says so.
pub(in crate::experiments) fn heading(record: &Record, group: &str) -> String {
    let cell = cells_of(record, group).next();
    let levels = cell.and_then(|cell| Some((cell.text("tree"), cell.number("levels")?)));
    let fewer = match levels.map_or(0, |(name, levels)| Tree::fewer_levels(&name, levels)) {
        0 => String::new(),
        1 => " (1 level fewer)".to_owned(),
        fewer => format!(" ({fewer} levels fewer)"),
    };
    group.replacen('/', &format!("{fewer}, "), 1)
}

/// Returns the number of cells that a tree will have.
pub(in crate::experiments) fn planned(
    session: &Session<'_>,
    tree: &Tree,
    states: &[State],
    tools: &[Tool],
) -> Result<usize, Failure> {
    let suited = tools.iter().filter(|tool| tool.suits(&tree.workload)).count();
    let mut planned = 0;
    for state in states {
        planned += suited + limits::count(session.settings(), &tree.workload, *state)?.0;
    }
    Ok(planned)
}

/// Makes a tree and takes all runs of its groups.
pub(in crate::experiments) fn one_tree(
    session: &mut Session<'_>,
    tree: &Tree,
    states: &[State],
    tools: &[Tool],
) -> Result<(), Failure> {
    let Tree { name, workload } = tree;
    let tools: Vec<Tool> = tools.iter().filter(|tool| tool.suits(workload)).cloned().collect();
    // Programs that would share blocks are left out.
    let shares_blocks = Extent::of(session.settings()) != Extent::Shared && shares_blocks(session)?;
    let mut is_taken = true;
    for &state in states {
        let known = limits::known(session, name, workload, state)?;
        // Where a state is impossible, a pilot is too.
        let is_known = known.is_some() || copies::no_cache(session, state).is_some();
        let group = Group::new(session, tree, state, &tools, known.unwrap_or_default());
        group.leave_out(session, shares_blocks);
        is_taken &= is_known && session.has_taken(&group.cells);
    }
    if is_taken {
        return Ok(());
    }
    session.step(&format!("making the tree {name}"));
    let source = session.work().join(name.replace(':', "-"));
    let made = tree::make(workload, &source, tree::threads(), session.stop())?;
    for &state in states {
        let sample = Sample::of(&source, session.seed())?;
        let limits = match limits::known(session, name, workload, state)? {
            Some(limits) => limits,
            None if copies::no_cache(session, state).is_some() => Vec::new(),
            None => {
                let tree = (&*source, &sample, made.bytes);
                limits::pilot(session, (name, workload), tree, state, shares_blocks)?
            }
        };
        let group = Group::new(session, tree, state, &tools, limits);
        group.leave_out(session, shares_blocks);
        session.step(&format!("{name}, {}", state.name()));
        group.take(session, &source, &sample, made.bytes)?;
    }
    ferry_tree::remove::remove(&source)?;
    Ok(())
}

/// Copiers of one tree in one state, and their cells.
struct Group {
    state: State,
    tools: Vec<Tool>,
    cells: Vec<Cell>,
}

impl Group {
    fn new(
        session: &Session<'_>,
        tree: &Tree,
        state: State,
        tools: &[Tool],
        limits: Vec<crate::limits::Limit>,
    ) -> Self {
        let limits = limits.iter().map(|limit| limits::tool(session, limit));
        let tools: Vec<Tool> = tools.iter().cloned().chain(limits).collect();
        let dd = session.settings().values().get(DD_SIZE).and_then(Value::as_number);
        let cells = cells(tree, state, &tools.iter().collect::<Vec<_>>(), dd.unwrap_or(0));
        Self { state, tools, cells }
    }

    /// Leaves out the cells that can't be measured here.
    fn leave_out(&self, session: &mut Session<'_>, shares_blocks: bool) {
        let ring = needs::ring();
        for (cell, tool) in self.cells.iter().zip(&self.tools) {
            if let Some(why) = missing(session, self.state, tool, ring.as_ref().err(), shares_blocks) {
                session.leave_out(cell.clone(), &why);
            }
        }
    }

    /// Takes the runs that are missing.
    fn take(
        self,
        session: &mut Session<'_>,
        source: &Path,
        sample: &Sample,
        bytes: u64,
    ) -> Result<(), Failure> {
        let is_possible =
            |cell: &Cell| session.record().cell(&cell.name).is_none_or(|known| known.missing.is_none());
        let possible: Vec<(Cell, &Tool)> =
            self.cells.into_iter().zip(&self.tools).filter(|(cell, _)| is_possible(cell)).collect();
        let properties = Extent::of(session.settings()).properties();
        let subject = |(cell, tool): (Cell, &'_ Tool)| {
            let properties = properties.clone();
            let command = tool.command.clone();
            let program = command.program.clone();
            let take = move |turn: &mut Turn<'_>| {
                let copying = |target: &Path, stop: &Stop| {
                    // Pages of the source and of the copy.
                    memory::claim(2 * bytes, stop);
                    Times::take(&command, source, target, stop)
                };
                let times = copies::once_equal_in(&properties, source, turn.fresh("copy"), turn, copying)?;
                Ok(times.figures_of(2 * bytes))
            };
            Subject::new(cell, take).with_programs(&[&program])
        };
        let mut subjects: Vec<Subject<'_>> = possible.into_iter().map(subject).collect();
        session.interleave(&mut subjects, sample)
    }
}

/// Why a cell can't be measured here.
fn missing(
    session: &Session<'_>,
    state: State,
    tool: &Tool,
    no_ring: Option<&String>,
    shares_blocks: bool,
) -> Option<String> {
    if let Some(why) = no_ring.filter(|_| tool.needs_ring) {
        return Some(why.clone());
    }
    if shares_blocks && tool.limit.is_some_and(|limit| limit.calls == Calls::CopyRange) {
        return Some("copy_file_range(2) shares blocks on this filesystem".to_owned());
    }
    if tool.limit.is_some_and(|limit| limit.calls == Calls::Direct) && !needs::has_direct_io(session.work()) {
        return Some("this filesystem has no direct I/O (O_DIRECT)".to_owned());
    }
    tool.command.absent().or_else(|| copies::no_cache(session, state))
}

/// Returns true if the filesystem of the work folder can share blocks. There copy_file_range(2) copies nothing.
pub(super) fn shares_blocks(session: &Session<'_>) -> Result<bool, Failure> {
    let [source, target] = ["block", "shared"].map(|name| session.work().join(name));
    std::fs::write(&source, [1; 4096]).map_err(|error| Failure::file("write", &source, &error))?;
    let cloned = std::fs::File::open(&source).and_then(|input| {
        let output = std::fs::File::create(&target)?;
        rustix::fs::ioctl_ficlone(&output, &input).map_err(std::io::Error::from)
    });
    for path in [&source, &target] {
        ferry_tree::remove::remove(path)?;
    }
    Ok(cloned.is_ok())
}

/// Returns the tools' cells, in the same order. That of cp, if warm, is compared with dd, unless dd writes nothing.
pub(super) fn cells(tree: &Tree, state: State, tools: &[&Tool], dd_bytes: u64) -> Vec<Cell> {
    let cell = |tool: &str| {
        let parameters =
            [("tree", tree.name.as_str().into()), ("cache", state.name().into()), ("tool", tool.into())];
        Cell::new(&parameters, state).with("levels", tree.workload.depth.into())
    };
    let base = cell("cp");
    let base =
        if dd_bytes > 0 && state == State::Warm { base.with(DD_BESIDE, dd_bytes.into()) } else { base };
    let of_tool = |tool: &&Tool| {
        let mut found = if tool.name == "cp" { base.clone() } else { cell(&tool.name) };
        for (name, value) in &tool.parameters {
            found = found.with(name, value.clone());
        }
        if found.name == base.name { found } else { found.against(&base) }
    };
    tools.iter().map(of_tool).collect()
}

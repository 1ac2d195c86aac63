//! `lab strategies`: the system calls that copy bytes, by block size and requests in flight (document 003's appendix).
//!
//! Each strategy runs in a process of its own. It is timed from its start until it returns, and until its writes are
//! on the device. cp and dd copy the same file in the same rounds, and their times are divided by those of the
//! strategy that makes the same calls. This ratio shows how far the figures can be trusted. Every copy is compared
//! with its source, untimed.

mod cells;
mod tables;
mod verdicts;

use std::path::{Path, PathBuf};

use ferry_tree::workload::{Sizes, Workload};

use self::cells::Plan;
use super::copies::{self, Times};
use super::{headlines, tree};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::strategies::{Strategy, StrategyOptions};
use crate::table::{self, Table};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// The ways of copying bytes, side by side.
pub(super) struct Strategies;

/// Alignment of sizes that direct I/O requires, in bytes.
const PAGE: u64 = 4096;
const NAMES: &[&str] = &[
    "read-write",
    "splice",
    "sendfile",
    "copy-file-range",
    "mmap",
    "reflink",
    "dontcache",
    "ring-buffered",
    "ring-registered",
    "ring-direct",
    "direct-read",
    "own-cache",
];

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "strategies",
        "NAME,...",
        "Strategies to measure (see below)",
        ParameterKind::Words(NAMES),
        "read-write,splice,sendfile,copy-file-range,mmap,reflink,dontcache,ring-buffered,ring-registered,ring-direct,direct-read,own-cache",
    ),
    Parameter::new(
        "files",
        "WHAT,...",
        "One file, many files: one, many",
        ParameterKind::Words(&["one", "many"]),
        "one,many",
    ),
    Parameter::new(
        "size",
        "BYTES",
        "Size of the one file, a multiple of 4K",
        ParameterKind::Size(PAGE, 1 << 40),
        "128M",
    )
    .quick("4M")
    .published("1G"),
    Parameter::new(
        "many-count",
        "N",
        "Number of files in the case of many",
        ParameterKind::Number(1, 1 << 20),
        "500",
    )
    .quick("20")
    .published("3905"),
    Parameter::new(
        "many-size",
        "BYTES",
        "Size of each of the many files, a multiple of 4K",
        ParameterKind::Size(PAGE, 1 << 30),
        "64K",
    ),
    Parameter::new(
        "states",
        "STATE,...",
        "Caches: cold, warm",
        ParameterKind::Words(&["cold", "warm"]),
        "cold,warm",
    ),
    Parameter::new(
        "block-sizes",
        "BYTES,...",
        "Bytes of each call, multiples of 4K",
        ParameterKind::Sizes(PAGE, 64 << 20),
        "4K,128K,4M",
    )
    .quick("128K")
    .published("4K,16K,64K,256K,1M,4M"),
    Parameter::new(
        "depths",
        "N,...",
        "Requests in flight on the ring",
        ParameterKind::Numbers(1, 1024),
        "1,8,64",
    )
    .quick("16")
    .published("1,2,4,8,16,32,64"),
    Parameter::new(
        "every-pair",
        "",
        "Combine every block size with every depth, instead of each with the middle one of the other",
        ParameterKind::Switch,
        "no",
    )
    .published("yes"),
];

const SPEC: Spec = Spec {
    name: "strategies",
    about: "Times the system calls that copy bytes, by block size and depth",
    manual: "\
Repeats the appendix of document 003. Strategies:
  read-write       read(2) and write(2)
  splice           splice(2) through a pipe of the block's size, up to the kernel's limit
  sendfile         sendfile(2)
  copy-file-range  copy_file_range(2)
  mmap             mmap(2) of the source, write(2) from the mapping
  reflink          FICLONE: the target shares the source's blocks
  dontcache        read-write with RWF_DONTCACHE, which leaves nothing in the page cache
  ring-buffered    reads and writes on the ring, several in flight; of one file, all depths with the smallest block too
  ring-registered  the same with registered buffers; the time of registering is included
  ring-direct      as ring-buffered, with O_DIRECT on both sides
  direct-read      as ring-buffered, with O_DIRECT on the source only
  own-cache        ferry's direct files: O_DIRECT on both sides with caches in the program; durable when it returns
cp --reflink=never, and dd at each block size, copy the same file. With many files, each call takes up to a whole \
file, and the ring has several files in flight. The document does not give its block sizes, and its picture was not \
preserved. So --as-published combines every block size with every depth.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 1, published: 10 },
    is_measured: true,
};

impl Experiment for Strategies {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        copies::measures("bytes copied per second until the command returned")
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        let is_judged_durable =
            ["read-write", "ring-direct", "own-cache", "dontcache"].contains(&cell.text("strategy").as_str());
        if is_judged_durable && cell.text("files") == "one" {
            &["returned_s", "durable_s"]
        } else {
            &["returned_s"]
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let sizes = ["size", "many-size", "block-sizes"];
        if let Some(name) = sizes
            .into_iter()
            .find(|name| settings.numbers(name).iter().any(|bytes| !bytes.is_multiple_of(PAGE)))
        {
            let why = format!("'--{name}' must be a multiple of 4K, because direct I/O requires it");
            return Err(Failure::Misuse(why));
        }
        let mut needs = vec![Need::Program("cp".into())];
        for files in settings.texts("files") {
            let workload = workload(settings, &files, 0);
            if let Need::Space { bytes, entries } = tree::space(&workload) {
                // The source and a copy at least.
                needs
                    .push(Need::Space { bytes: bytes.saturating_mul(2), entries: entries.saturating_mul(2) });
            }
        }
        if settings.texts("states") == ["cold"] {
            needs.push(Need::DropCaches);
        }
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let states: Vec<State> =
            session.settings().texts("states").iter().filter_map(|name| State::named(name)).collect();
        let plans: Vec<Plan> = session
            .settings()
            .texts("files")
            .iter()
            .map(|files| Plan::new(session.settings(), session.ferry(), files))
            .collect();
        for (name, program) in plans.iter().flat_map(Plan::programs) {
            session.note_tool(name, program);
        }
        session.plan(plans.iter().map(|plan| plan.ways.len() * states.len()).sum());
        let unusable = unusable(session)?;
        for plan in &plans {
            one_source(session, plan, &states, &unusable)?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let of_group = |group: String| {
            let cells = record.cells.iter().filter(|cell| cells::group_of(cell) == group);
            table::of_cells(record, &cells::heading(record, &group), cells)
        };
        let groups = cells::groups(record).into_iter().map(of_group);
        groups.chain(tables::all(record)).chain(verdicts::agreement(record)).collect()
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        cells::groups(record).iter().flat_map(|group| cells::plots(record, group)).collect()
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::strategies(record)
    }
}

/// One file, or many in one folder.
fn workload(settings: &Settings, files: &str, seed: u64) -> Workload {
    let (count, size) = match files {
        "many" => (settings.number("many-count"), settings.number("many-size")),
        _ => (1, settings.number("size")),
    };
    Workload { sizes: Sizes::Fixed(size), ..Workload::plain(0, 0, count, 0, seed) }
}

/// Returns the strategies that the kernel or filesystem does not support, with the error. Each copies one block as a
/// test.
fn unusable(session: &Session<'_>) -> Result<Vec<(Strategy, String)>, Failure> {
    let source = session.work().join("block");
    let block = usize::try_from(PAGE).unwrap_or_default();
    std::fs::write(&source, vec![1; block]).map_err(|error| Failure::file("write", &source, &error))?;
    let mut found = Vec::new();
    for (name, strategy) in Strategy::ALL {
        let target = session.work().join(name);
        let how = StrategyOptions { strategy, block_bytes: block, depth: 1 };
        if let Err(failure) = crate::strategies::copy(&how, &source, &target) {
            let said = if let Failure::File { why, .. } = failure { why } else { failure.to_string() };
            found.push((strategy, format!("not possible here: {said}")));
        }
        if target.symlink_metadata().is_ok() {
            ferry_tree::remove::remove(&target)?;
        }
    }
    ferry_tree::remove::remove(&source)?;
    Ok(found)
}

/// Makes a source, and takes all ways of copying it together.
fn one_source(
    session: &mut Session<'_>,
    plan: &Plan,
    states: &[State],
    unusable: &[(Strategy, String)],
) -> Result<(), Failure> {
    if session.has_taken(&states.iter().flat_map(|state| plan.cells(*state)).collect::<Vec<_>>()) {
        return Ok(());
    }
    let workload = workload(session.settings(), &plan.files, session.seed());
    let folder = session.work().join("source");
    session.step("making the source");
    let made = tree::make(&workload, &folder, tree::threads(), session.stop())?;
    let source = if plan.files == "one" { only_file(&folder)? } else { folder.clone() };
    let sample = Sample::of(&source, session.seed())?;
    for &state in states {
        let mut subjects = Vec::new();
        for (way, cell) in plan.ways.iter().zip(plan.cells(state)) {
            if let Some(why) = way.absent().or_else(|| missing(session, state, way.strategy, unusable)) {
                session.leave_out(cell, &why);
                continue;
            }
            let (command, source, bytes) = (&way.command, &source, made.bytes);
            let subject = Subject::new(cell, move |turn: &mut Turn<'_>| {
                let copying = |target: &Path, stop: &Stop| Times::take(command, source, target, stop);
                Ok(copies::once(source, turn.fresh("copy"), turn, copying)?.figures_of(bytes))
            });
            subjects.push(subject.with_programs(&[&command.program]));
        }
        session.interleave(&mut subjects, &sample)?;
    }
    ferry_tree::remove::remove(&folder)?;
    Ok(())
}

fn only_file(folder: &Path) -> Result<PathBuf, Failure> {
    let entry = std::fs::read_dir(folder).and_then(|mut entries| entries.next().transpose());
    match entry.map_err(|error| Failure::file("list", folder, &error))? {
        Some(entry) => Ok(entry.path()),
        None => Err(Failure::file("list", folder, &rustix::io::Errno::NOENT.into())),
    }
}

/// Why a cell can't be measured here.
fn missing(
    session: &Session<'_>,
    state: State,
    strategy: Option<Strategy>,
    unusable: &[(Strategy, String)],
) -> Option<String> {
    if let Some((_, why)) = unusable.iter().find(|(known, _)| Some(*known) == strategy) {
        return Some(why.clone());
    }
    copies::no_cache(session, state)
}

//! `lab copy`: copiers beside cp, cold and warm, on files of 4 KiB and of 1 MiB (documents 000, 003 and 004).
//!
//! The copiers are ferry with its own choice of routes, variants of cp and ferry (without copies in the kernel, with all
//! operations forced to the ring as eio runs them, without io_uring), commands given with `--vs`, and the documents' own
//! programs by block size. Each runs as a command. It is timed from its start until it returns, and until its writes are
//! on the device. Every copy is compared with its source, untimed.

mod dd;
pub(super) mod extent;
pub(crate) mod groups;
pub(super) mod limits;
pub(crate) mod shares;
pub(super) mod tools;
pub(super) mod trees;
mod verdicts;

use self::extent::Extent;
use self::groups::heading;
use super::{copies, headlines};
use crate::cache::State;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::message::quoted;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Cell, Measure, Record};
use crate::session::Session;
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::Table;
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
        "Block sizes of the documents' programs",
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
        tools::ALSO,
        "NAME,...",
        "Variants of cp and ferry: cp-reflink-never, ferry-ring, ferry-posix, or none",
        ParameterKind::Words(&[tools::CP_BY_BLOCKS, tools::FERRY_RING, tools::FERRY_POSIX, "none"]),
        "cp-reflink-never,ferry-ring,ferry-posix",
    ),
    Parameter::new(
        "vs",
        "COMMAND",
        "Also measure this command, such as 'rsync -a {source}/ {target}'; may be repeated",
        ParameterKind::Texts,
        "",
    ),
    Extent::PARAMETER,
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
        groups::DD_SIZE,
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
Repeats documents 000, 003 and 004. For each tree and cache state, these copiers run in rounds of random order: cp and \
ferry, their variants, each --vs command, and the documents' programs at each block size. Where no file is larger than \
one block, only the first block size is taken. Each tree is first copied once to estimate the total time. If it exceeds \
--minutes, trees get fewer levels of folders, and the result says so.

cp and ferry are `cp -r` and `ferry cp -r` unless --copy-as says otherwise. Both let the kernel copy \
(copy_file_range(2)), or share blocks on btrfs and XFS. Their variants:
  cp-reflink-never  cp -r --reflink=never, which reads and writes every byte; only with --copy-as shared
  ferry-ring        the same with ferry, and every operation on the ring, as eio runs them
  ferry-posix       ferry cp -r --backend=posix, without io_uring

Just before each run of a tree of 32 MiB or more, free memory of up to twice its size is written to; 512 MiB are left. So \
a host that has taken free memory back supplies it before the run.

Throughput counts the bytes read plus the bytes written. Document 004 takes dd's sequential writes as an upper limit. A \
table compares the bytes that cp and dd write a second until they are durable.

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
        let is_compared = cell.text("tree") == dd::NAME || cell.number(groups::DD_BESIDE).is_some();
        if is_compared { dd::JUDGED } else { &["returned_s"] }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        limits::check(settings)?;
        Extent::check(settings)?;
        let mut needs = trees::needs(settings)?;
        needs.push(Need::Space { bytes: settings.number(groups::DD_SIZE), entries: 1 });
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
        if Extent::of(session.settings()) == Extent::Shared && groups::shares_blocks(session)? {
            session.warn(shared_blocks());
        }
        let mut planned = usize::from(session.settings().number(groups::DD_SIZE) > 0);
        for tree in &trees {
            planned += groups::planned(session, tree, &states, &tools)?;
        }
        session.plan(planned);
        dd::take(session)?;
        for tree in &trees {
            groups::one_tree(session, tree, &states, &tools)?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let mut tables: Vec<Table> = groups::of(record)
            .into_iter()
            .map(|group| {
                let is_dd = group == dd::NAME;
                let title = if is_dd { "dd, sequential writes".to_owned() } else { heading(record, &group) };
                shares::table(record, &group, &title)
            })
            .collect();
        tables.extend(shares::limits(record));
        tables.extend(dd::table(record));
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        for group in groups::of(record).into_iter().filter(|group| group != dd::NAME) {
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

    fn headline(&self, record: &Record) -> Headline {
        headlines::copy(record)
    }
}

/// Where blocks can be shared, `cp -r` copies no bytes.
fn shared_blocks() -> Warning {
    Warning::note(
        WarningKind::Experiment,
        "cp and ferry share blocks on this filesystem instead of copying bytes",
        "compare copiers that read and write with cp-reflink-never, or take --copy-as plain",
    )
}

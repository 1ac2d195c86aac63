//! `lab limits`: how fast a copy can be on this machine, found with bare programs.
//!
//! All limit programs that are worth trying for a tree and a cache state run in the same rounds as cp and ferry, on the
//! trees of `lab copy`. The fastest one by median is the limit.

use super::copy::{extent, groups, limits, shares, tools, trees};
use super::{copies, headlines};
use crate::cache::State;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record};
use crate::session::Session;
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::Table;
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Limits of copying.
pub(super) struct Limits;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "trees",
        "PRESET,...",
        "Trees to copy (see `ferry lab tree --help`)",
        ParameterKind::Names,
        "three,small,large,huge:512",
    )
    .quick("small,huge:4")
    .published("three,small,flat,wide,large,huge"),
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
        "8",
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
    extent::Extent::PARAMETER,
    Parameter::new(
        limits::OPTION,
        "NAME,...",
        "Limit programs: all, auto (the best two of a pilot), or names",
        ParameterKind::Names,
        "all",
    ),
];

const SPEC: Spec = Spec {
    name: "limits",
    about: "Finds how fast a copy can be on this machine, with bare programs",
    manual: "\
Limit programs are yardsticks, not copiers. Their threads make plain calls and preserve only names, bytes and links. \
After an error they begin no further folder. A name contains the number of threads and the block size: \
limit-read-write-2x64K. All programs run in the same rounds as cp and ferry, and every copy is compared with its \
source. The fastest program by median is the limit of a tree in a cache state. A limit includes the start of ferry's \
executable.
With --copy-as archive they also keep what `cp -a` keeps, except hard links and holes.
  limit-read-write  each thread lists folders and copies their files with read(2) and write(2)
  limit-copy-range  the same with copy_file_range(2); left out where that would share blocks that must be copied
  limit-cached      the same with openat2(RESOLVE_CACHED) and preadv2(RWF_NOWAIT), ferry's calls
  limit-readers     the threads list and read; further threads, one a processor, create and write
  limit-pipe        one file after another: one thread reads, another writes
  limit-mapped      one file after another: write(2) from a mapping that MADV_POPULATE_READ has read, with two threads \
ahead of the writer
  limit-direct      one file after another: the threads read with O_DIRECT, one more writes through the page cache
The tree, the cache state and the number of processors determine which threads and blocks are tried. If the estimated \
time exceeds --minutes, trees get fewer levels of folders, as in `ferry lab copy`.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 1, published: 15 },
    is_measured: true,
};

impl Experiment for Limits {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        copies::measures("read and written until it returned")
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &["returned_s"]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        limits::check(settings)?;
        let mut needs = trees::needs(settings)?;
        needs.push(Need::Program("cp".into()));
        Ok(needs)
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let tools = tools::cp_and_ferry(extent::Extent::of(session.settings()), session.ferry())?;
        let trees = trees::all(session.settings(), session.seed())?;
        let states: Vec<State> =
            session.settings().texts("states").iter().filter_map(|name| State::named(name)).collect();
        tools::note(session, &tools);
        let trees = trees::fitting(session, &trees, &states, &tools)?;
        let mut planned = 0;
        for tree in &trees {
            planned += groups::planned(session, tree, &states, &tools)?;
        }
        session.plan(planned);
        trees.iter().try_for_each(|tree| groups::one_tree(session, tree, &states, &tools))
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let of_group = |group: String| shares::table(record, &group, &groups::heading(record, &group));
        shares::limits(record).into_iter().chain(groups::of(record).into_iter().map(of_group)).collect()
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = |group: String| {
            let (title, prefix) = (groups::heading(record, &group), format!("{group}/"));
            Plot::strips(record, &title, "returned_s", &prefix, groups::cells_of(record, &group))
        };
        groups::of(record).into_iter().map(plot).filter(|plot| !plot.is_empty()).collect()
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        shares::verdicts(record)
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::limits(record)
    }
}

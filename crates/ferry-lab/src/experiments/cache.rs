//! `lab cache`: compares the page cache, plain O_DIRECT, and O_DIRECT with a cache in the program, by access pattern.
//!
//! Each method makes the same requests, one after another from one thread, on one file that is not cached at first.
//! For sequential patterns, the device's rate with several requests in flight is measured as well. The given cache
//! sizes apply to the program's own cache, which starts empty; the page cache can use the machine's memory. The hit
//! ratio of an LRU cache of the same size is computed from the same requests.

mod access;
mod lru;
mod verdicts;
mod ways;

use std::path::Path;

use self::access::{Access, Plan, RANDOM};
use self::ways::Method;
use super::headlines;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::load::lay_out;
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Figures, Measure, Record, Value};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::{Columns, Table};
use crate::units::{figure, size};
use crate::verdict::{Verdict, interval};

#[cfg(test)]
mod tests;

/// The caches side by side.
pub(super) struct Cache;

/// Unit of all sizes, in bytes: the larger of the cache's block sizes.
const UNIT: u64 = 16 << 10;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "access",
        "HOW,...",
        "Access patterns (see below)",
        ParameterKind::Words(&["sequential", "overwrite", "random", "zipf", "mixed"]),
        "sequential,overwrite,random,zipf,mixed",
    ),
    Parameter::new(
        "file-size",
        "BYTES",
        "Size of the file, a multiple of 16K",
        ParameterKind::Size(1 << 20, 64 << 30),
        "512M",
    )
    .quick("32M"),
    Parameter::new(
        "cache-sizes",
        "BYTES,...",
        "Sizes of the own cache, multiples of 16K",
        ParameterKind::Sizes(1 << 18, 4 << 30),
        "8M,32M,128M",
    )
    .quick("2M,8M"),
    Parameter::new(
        "requests",
        "N",
        "Number of random requests in a run",
        ParameterKind::Number(100, 1 << 32),
        "50000",
    )
    .quick("2000"),
    Parameter::new(
        "block-size",
        "BYTES",
        "Size of a sequential request, a multiple of 4K",
        ParameterKind::Size(4096, 64 << 20),
        "1M",
    ),
    Parameter::new(
        "depth",
        "N",
        "Sequential requests in flight when the device's rate is measured",
        ParameterKind::Number(1, 1024),
        "16",
    ),
];

const SPEC: Spec = Spec {
    name: "cache",
    about: "Compares the page cache, O_DIRECT without a cache, and O_DIRECT with its own",
    manual: "\
Access patterns (--access), one request after another from one thread:
  sequential  reads the whole file in order
  overwrite   writes the whole file in order
  random      reads 4 KiB at random offsets
  zipf        reads 4 KiB by Zipf's law: the n-th most popular block is read in proportion to 1/n
  mixed       7 reads to 3 writes of 4 KiB at random offsets
Methods:
  page-cache     read(2) and write(2)
  one-at-a-time  the same with O_DIRECT
  own-cache      ferry's direct file with a cache of each of the sizes
  device         sequential requests with O_DIRECT, --depth in flight. The other methods' throughput is divided by \
this one's. The goal compares own-cache with device or one-at-a-time, whichever is faster
  lru            computed: the share of reads that an LRU cache of that size would have answered
Before a run, nothing of the file is in the page cache, and the own cache is empty. The cache sizes apply to the own \
cache only; the page cache can use the machine's memory. Written bytes count once they are durable. Each read of \
page-cache is first tried without blocking (RWF_NOWAIT), which shows if it was cached. cachestat(2) reports how much \
of the file is in the page cache at the end.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 7, quick: 2, published: 10 },
    is_measured: true,
};

impl Experiment for Cache {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("throughput_b_s", "read and written", "B/s", Better::Higher),
            Measure::new("requests_1_s", "requests", "1/s", Better::Higher),
            Measure::new("hit_ratio", "share of reads answered by a cache", "x", Better::Higher),
            Measure::new("latency_ns_p99", "99th percentile of the latency", "ns", Better::Lower),
            Measure::new("processor_s", "processor time", "s", Better::Lower),
            Measure::new("page_cache_b", "bytes in the page cache afterwards", "B", Better::Lower),
        ]
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        match (cell.text("way").as_str(), cell.text("access").as_str()) {
            ("lru", _) => &["hit_ratio"],
            ("own-cache", "zipf") => &["throughput_b_s", "hit_ratio"],
            _ => &["throughput_b_s"],
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let misuse = |why: String| Err(Failure::Misuse(why));
        let (file, block) = (settings.number("file-size"), settings.number("block-size"));
        if !file.is_multiple_of(UNIT)
            || settings.numbers("cache-sizes").iter().any(|n| !n.is_multiple_of(UNIT))
        {
            return misuse("'--file-size' and '--cache-sizes' must be in multiples of 16K".to_owned());
        }
        if !block.is_multiple_of(RANDOM) || !file.is_multiple_of(block) {
            let why = "'--file-size' must be in multiples of '--block-size', and that of 4K";
            return misuse(why.to_owned());
        }
        Ok(vec![Need::Space { bytes: file, entries: 1 }, Need::DirectIo])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let plans = plans(session.settings(), session.seed());
        let groups: Vec<Vec<(Cell, Taken)>> =
            plans.iter().map(|plan| cells(plan, session.settings())).collect();
        session.plan(groups.iter().map(Vec::len).sum());
        if session.has_taken(groups.iter().flatten().map(|(cell, _)| cell)) {
            return Ok(());
        }
        if let Err(why) = needs::ring() {
            let message = format!(
                "several requests in flight are made by a pool of threads, because io_uring is unavailable ({why})"
            );
            session.warn(Warning::note(
                WarningKind::Experiment,
                message,
                "compare it only with records taken under the same conditions",
            ));
        }
        let file = session.work().join("file");
        session.step("writing the file");
        lay_out(&file, session.settings().number("file-size"), session.seed(), session.stop())?;
        for (plan, cells) in plans.iter().zip(groups) {
            let mut subjects: Vec<Subject<'_>> =
                cells.into_iter().map(|(cell, taken)| subject(cell, taken, plan, &file)).collect();
            session.interleave(&mut subjects, &Sample::none())?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let of = |(name, _): (&'static str, Access)| {
            let cells = record.cells.iter().filter(|cell| cell.text("access") == name);
            let cells: Vec<&Cell> = cells.filter(|cell| cell.text("way") != "lru").collect();
            let mut columns = Columns::of(record)?;
            // Requests of an access have one size, so that their rate says no more than the throughput.
            columns.others.retain(|measure| measure.unit != "1/s");
            Some(columns.table(record, name, &cells))
        };
        let mut tables: Vec<Table> = Access::ALL.into_iter().filter_map(of).collect();
        tables.push(beside_lru(record));
        tables.retain(|table| !table.is_empty());
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        for (name, access) in Access::ALL {
            let cells = || record.cells.iter().filter(move |cell| cell.text("access") == name);
            let prefix = format!("{name}/");
            for (measure, what) in [("throughput_b_s", "bytes"), ("latency_ns_p99", "latency")] {
                plots.push(Plot::strips(record, &format!("{name}: {what}"), measure, &prefix, cells()));
            }
            if !access.is_sequential() {
                let title = format!("{name}: hit ratio");
                let with_cache = cells().filter(|cell| cell.number("cache_bytes").is_some());
                let series = |cell: &Cell| cell.text("way");
                plots.push(Plot::lines(record, &title, "hit_ratio", "cache_bytes", series, with_cache));
            }
        }
        plots.retain(|plot| !plot.is_empty());
        plots
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::cache(record)
    }
}

/// Source of a cell's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Measured(Method),
    /// Computed, for a cache of this size in bytes.
    Computed(u64),
}

fn plans(settings: &Settings, seed: u64) -> Vec<Plan> {
    let (file, block) = (settings.number("file-size"), settings.number("block-size"));
    let texts = settings.texts("access");
    let accesses = texts.iter().filter_map(|name| Access::named(name));
    accesses.map(|access| Plan::new(access, file, block, settings.number("requests"), seed)).collect()
}

/// Every way of one kind of access: `zipf/own-cache/8M`.
fn cells(plan: &Plan, settings: &Settings) -> Vec<(Cell, Taken)> {
    let access = plan.access;
    let cell = |way: &str, cache: Option<u64>| {
        let mut parameters: Vec<(&str, Value)> = vec![("access", access.name().into()), ("way", way.into())];
        parameters.extend(cache.map(|bytes| ("cache", size(bytes).as_str().into())));
        let cell = Cell::new(&parameters, State::AsItIs);
        match cache {
            Some(bytes) => cell.with("cache_bytes", bytes.into()),
            None => cell,
        }
    };
    let measured = |way: Method| match way {
        Method::OwnCache(bytes) => (cell(way.name(), Some(bytes)), Taken::Measured(way)),
        Method::PageCache | Method::OneAtATime | Method::Device(_) => {
            (cell(way.name(), None), Taken::Measured(way))
        }
    };
    let base =
        if access.is_sequential() { Method::Device(settings.number("depth")) } else { Method::OneAtATime };
    let caches = settings.numbers("cache-sizes");
    let mut ways = vec![base, Method::PageCache];
    if access.is_sequential() {
        ways.push(Method::OneAtATime);
    }
    ways.extend(caches.iter().map(|&bytes| Method::OwnCache(bytes)));
    let mut found: Vec<(Cell, Taken)> = ways.into_iter().map(measured).collect();
    let (base, _) = measured(base);
    for (cell, _) in found.iter_mut().skip(1) {
        *cell = cell.clone().against(&base);
    }
    if !access.is_sequential() {
        found.extend(caches.iter().map(|&bytes| (cell("lru", Some(bytes)), Taken::Computed(bytes))));
    }
    found
}

fn subject<'a>(cell: Cell, taken: Taken, plan: &'a Plan, file: &'a Path) -> Subject<'a> {
    Subject::new(cell, move |turn: &mut Turn<'_>| match taken {
        Taken::Measured(way) => ways::take(way, plan, file, turn.round(), turn.stop()),
        Taken::Computed(bytes) => {
            let places = usize::try_from(bytes / RANDOM).unwrap_or(usize::MAX);
            let ratio = lru::hit_ratio(places, plan.steps(turn.round()));
            Ok(Figures::from([("hit_ratio".to_owned(), ratio)]))
        }
    })
}

/// The own cache's hits beside those of LRU of the same size.
fn beside_lru(record: &Record) -> Table {
    let columns = ["cell", "hit ratio", "LRU", "own / LRU"];
    let mut out = Table::new("Hit ratio of the own cache, and of an LRU cache of the same size", &columns);
    for cell in record.cells.iter().filter(|cell| cell.text("way") == "own-cache") {
        let other = record.find(&[
            ("access", &cell.text("access")),
            ("way", "lru"),
            ("cache_bytes", &cell.text("cache_bytes")),
        ]);
        let Some(lru) = other else { continue };
        let middle = |cell| record.summary(cell, "hit_ratio").map(|found| figure(found.median.middle, "x"));
        let ratio = record.ratio(lru, cell, "hit_ratio");
        let row = [middle(cell), middle(lru), ratio.map(|ratio| interval(&ratio))];
        if row.iter().all(Option::is_some) {
            out.row([Some(cell.name.clone())].into_iter().chain(row).flatten().collect());
        }
    }
    out
}

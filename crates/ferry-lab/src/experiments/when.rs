//! `lab when`: the cases in which document 003 expects asynchronous I/O to help, and one in which it does not.
//!
//! Runs `ferry cp` with all operations inline, on the ring, on helper threads, and with its own choice. The cases are:
//! between two devices, with little memory, made durable, beside a reader whose latency matters, and a plain buffered
//! copy. A case is left out, with the reason, if its requirements (loop devices, a cgroup) are not met.
//!
//! The document's remaining case, O_DIRECT with a cache in the program, is not a copy: see `lab ring` and `lab
//! strategies`.

mod cases;
pub(super) mod fixtures;
pub(super) mod held;
mod latency;
mod reader;
mod verdicts;

use std::path::Path;

use ferry_tree::workload::Workload;

use self::cases::{CASES, LATENCY, ROUTES, Source, ferry_cp, leave_out_all, routes};
use self::fixtures::{Devices, MemoryLimit};
use super::copies::{self, Times};
use super::tree;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::{Better, Cell, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::table::{self, Table};
use crate::units::figure;
use crate::verdict::{Verdict, interval};

#[cfg(test)]
mod tests;

/// Asynchronous or not.
pub(super) struct When;

/// Number of files in the large cases.
const LARGE_FILES: u64 = 4;
const SMALL_FILE_BYTES: u64 = 16 << 10;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "cases",
        "CASE,...",
        "buffered, two-devices, small-memory, durable, latency",
        ParameterKind::Words(CASES),
        "buffered,two-devices,small-memory,durable,latency",
    ),
    Parameter::new(
        "size",
        "BYTES",
        "Bytes to copy, in 4 files",
        ParameterKind::Size(1 << 20, 1 << 40),
        "256M",
    )
    .quick("64M"),
    Parameter::new(
        "memory",
        "BYTES",
        "Memory limit of the cgroup in the small-memory case",
        ParameterKind::Size(16 << 20, 1 << 40),
        "64M",
    )
    .quick("56M"),
    Parameter::new(
        "files",
        "N",
        "Number of files of 16 KiB in the durable case",
        ParameterKind::Number(1, 1_000_000),
        "500",
    )
    .quick("100"),
    Parameter::new(
        "reads",
        "N",
        "Minimum number of reads in a run of the latency case; copies are repeated until it is reached",
        ParameterKind::Number(1, 1_000_000),
        "1000",
    )
    .quick("200"),
];

const SPEC: Spec = Spec {
    name: "when",
    about: "Compares routes where asynchronous I/O is said to help: two devices, little memory, durable, latency",
    manual: "\
Repeats document 003's list of cases in which asynchronous I/O helps. For each case, `ferry cp` runs with --route \
inline, ring, pool and auto, in rounds of random order.
  buffered      one device, enough memory, cached source: the document expects no gain
  two-devices   from a loop image on the work folder's device to one in memory, caches cold; needs root
  small-memory  in a cgroup with less memory than the copied bytes; needs permission to create a cgroup
  durable       many small files, made durable (--fsync)
  latency       large files made durable, while a reader makes a random direct read of 4 KiB on the same device every \
millisecond. Its 99th percentile is compared with that of a reader without a copy
The loop devices, mounts and the cgroup are removed at the end, even if the lab is killed.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 10 },
    is_measured: true,
};

impl Experiment for When {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("returned_s", "time until it returned", "s", Better::Lower),
            Measure::new("durable_s", "time until the data was durable", "s", Better::Lower),
            Measure::new("read_p50_s", "median latency of reads beside the copy", "s", Better::Lower),
            Measure::new(
                "read_p99_s",
                "99th percentile of the latency of reads beside the copy",
                "s",
                Better::Lower,
            ),
            Measure::new("reads", "reads", "", Better::Neither),
            Measure::new("copies", "number of copies beside the reads", "", Better::Neither),
        ]
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        verdicts::measures_of(&cell.text("case"))
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let size = settings.number("size");
        let files = settings.number("files");
        // The source and a copy, an image with the source, the reader's file, and the small files twice.
        let bytes = size.saturating_mul(3).saturating_add(fixtures::SLACK_BYTES + latency::READ_FILE_BYTES);
        let small = files.saturating_mul(2 * (SMALL_FILE_BYTES + 4096));
        let entries = files.saturating_mul(2).saturating_add(100);
        Ok(vec![Need::Space { bytes: bytes.saturating_add(small), entries }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let cases = session.settings().texts("cases");
        let has = |name: &str| cases.iter().any(|case| case == name);
        session.plan(cases.len() * ROUTES.len() + usize::from(has(LATENCY)));
        let folder = session.work().join("large");
        let mut large = Source { folder, workload: large(session), is_made: false };
        if has("buffered") {
            buffered(session, &mut large)?;
        }
        if has("small-memory") {
            small_memory(session, &mut large)?;
        }
        if has(LATENCY) {
            latency::take(session, &mut large)?;
        }
        large.remove()?;
        if has("durable") {
            durable(session)?;
        }
        if has("two-devices") {
            two_devices(session)?;
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        CASES.iter().filter_map(|case| of_case(record, case)).collect()
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let plot = |case: &&str| {
            let cells = record.cells.iter().filter(|cell| cell.text("case") == **case);
            Plot::strips(record, case, verdicts::measure_of(case), &format!("{case}/"), cells)
        };
        CASES.iter().map(plot).filter(|plot| !plot.is_empty()).collect()
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }
}

fn large(session: &Session<'_>) -> Workload {
    let each = session.settings().number("size") / LARGE_FILES;
    Workload::plain(0, 0, LARGE_FILES, each, session.seed())
}

fn is_done(session: &Session<'_>, routes: &[(Cell, String)]) -> bool {
    session.has_taken(routes.iter().map(|(cell, _)| cell))
}

fn cells(routes: Vec<(Cell, String)>) -> impl Iterator<Item = Cell> {
    routes.into_iter().map(|(cell, _)| cell)
}

/// The control: nothing has to be waited for.
fn buffered(session: &mut Session<'_>, source: &mut Source) -> Result<(), Failure> {
    let routes = routes(session, "buffered", State::Warm);
    if is_done(session, &routes) {
        return Ok(());
    }
    let sample = source.ready(session)?;
    let commands = routes.into_iter().map(|(cell, route)| (cell, ferry_cp(session, &[&route]))).collect();
    compare(session, commands, &source.folder, &sample)
}

fn durable(session: &mut Session<'_>) -> Result<(), Failure> {
    let routes = routes(session, "durable", State::Warm);
    if is_done(session, &routes) {
        return Ok(());
    }
    let files = session.settings().number("files");
    let workload = Workload::plain(0, 0, files, SMALL_FILE_BYTES, session.seed());
    let mut source = Source { folder: session.work().join("small"), workload, is_made: false };
    let sample = source.ready(session)?;
    let commands =
        routes.into_iter().map(|(cell, route)| (cell, ferry_cp(session, &["--fsync", &route]))).collect();
    compare(session, commands, &source.folder, &sample)?;
    source.remove()
}

fn small_memory(session: &mut Session<'_>, source: &mut Source) -> Result<(), Failure> {
    let routes = routes(session, "small-memory", State::Warm);
    if is_done(session, &routes) {
        return Ok(());
    }
    let limit = match MemoryLimit::make(session.settings().number("memory")) {
        Ok(limit) => limit,
        Err(Failure::Run(why)) => {
            leave_out_all(session, cells(routes), &why);
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    let sample = source.ready(session)?;
    let within = |(cell, route): (Cell, String)| (cell, limit.around(&ferry_cp(session, &[&route])));
    let commands = routes.into_iter().map(within).collect();
    let outcome = compare(session, commands, &source.folder, &sample);
    outcome.and(limit.remove())
}

fn two_devices(session: &mut Session<'_>) -> Result<(), Failure> {
    let routes = routes(session, "two-devices", State::Cold);
    if is_done(session, &routes) {
        return Ok(());
    }
    if !needs::may_drop_caches() {
        leave_out_all(session, cells(routes), "dropping caches and loop devices need root");
        return Ok(());
    }
    session.step("making two devices");
    let size = session.settings().number("size");
    let devices = match Devices::make(session.work(), size, session.stop()) {
        Ok(devices) => devices,
        Err(Failure::Run(why)) => {
            leave_out_all(session, cells(routes), &why);
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    let folder = devices.first().join("large");
    tree::make(&large(session), &folder, tree::threads(), session.stop())?;
    let sample = Sample::of(&folder, session.seed())?;
    let ferry = session.ferry().to_owned();
    let subject = |(cell, route): (Cell, String)| {
        let (command, folder, devices) = (ferry_cp(session, &[&route]), &folder, &devices);
        Subject::new(cell, move |turn: &mut Turn<'_>| {
            let target = devices.second().join("copy");
            let times = Times::take(&command, folder, &target, turn.stop());
            let outcome = times.and_then(|times| copies::same(folder, &target).map(|()| times.figures()));
            // Removed at once: the second device has room for one copy.
            let removed = ferry_tree::remove::remove(&target);
            let figures = outcome?;
            removed?;
            Ok(figures)
        })
        .with_programs(&[&ferry])
    };
    let mut subjects: Vec<Subject<'_>> = routes.into_iter().map(subject).collect();
    session.step("two-devices");
    session.interleave(&mut subjects, &sample)?;
    drop(subjects);
    devices.remove()
}

/// Takes the commands side by side.
fn compare(
    session: &mut Session<'_>,
    commands: Vec<(Cell, Stranger)>,
    source: &Path,
    sample: &Sample,
) -> Result<(), Failure> {
    let subject = |(cell, command): (Cell, Stranger)| {
        Subject::new(cell, move |turn: &mut Turn<'_>| {
            let copying = |target: &Path, stop: &Stop| Times::take(&command, source, target, stop);
            copies::once(source, turn.fresh("copy"), turn, copying).map(Times::figures)
        })
    };
    let mut subjects: Vec<Subject<'_>> = commands.into_iter().map(subject).collect();
    session.interleave(&mut subjects, sample)
}

/// A case's routes: what matters in it and how that compares, and the medians of the other figures.
fn of_case(record: &Record, case: &str) -> Option<Table> {
    let cells: Vec<&Cell> = record.cells.iter().filter(|cell| cell.text("case") == case).collect();
    let first = record.measure(verdicts::measure_of(case)).filter(|_| !cells.is_empty())?;
    let has = |measure: &&Measure| cells.iter().any(|cell| !cell.figures(&measure.name).is_empty());
    let others: Vec<&Measure> =
        record.measures.iter().filter(|measure| *measure != first).filter(has).collect();
    let mut columns = vec!["route", "runs", first.about.as_str(), "95 %", "times inline"];
    columns.extend(others.iter().map(|measure| measure.about.as_str()));
    let mut table = Table::new(case, &columns);
    for cell in cells {
        let mut row = vec![cell.text("route"), cell.runs.len().to_string()];
        match record.summary(cell, &first.name) {
            Some(found) => row.extend([
                figure(found.median.middle, &first.unit),
                table::between(&found.median, &first.unit),
                record.ratio_to_base(cell, &first.name).map(|ratio| interval(&ratio)).unwrap_or_default(),
            ]),
            None => row.push(cell.missing.clone().unwrap_or_else(|| "not taken".to_owned())),
        }
        row.extend(
            others
                .iter()
                .filter(|_| row.len() > 3)
                .map(|measure| {
                    let found = record.summary(cell, &measure.name);
                    found.map(|found| figure(found.median.middle, &measure.unit)).unwrap_or_default()
                })
                .collect::<Vec<_>>(),
        );
        row.resize(table.columns.len(), String::new());
        table.row(row);
    }
    Some(table)
}

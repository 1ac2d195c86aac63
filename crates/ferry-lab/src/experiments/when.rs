//! `lab when`: the cases in which document 003 expects asynchronous I/O to help, and one in which it does not.
//!
//! Runs `ferry cp` with all operations inline, on the ring, on helper threads, and with its own choice. The cases are:
//! between two devices, with little memory, made durable, beside a reader whose latency matters, and a plain buffered
//! copy. In two further cases the runtime itself runs a fiber whose latency matters, beside one whose operation takes
//! long. A case is left out, with the reason, if its requirements (loop devices, a cgroup) are not met.
//!
//! The document's remaining case, O_DIRECT with a cache in the program, is not a copy: see `lab ring` and `lab
//! strategies`.

mod cases;
pub(super) mod devices;
pub(super) mod fixtures;
pub(super) mod held;
mod latency;
mod reader;
mod same_worker;
mod throttle;
mod verdicts;

use std::path::Path;

use ferry_tree::workload::Workload;

use self::cases::{
    BESIDE_READ, BESIDE_SYNC, CASES, LATENCY, ROUTES, Source, ferry_cp, leave_out_all, routes,
};
use self::devices::Devices;
use self::fixtures::MemoryLimit;
use super::copies::{self, Times};
use super::{headlines, tree};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Measure, Record};
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::table::{Columns, Table};
use crate::units::{figure, real};
use crate::verdict::Verdict;

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
        "Cases to measure (see below)",
        ParameterKind::Words(CASES),
        "buffered,two-devices,small-memory,durable,latency,beside-read,beside-sync",
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
        "device-rate",
        "BYTES",
        "Bytes a second of each device in each direction, in the two-devices case",
        ParameterKind::Size(1 << 20, 1 << 40),
        "200M",
    )
    .quick("400M"),
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
    Parameter::new(
        "ticks",
        "N",
        "Minimum number of ticks during long operations in a run of the cases beside-read and beside-sync",
        ParameterKind::Number(1, 1_000_000),
        "1000",
    )
    .quick("50"),
];

const SPEC: Spec = Spec {
    name: "when",
    about: "Compares routes where asynchronous I/O is said to help: two devices, little memory, durable, latency",
    manual: "\
Repeats document 003's list of cases in which asynchronous I/O helps. For each case, `ferry cp` runs with --route \
inline, ring, pool and auto, in rounds of random order.
  buffered      one device, enough memory, cached source: the document expects no gain
  two-devices   from one loop device to another, caches cold. Both images are on the disk of the work folder, and a \
cgroup limits each device to --device-rate; needs root
  small-memory  in a cgroup with less memory than the copied bytes; needs permission to create a cgroup
  durable       many small files, made durable (--fsync)
  latency       large files made durable, while a reader makes a random direct read of 4 KiB on the same device every \
millisecond. Its 99th percentile is compared with that of a reader alone
  beside-read   no copy: in one worker of ferry's runtime, a fiber ticks and makes a small cached read every \
millisecond, while another fiber reads a file that is not cached, 4 MiB at a time
  beside-sync   as beside-read, while the other fiber makes 32 MiB durable with fsync(2). It fails where fsync(2) takes less \
than a millisecond
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
            Measure::new(
                "tick_p99_s",
                "99th percentile of a tick's delay during a long operation of the worker",
                "s",
                Better::Lower,
            ),
            Measure::new(
                "tick_p50_s",
                "median of a tick's delay during a long operation of the worker",
                "s",
                Better::Lower,
            ),
            Measure::new(
                "small_p99_s",
                "99th percentile of the time from a tick until a small cached read has completed",
                "s",
                Better::Lower,
            ),
            Measure::new("long_s", "median time of the long operations", "s", Better::Neither),
            Measure::new("ticks", "ticks during long operations", "", Better::Neither),
            Measure::new(
                "cached_share",
                "largest share of the long file that was cached before it was read",
                "x",
                Better::Neither,
            ),
        ]
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        verdicts::measures_of(&cell.text("case"))
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let size = settings.number("size");
        let files = settings.number("files");
        let cases = settings.texts("cases");
        let has = |names: &[&str]| cases.iter().any(|case| names.contains(&case.as_str()));
        let parts = [
            // The source and a copy.
            (has(&["buffered", "small-memory", LATENCY]), size.saturating_mul(2)),
            // Two images with one each.
            (has(&["two-devices"]), size.saturating_mul(2).saturating_add(2 * devices::SLACK_BYTES)),
            (has(&[LATENCY]), latency::READ_FILE_BYTES),
            (has(&[BESIDE_READ, BESIDE_SYNC]), 2 * same_worker::LONG_BYTES),
            (has(&["durable"]), files.saturating_mul(2 * (SMALL_FILE_BYTES + 4096))),
        ];
        let bytes = parts.iter().filter(|(is_made, _)| *is_made).map(|(_, bytes)| *bytes);
        let entries = files.saturating_mul(2).saturating_add(100);
        Ok(vec![Need::Space { bytes: bytes.fold(0, u64::saturating_add), entries }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let cases = session.settings().texts("cases");
        let has = |name: &str| cases.iter().any(|case| case == name);
        let with_alone = [LATENCY, BESIDE_READ, BESIDE_SYNC].into_iter().filter(|case| has(case)).count();
        session.plan(cases.len() * ROUTES.len() + with_alone);
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
        for case in [BESIDE_READ, BESIDE_SYNC].into_iter().filter(|case| has(case)) {
            same_worker::take(session, case)?;
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

    fn headline(&self, record: &Record) -> Headline {
        headlines::when(record)
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
    let (size, rate) = (session.settings().number("size"), session.settings().number("device-rate"));
    let devices = match Devices::make(session.work(), size, rate, session.stop()) {
        Ok(devices) => devices,
        Err(Failure::Run(why)) => {
            leave_out_all(session, cells(routes), &why);
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    session.warn(Warning::note(
        WarningKind::Experiment,
        format!(
            "the two devices are images on one disk; each may move {} in each direction",
            figure(real(rate), "B/s")
        ),
        "two disks may differ: this shows only what two queues change",
    ));
    let folder = devices.first().join("large");
    tree::make(&large(session), &folder, tree::threads(), session.stop())?;
    let sample = Sample::of(&folder, session.seed())?;
    let ferry = session.ferry().to_owned();
    let subject = |(cell, route): (Cell, String)| {
        let command = devices.around(&ferry_cp(session, &[&route]));
        let (folder, devices) = (&folder, &devices);
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

/// A case's routes, with the measure that matters in it first.
fn of_case(record: &Record, case: &str) -> Option<Table> {
    let cells: Vec<&Cell> = record.cells.iter().filter(|cell| cell.text("case") == case).collect();
    let first = record.measure(verdicts::measure_of(case)).filter(|_| !cells.is_empty())?;
    let others = record.measures.iter().filter(|measure| *measure != first).collect();
    Some(Columns { first, others, last: None }.table(record, case, &cells))
}

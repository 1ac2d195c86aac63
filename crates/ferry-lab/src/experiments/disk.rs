//! `lab disk`: measures the device past the page cache, and compares it with document 003's table.
//!
//! The file is first written with bytes that cannot be compressed, so that later writes go to allocated blocks. Each
//! run then reads, writes, or mixes both at random for a given time, with O_DIRECT. At depth 1 it makes plain calls.
//! At larger depths it uses the ring, or the pool where there is no ring.

mod verdicts;

use std::path::Path;
use std::time::Duration;

use super::headlines;
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::load::{self, Load, RequestKind as Of};
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::published;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Figures, Measure, Record, Value};
use crate::session::{Session, Subject};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::{self, Table};
use crate::units::{figure, size};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// The device's figures.
pub(super) struct Disk;

/// Bytes of a random request: the documents' 4k.
const RANDOM_BYTES: u64 = 4096;
/// The published table's rows, as published: how the requests go.
const PUBLISHED: [(&str, u64); 3] = [("sequential", 1), ("random", 1), ("random", 64)];

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "size",
        "BYTES",
        "Size of the file that is read and written, a multiple of 4K",
        ParameterKind::Size(1 << 20, 1 << 44),
        "1G",
    )
    .quick("64M")
    .published("4G"),
    Parameter::new("milliseconds", "N", "Duration of each run", ParameterKind::Number(10, 3_600_000), "2000")
        .quick("250")
        .published("10000"),
    Parameter::new(
        "block-size",
        "BYTES",
        "Size of a sequential request, a multiple of 4K",
        ParameterKind::Size(4096, 64 << 20),
        "1M",
    ),
    Parameter::new("depths", "N,...", "Random requests in flight", ParameterKind::Numbers(1, 1024), "1,64"),
];

const SPEC: Spec = Spec {
    name: "disk",
    about: "Measures the device past the page cache, beside the published figures",
    manual: "\
Repeats the table of document 003. Sequential requests are reads, writes, or both (half each, in random order) at \
depth 1. Random requests of 4 KiB run at depth 1 and 64. All use O_DIRECT on one file in the work folder, which is \
written first. Latencies are those of single requests. The document's figures are means over 2,171 users of another \
program, which does not publish its file size or block size.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 7, quick: 2, published: 10 },
    is_measured: true,
};

impl Experiment for Disk {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("throughput_b_s", "read and written", "B/s", Better::Higher),
            Measure::new("requests_1_s", "requests", "1/s", Better::Higher),
            Measure::new("latency_ns_p50", "median latency", "ns", Better::Lower),
            Measure::new("latency_ns_p99", "99th percentile of the latency", "ns", Better::Lower),
            Measure::new("flush_s", "time to make the writes durable", "s", Better::Lower),
        ]
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &["throughput_b_s"]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        for name in ["size", "block-size"] {
            if !settings.number(name).is_multiple_of(RANDOM_BYTES) {
                let why = format!("'--{name}' must be a multiple of 4K, because direct I/O requires it");
                return Err(Failure::Misuse(why));
            }
        }
        if settings.number("size") < settings.number("block-size") {
            return Err(Failure::Misuse("'--size' must be at least one '--block-size'".to_owned()));
        }
        Ok(vec![Need::Space { bytes: settings.number("size"), entries: 1 }, Need::DirectIo])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let ring = needs::ring();
        let loads = loads(session.settings(), ring.is_ok());
        session.plan(loads.len());
        if session.has_taken(&loads.iter().map(cell).collect::<Vec<_>>()) {
            return Ok(());
        }
        if let Err(why) = ring {
            let message = format!(
                "several requests in flight are made by a pool of threads, because io_uring is unavailable ({why})"
            );
            session.warn(Warning::note(
                WarningKind::Experiment,
                message,
                "compare it only with records taken under the same conditions",
            ));
        }
        warn_of_virtual_device(session);
        let file = session.work().join("file");
        session.step("writing the file");
        load::lay_out(&file, session.settings().number("size"), session.seed(), session.stop())?;
        let mut subjects: Vec<Subject<'_>> = loads.iter().map(|load| subject(load, &file)).collect();
        session.interleave(&mut subjects, &Sample::none())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        vec![table::of_cells(record, "Direct I/O", &record.cells), beside(record)]
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        let measures =
            [("throughput_b_s", "Bytes"), ("requests_1_s", "Requests"), ("latency_ns_p99", "Latency")];
        for (measure, what) in measures {
            for pattern in ["sequential", "random"] {
                let cells = record.cells.iter().filter(|cell| cell.text("pattern") == pattern);
                plots.push(Plot::strips(record, &format!("{what}, {pattern}"), measure, "", cells));
            }
        }
        plots.retain(|plot| !plot.is_empty());
        plots
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::disk(record)
    }
}

/// A virtual device's host may have a page cache of its own.
fn warn_of_virtual_device(session: &mut Session<'_>) {
    let Some(device) = &session.machine().place.device else { return };
    let is_virtual = ["vd", "xvd", "loop", "ram", "zram"].iter().any(|name| device.name.starts_with(name));
    if is_virtual {
        let message = format!("'{}' is a virtual device, whose host may cache data in memory", device.name);
        session.warn(Warning::note(
            WarningKind::Experiment,
            message,
            "its figures may differ from those of a physical disk",
        ));
    }
}

/// Every pattern of the published table, with the depths asked for.
fn loads(settings: &Settings, with_ring: bool) -> Vec<Load> {
    let lasts = Duration::from_millis(settings.number("milliseconds"));
    let file_bytes = settings.number("size");
    let mut shapes = vec![(false, settings.number("block-size"), 1)];
    shapes.extend(settings.numbers("depths").into_iter().map(|depth| (true, RANDOM_BYTES, depth)));
    let mut loads = Vec::new();
    for (is_random, block_bytes, depth) in shapes {
        loads.extend([Of::Read, Of::Write, Of::Mixed].map(|kind| Load {
            kind,
            is_random,
            block_bytes,
            depth,
            file_bytes,
            lasts,
            with_ring,
        }));
    }
    loads
}

/// `random/4K/64/read`.
fn cell(load: &Load) -> Cell {
    let pattern = if load.is_random { "random" } else { "sequential" };
    let parameters: [(&str, Value); 4] = [
        ("pattern", pattern.into()),
        ("block", size(load.block_bytes).as_str().into()),
        ("depth", load.depth.into()),
        ("operation", load.kind.name().into()),
    ];
    Cell::new(&parameters, State::AsItIs)
        .with("block_bytes", load.block_bytes.into())
        .with("route", load.route_name().into())
}

fn subject<'a>(load: &'a Load, file: &'a Path) -> Subject<'a> {
    let mut serial = 0;
    Subject::new(cell(load), move |turn| {
        serial += 1;
        let found = load.run(file, serial, turn.stop())?;
        turn.stop().check()?;
        let mut figures = Figures::from([
            ("throughput_b_s".to_owned(), found.bytes_per_second),
            ("requests_1_s".to_owned(), found.requests_per_second),
            ("latency_ns_p50".to_owned(), found.latency_ns_p50),
            ("latency_ns_p99".to_owned(), found.latency_ns_p99),
        ]);
        figures.extend(found.flush_seconds.map(|seconds| ("flush_s".to_owned(), seconds)));
        Ok(figures)
    })
}

/// Ours and the published figures, a row for each.
fn beside(record: &Record) -> Table {
    let columns = ["", "here", "requests", "published", "here / published"];
    let mut out =
        Table::new("This device and document 003's (2,171 users of an Intel SSDPEKKF512G7L)", &columns);
    let Some(known) = published::of("disk").next() else { return out };
    for ((pattern, depth), (title, figures)) in PUBLISHED.into_iter().zip(known.rows) {
        for (kind, value) in [Of::Read, Of::Write, Of::Mixed].into_iter().zip(*figures) {
            let middle = |measure| {
                let cell = verdicts::find(record, pattern, depth, kind)?;
                record.summary(cell, measure).map(|found| found.median.middle)
            };
            let here = middle("throughput_b_s");
            let ratio = here.zip(*value).map(|(here, published)| here / published);
            out.row(vec![
                format!("{title}, {}", kind.name()),
                here.map_or("not taken".to_owned(), |here| figure(here, "B/s")),
                middle("requests_1_s").map(|rate| figure(rate, "1/s")).unwrap_or_default(),
                value.map(|value| figure(value, "B/s")).unwrap_or_default(),
                ratio.map(|ratio| figure(ratio, "x")).unwrap_or_default(),
            ]);
        }
    }
    out
}

//! `lab write`: zeros over a sparse file, and a download, into different sinks (document 001).
//!
//! Each run writes its own file. It is timed from its start until the last write has returned, and until the data is
//! durable. Then every byte is compared, untimed.

mod beside;
mod cells;
mod content;
mod http;
mod rates;
mod runs;
mod server;
mod sink;
mod verdicts;

use self::beside::{DOWNLOAD, OVERWRITE, beside_published};
use self::cells::{Group, Workload};
use self::http::Url;
use self::sink::{Sink, SinkOptions};
use super::headlines;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::headline::Headline;
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::{Better, Cell, Measure, Record};
use crate::search_path::find_program;
use crate::session::Session;
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::table::{self, Table};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// The experiment.
pub(super) struct Write;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "operations",
        "NAME,...",
        "Workloads: overwrite (zeros over a sparse file), download",
        ParameterKind::Words(&[OVERWRITE, DOWNLOAD]),
        "overwrite,download",
    ),
    Parameter::new(
        "sinks",
        "NAME,...",
        "Sinks: control, dd, direct, direct-pipelined, ring, ring-all, ring-direct",
        ParameterKind::Words(&[
            "control",
            "dd",
            "direct",
            "direct-pipelined",
            "ring",
            "ring-all",
            "ring-direct",
        ]),
        "control,dd,direct,direct-pipelined,ring,ring-all,ring-direct",
    ),
    Parameter::new("size", "BYTES", "Size of the sparse file", ParameterKind::Size(4096, 1 << 40), "1G")
        .quick("32M")
        .published("5G"),
    Parameter::new(
        "url",
        "URL",
        "Download this URL by plain HTTP; by default, use the lab's own server",
        ParameterKind::Text,
        "",
    ),
    Parameter::new(
        "download-size",
        "BYTES",
        "Size of the own server's file",
        ParameterKind::Size(1, 1 << 40),
        "256M",
    )
    .quick("16M")
    .published("1G"),
    Parameter::new(
        rates::OPTION,
        "RATE,...",
        "Rates of the own server: 0 (no limit), a percentage of the device's rate, or bytes a second",
        ParameterKind::Names,
        "0,100%,50%",
    )
    .quick("0"),
    Parameter::new(
        "block-sizes",
        "BYTES,...",
        "Bytes of each write, multiples of 4K",
        ParameterKind::Sizes(4096, 64 << 20),
        "1M",
    ),
    Parameter::new(
        "depths",
        "N,...",
        "Writes in flight, for sinks that have several",
        ParameterKind::Numbers(2, 1024),
        "16",
    ),
];

const SPEC: Spec = Spec {
    name: "write",
    about: "Times plain, direct and ring writes: zeros over a sparse file, and a download",
    manual: "\
Repeats document 001: zeros over a sparse file, and a download over HTTP. Each sink writes a new file, in rounds of \
random order. The sinks are plain writes (control), dd, O_DIRECT with one write in flight or several (by threads), \
and the ring, through the page cache or with O_DIRECT. ring-all queues all writes of the file at once. The time until \
the last write was queued is shown beside the time until it returned. The document does not give its image size or \
block size. --as-published takes 1 GiB and blocks of 1 MiB.

The published downloads took different times, so the network alone did not decide them. The own server sends as fast \
as the sink receives, or like a link of the given rate: time in which the sink does not receive is lost. At 50 % of the \
device's rate the link decides. Without a limit the sink does. The device's rate is that of three files of zeros, \
written with O_DIRECT one block after another before the first download.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 100 },
    is_measured: true,
};

impl Experiment for Write {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("returned_s", "time until the last write returned", "s", Better::Lower),
            Measure::new("queued_s", "time until the last write was queued", "s", Better::Lower),
            Measure::new("durable_s", "time until the data was durable", "s", Better::Lower),
            Measure::new(
                "throughput_b_s",
                "bytes written per second until the last write returned",
                "B/s",
                Better::Higher,
            ),
        ]
    }

    fn judged(&self, cell: &Cell) -> &'static [&'static str] {
        match cell.text("sink").as_str() {
            "ring-all" => &["returned_s", "queued_s"],
            _ => &["returned_s", "durable_s"],
        }
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let has = |operation: &str| settings.texts("operations").iter().any(|known| known == operation);
        if let Some(odd) = settings.numbers("block-sizes").iter().find(|bytes| !bytes.is_multiple_of(4096)) {
            return Err(Failure::Misuse(format!("{odd} in '--block-sizes' is not a multiple of 4096")));
        }
        let url = settings.text("url");
        if !url.is_empty() {
            Url::parse(&url)?;
        }
        Group::all(settings)?;
        let overwrite = if has(OVERWRITE) { settings.number("size") } else { 0 };
        // The size behind a URL is known before the first byte is written.
        let download = if has(DOWNLOAD) && url.is_empty() { settings.number("download-size") } else { 0 };
        Ok(vec![Need::Space { bytes: overwrite.max(download), entries: 2 }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let groups = Group::all(session.settings())?;
        session.plan(groups.iter().map(|group| group.cells.len()).sum());
        leave_out(session, &groups);
        for group in groups {
            if session.has_taken(group.cells.iter().map(|(cell, _)| cell)) {
                continue;
            }
            let is_possible =
                |cell: &Cell| session.record().cell(&cell.name).is_none_or(|known| known.missing.is_none());
            let cells = group.cells.into_iter().filter(|(cell, _)| is_possible(cell)).collect();
            match group.operation {
                OVERWRITE => runs::overwrite(session, cells)?,
                _ => runs::download(session, group.rate, cells)?,
            }
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let of = |workload: &Workload| {
            let mut table = table::of_cells(record, &workload.title(), workload.cells(record));
            table.notes.extend(workload.note(record));
            table
        };
        let mut tables = vec![beside_published(record)];
        tables.extend(Workload::all(record).iter().map(of));
        tables.retain(|table| !table.is_empty());
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        for workload in Workload::all(record) {
            for (measure, what) in
                [("returned_s", "until the last write returned"), ("durable_s", "until durable")]
            {
                let title = format!("{}: {what}", workload.title());
                let cells = workload.cells(record);
                plots.push(Plot::strips(record, &title, measure, &workload.prefix(), cells));
            }
        }
        plots.retain(|plot| !plot.is_empty());
        plots
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }

    fn headline(&self, record: &Record) -> Headline {
        headlines::write(record)
    }
}

/// Leaves out the cells that can't be measured here.
fn leave_out(session: &mut Session<'_>, groups: &[Group]) {
    let ring = needs::ring().err();
    let has_direct = needs::has_direct_io(session.work());
    let dd = find_program("dd".as_ref());
    if let Some(program) = &dd {
        session.note_tool("dd", program);
    }
    let missing = |how: &SinkOptions| {
        if how.sink.needs_ring() && ring.is_some() {
            return ring.clone();
        }
        if how.sink.is_direct() && !has_direct {
            return Some("the work folder's filesystem has no direct I/O (O_DIRECT)".to_owned());
        }
        if how.sink == Sink::Dd && dd.is_none() {
            return Some("'dd' is not found on the PATH".to_owned());
        }
        how.too_many_blocks()
    };
    for (cell, how) in groups.iter().flat_map(|group| &group.cells) {
        if let Some(why) = missing(how) {
            session.leave_out(cell.clone(), &why);
        }
    }
}

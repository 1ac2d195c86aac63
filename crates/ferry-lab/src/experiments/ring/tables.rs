//! The tables and plots of `lab ring`, with document 002's figures where it states some.

use super::attribution::{self, ALL_RUNS, BY_IPI};
use super::names::{
    ALONE, COMPUTATION, COMPUTATIONS, LATENCY_MEAN, LATENCY_P99, PROCESS, READS, SEEN_DURING, SEEN_P50,
    SEEN_P99, groups, reading, watched,
};
use super::shares::{BESIDE, BUSY, READERS, USER, WAITED};
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record};
use crate::table::{Columns, Table, of_cells};
use crate::units::figure;
use crate::verdict::interval;

/// All tables that have something to show.
pub(super) fn all(record: &Record) -> Vec<Table> {
    let speeds = Record { measures: speeds(record), ..record.clone() };
    let mut tables: Vec<Table> = groups(record, "depth")
        .iter()
        .map(|depth| {
            let cells = reading(record).filter(|cell| cell.text("depth") == *depth);
            of_cells(&speeds, &format!("Depth {depth}"), cells)
        })
        .collect();
    tables.extend([coop(record), effects(record), of_processors(record)]);
    tables.extend(sightings(record));
    tables.extend(attribution::tables(record));
    tables.retain(|table| !table.is_empty());
    tables
}

/// Measures of the reads themselves.
fn speeds(record: &Record) -> Vec<Measure> {
    let names = [READS, LATENCY_MEAN, LATENCY_P99, COMPUTATIONS];
    names.iter().filter_map(|name| record.measure(name).cloned()).collect()
}

/// Rate, mean latency and 99th percentile of a cell, each divided by those of `base`.
fn ratios(record: &Record, base: &Cell, cell: &Cell) -> Option<Vec<String>> {
    let ratio = |measure: &&str| Some(interval(&record.ratio(base, cell, measure)?));
    [READS, LATENCY_MEAN, LATENCY_P99].iter().map(ratio).collect()
}

/// COOP relative to the plain ring under the same load: document 002's comparison.
fn coop(record: &Record) -> Table {
    let columns = ["depth/load", "reads a second", "mean latency", "99th percentile"];
    let mut table = Table::new("COOP relative to the plain ring", &columns);
    for cell in reading(record).filter(|cell| cell.text("mode") == "coop") {
        let (depth, load) = (cell.text("depth"), cell.text("load"));
        let plain = record.find(&[("depth", &depth), ("load", &load), ("mode", "plain")]);
        let name = format!("{depth}/{load}");
        if let Some(ratios) = plain.and_then(|plain| ratios(record, plain, cell)) {
            table.row([vec![name], ratios].concat());
        }
    }
    if !table.rows.is_empty() {
        let row = |words: [&str; 4]| words.map(str::to_owned).to_vec();
        table.row(row(["002: alone", "1.15-1.20", "below 1", "below 1"]));
        table.row(row(["002: process", "", "below 1", "below 1"]));
        let note = "Document 002 shows its latencies only in pictures, which were not preserved.";
        table.notes.push(note.to_owned());
    }
    table
}

/// Effect of each load on each mode, relative to the same mode without load.
pub(super) fn effects(record: &Record) -> Table {
    let columns = ["depth/load/mode", "reads a second", "mean latency", "99th percentile"];
    let mut table = Table::new("Effect of each load, relative to alone", &columns);
    for cell in reading(record).filter(|cell| cell.text("load") != ALONE) {
        let (depth, mode) = (cell.text("depth"), cell.text("mode"));
        let alone = record.find(&[("depth", &depth), ("load", ALONE), ("mode", &mode)]);
        if let Some(ratios) = alone.and_then(|alone| ratios(record, alone, cell)) {
            table.row([vec![cell.name.clone()], ratios].concat());
        }
    }
    table
}

/// Shares of the processors that explain the effects.
fn of_processors(record: &Record) -> Table {
    let columns = [
        ("readers ran", READERS),
        ("readers waited", WAITED),
        ("in user mode", USER),
        ("busy processes ran", BUSY),
        ("beside a reader", BESIDE),
    ];
    let mut table = Table::new("Shares of the processors", &["depth/load/mode"]);
    table.columns.extend(columns.iter().map(|(heading, _)| (*heading).to_owned()));
    for cell in reading(record) {
        let median = |name: &str| Some(figure(record.summary(cell, name)?.median.middle, "x"));
        let texts: Vec<Option<String>> = columns.iter().map(|(_, name)| median(name)).collect();
        if texts.iter().any(Option::is_some) {
            let texts = texts.into_iter().map(Option::unwrap_or_default);
            table.row(std::iter::once(cell.name.clone()).chain(texts).collect());
        }
    }
    if !table.rows.is_empty() {
        let of_each = "Ran: share of the processors' time. Waited: share of the readers' time in which they had no \
                       processor. In user mode: share of the readers' time on a processor. Beside a reader: share of \
                       the busy processes that ran on a reader's processor, and may run on no other.";
        table.notes.push(of_each.to_owned());
    }
    table
}

/// The time until another thread sees a completion.
fn sightings(record: &Record) -> Option<Table> {
    let cells: Vec<&Cell> = watched(record).collect();
    let first = record.measure(SEEN_P50).filter(|_| !cells.is_empty())?;
    let others = [SEEN_P99, SEEN_DURING].iter().filter_map(|name| record.measure(name)).collect();
    let title = "Time until another thread sees a completion, while the submitting thread computes";
    Some(Columns { first, others, last: None }.table(record, title, &cells))
}

/// A load in words.
fn words(load: &str) -> &'static str {
    match load {
        PROCESS => "beside a busy process",
        COMPUTATION => "computing in the same thread",
        _ => "nothing else running",
    }
}

/// All plots that have something to show.
pub(super) fn plots(record: &Record) -> Vec<Plot> {
    let mut plots = Vec::new();
    let depths = groups(record, "depth");
    let only = if let [depth] = &depths[..] { format!(" (depth {depth})") } else { String::new() };
    for load in groups(record, "load") {
        let words = words(&load);
        for (measure, what) in
            [(READS, "Reads"), (LATENCY_MEAN, "Mean latency"), (LATENCY_P99, "99th percentile")]
        {
            let cells = record.cells.iter().filter(|cell| cell.text("load") == load);
            let title = format!("{what}, {words}{only}");
            plots.push(Plot::lines(record, &title, measure, "depth", |cell| cell.text("mode"), cells));
        }
    }
    let title = "Time until another thread sees a completion";
    plots.push(Plot::strips(record, title, SEEN_P50, "1/watched/", watched(record)));
    for measure in [ALL_RUNS, BY_IPI] {
        let title = record.measure(measure).map(|known| known.about.clone()).unwrap_or_default();
        plots.push(Plot::strips(record, &title, measure, "", &record.cells));
    }
    plots.retain(|plot| !plot.is_empty());
    plots
}

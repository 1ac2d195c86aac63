//! The sinks' percentiles in the format of document 001, above the document's own.

use crate::published;
use crate::record::{Cell, Record};
use crate::statistics::percentile;
use crate::table::Table;
use crate::units::figure;

pub(super) const OVERWRITE: &str = "overwrite";
pub(super) const DOWNLOAD: &str = "download";

/// A row for each cell, with a row for the time until its last write was queued, and one for the document's figures
/// below the first cell of each sink.
pub(super) fn beside_published(record: &Record) -> Table {
    let columns = ["time until all was written", "n", "P0", "p50", "p90", "p100"];
    let mut table = Table::new("Document 001's table, here and as published", &columns);
    let mut shown = Vec::new();
    for cell in &record.cells {
        let Some(completed) = percentiles(cell, "returned_s") else { continue };
        table.row(named(&cell.name, completed));
        if let Some(queued) = percentiles(cell, "queued_s") {
            table.row(named("  until queued", queued));
        }
        let known = (cell.text("operation"), cell.text("sink"));
        if let Some(row) = published_row(&known.0, &known.1).filter(|_| !shown.contains(&known)) {
            table.row(named("  published", row));
        }
        shown.push(known);
    }
    table
}

fn named(name: &str, figures: Vec<String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(figures).collect()
}

/// The number of figures of a measure, and their percentiles as in the document.
fn percentiles(cell: &Cell, measure: &str) -> Option<Vec<String>> {
    let mut figures = cell.figures(measure);
    if figures.is_empty() {
        return None;
    }
    figures.sort_by(f64::total_cmp);
    let texts = [0, 500, 900, 1000].map(|permille| figure(percentile(&figures, permille), "s"));
    Some(std::iter::once(figures.len().to_string()).chain(texts).collect())
}

fn published_row(operation: &str, sink: &str) -> Option<Vec<String>> {
    let (title, row) = match (operation, sink) {
        (OVERWRITE, "dd") => ("Control: plain writes", "Overwrite (dd)"),
        (OVERWRITE, sink) => (title(sink)?, "Overwrite"),
        (DOWNLOAD, sink) => (title(sink)?, "Download"),
        _ => return None,
    };
    let known = published::of("write").find(|table| table.title == title)?;
    let (_, figures) = known.rows.iter().find(|(name, _)| *name == row)?;
    let texts = figures.iter().zip(known.units).map(|(value, unit)| value.map(|value| figure(value, unit)));
    Some(texts.map(Option::unwrap_or_default).collect())
}

fn title(sink: &str) -> Option<&'static str> {
    match sink {
        "control" => Some("Control: plain writes"),
        "direct" => Some("O_DIRECT"),
        "ring" => Some("io_uring"),
        _ => None,
    }
}

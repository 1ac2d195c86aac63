//! The sinks' percentiles in the format of document 001, beside the document's own.

use crate::published;
use crate::record::Record;
use crate::statistics::percentile;
use crate::table::Table;
use crate::units::figure;

pub(super) const OVERWRITE: &str = "overwrite";
pub(super) const DOWNLOAD: &str = "download";

pub(super) fn beside_published(record: &Record) -> Table {
    let columns = ["", "n", "P0", "p50", "p90", "p100", "published: n", "P0", "p50", "p90", "p100"];
    let mut table = Table::new("Document 001, here and as published (time until all was written)", &columns);
    for cell in &record.cells {
        let mut figures = cell.figures("returned_s");
        if figures.is_empty() {
            continue;
        }
        figures.sort_by(f64::total_cmp);
        let mut row = vec![cell.name.clone(), figures.len().to_string()];
        row.extend([0, 500, 900, 1000].map(|permille| figure(percentile(&figures, permille), "s")));
        match published_row(&cell.text("operation"), &cell.text("sink")) {
            Some(known) => row.extend(known),
            None => row.resize(columns.len(), String::new()),
        }
        table.row(row);
    }
    table
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

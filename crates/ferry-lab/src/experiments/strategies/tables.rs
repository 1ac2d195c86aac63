//! Tables that answer document 003's questions: which call copies bytes fastest, and one block in flight or several.

use super::cells::{group_of, groups};
use crate::record::{Cell, Record};
use crate::table::{Table, measured};
use crate::verdict::interval;

/// The tables that have something to show.
pub(super) fn all(record: &Record) -> impl Iterator<Item = Table> {
    let calls = groups(record).into_iter().map(|group| calls(record, &group));
    let tables: Vec<Table> = calls.chain([flow(record)]).collect();
    tables.into_iter().filter(|table| !table.is_empty())
}

/// Strategies that make one plain call after another, each beside reads and writes of the same block.
fn calls(record: &Record, group: &str) -> Table {
    let title =
        format!("Each call beside read(2) and write(2) of the same block ({})", group.replace('/', ", "));
    let mut table = Table::new(&title, &["strategy/block", "until it returned", "until durable"]);
    let is_plain = |cell: &&Cell| {
        let is_program = matches!(cell.text("strategy").as_str(), "cp" | "dd");
        group_of(cell) == group && cell.number("depth").is_none() && cell.base.is_some() && !is_program
    };
    for cell in record.cells.iter().filter(is_plain) {
        let ratio = |measure: &str| record.ratio_to_base(cell, measure).map(|its| interval(&its));
        if let (Some(returned), Some(durable)) = (ratio("returned_s"), ratio("durable_s")) {
            let name = cell.name.strip_prefix(&format!("{group}/")).unwrap_or(&cell.name);
            table.row(vec![name.to_owned(), returned, durable]);
        }
    }
    table
}

/// One block in flight and the largest number of them, on one file.
fn flow(record: &Record) -> Table {
    let columns = ["cache/block", "one", "several", "several / one", "published"];
    let mut table = Table::new("One block of one file in flight, and several", &columns);
    let is_flow = |cell: &&Cell| cell.text("files") == "one" && cell.text("strategy") == "ring-buffered";
    let cells: Vec<&Cell> = record.cells.iter().filter(is_flow).collect();
    for one in cells.iter().filter(|cell| cell.number("depth") == Some(1)) {
        let is_same = |cell: &&&Cell| ["cache", "block"].iter().all(|name| cell.text(name) == one.text(name));
        let several = cells.iter().filter(is_same).max_by_key(|cell| cell.number("depth"));
        let several = several.filter(|cell| cell.number("depth") > Some(1));
        let Some(ratio) = several.and_then(|several| record.ratio(one, several, "returned_s")) else {
            continue;
        };
        let time = |cell: &Cell| {
            let found = record.summary(cell, "returned_s");
            found.map(|found| measured(&found.median, "s")).unwrap_or_default()
        };
        table.row(vec![
            format!("{}/{}", one.text("cache"), one.text("block")),
            time(one),
            several.map(|cell| time(cell)).unwrap_or_default(),
            interval(&ratio),
            "0.62".to_owned(),
        ]);
    }
    if !table.rows.is_empty() {
        let note = "Several: the largest of --depths. Published: document 003's Flow.copy, before and after several \
                    blocks were in flight.";
        table.notes.push(note.to_owned());
    }
    table
}

//! A copier's share of the limit: the limit's time divided by the copier's, in the same rounds.

use super::groups;
use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::table::{self, Table};
use crate::units::figure;
use crate::verdict::{Verdict, interval};

/// Measure that decides.
pub(crate) const MEASURE: &str = "returned_s";
/// Share of the limit that a copy should reach.
pub(crate) const AIM: f64 = 0.97;

/// Returns the limit of a group: its limit program with the smallest median.
pub(crate) fn limit<'r>(record: &'r Record, group: &str) -> Option<&'r Cell> {
    let programs = record.cells.iter().filter(|cell| {
        !cell.text("limit").is_empty() && cell.missing.is_none() && groups::group_of(cell) == group
    });
    let timed = programs.filter_map(|cell| Some((cell, record.summary(cell, MEASURE)?.median.middle)));
    timed.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(cell, _)| cell)
}

/// Returns the share of the limit that a cell reaches.
pub(crate) fn share(record: &Record, limit: &Cell, cell: &Cell) -> Option<Interval> {
    record.ratio(cell, limit, MEASURE)
}

/// Table of a group; with a limit, each cell's share of it is the last column.
pub(in crate::experiments) fn table(record: &Record, group: &str, title: &str) -> Table {
    let cells = groups::cells_of(record, group);
    let mut table = table::of_cells(record, title, cells.clone());
    let Some(limit) = limit(record, group) else { return table };
    table.columns.push("of the limit".to_owned());
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.push(if cell.name == limit.name {
            "the limit".to_owned()
        } else {
            share(record, limit, cell).map(|share| interval(&share)).unwrap_or_default()
        });
    }
    table
}

/// Table of all groups' limits, and the shares of cp and ferry.
pub(in crate::experiments) fn limits(record: &Record) -> Option<Table> {
    let columns = ["", "fastest limit program", "its time", "cp", "ferry", "cp / limit", "ferry / limit"];
    let mut table = Table::new("Limits: speeds of cp and ferry divided by the limit's", &columns);
    for group in groups::of(record) {
        let Some(limit) = limit(record, &group) else { continue };
        let of = |tool: &str| groups::cells_of(record, &group).find(|cell| cell.text("tool") == tool);
        let time = |cell: Option<&Cell>| {
            let found = cell.and_then(|cell| record.summary(cell, MEASURE));
            found.map(|found| figure(found.median.middle, "s")).unwrap_or_default()
        };
        let reached = |tool: &str| {
            let share = of(tool).and_then(|cell| share(record, limit, cell));
            share.map(|share| interval(&share)).unwrap_or_default()
        };
        table.row(vec![
            groups::heading(record, &group),
            limit.text("limit"),
            time(Some(limit)),
            time(of("cp")),
            time(of("ferry")),
            reached("cp"),
            reached("ferry"),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// One verdict for each group that has limit programs.
pub(in crate::experiments) fn verdicts(record: &Record) -> Vec<Verdict> {
    let has_limits =
        |group: &String| groups::cells_of(record, group).any(|cell| !cell.text("limit").is_empty());
    let of_group = |group: String| {
        let ferry = groups::cells_of(record, &group).find(|cell| cell.text("tool") == "ferry");
        let reached = limit(record, &group).zip(ferry);
        Verdict::above(
            "",
            &format!("ferry cp reaches {AIM} of the limit ({})", group.replacen('/', ", ", 1)),
            reached.and_then(|(limit, ferry)| share(record, limit, ferry)),
            AIM,
            |share| format!("it reached {} of the speed of the fastest limit program", interval(share)),
        )
    };
    groups::of(record).into_iter().filter(has_limits).map(of_group).collect()
}

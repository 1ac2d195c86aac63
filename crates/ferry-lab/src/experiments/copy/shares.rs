//! A copier's share of the limit: the limit's time divided by the copier's, in the same rounds.

use super::groups;
use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::table::{Columns, Table};
use crate::units::figure;
use crate::verdict::{Verdict, interval, middle};

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

/// Table of a group; with a limit, each cell's share of it is the last column. Copiers of one tree move the same bytes,
/// so that their throughput says no more than their time, and has no column.
pub(in crate::experiments) fn table(record: &Record, group: &str, title: &str) -> Table {
    let cells: Vec<&Cell> = groups::cells_of(record, group).collect();
    let limit = limit(record, group);
    let share_of = |cell: &Cell| match limit {
        Some(limit) if limit.name == cell.name => "the limit".to_owned(),
        Some(limit) => share(record, limit, cell).map(|share| middle(&share)).unwrap_or_default(),
        None => String::new(),
    };
    let Some(mut columns) = Columns::of(record) else { return Table::new(title, &["cell"]) };
    if cells.iter().any(|cell| cell.base.is_some()) {
        columns.others.retain(|measure| measure.unit != "B/s");
    }
    columns.last = limit.map(|_| ("of the limit", &share_of as &dyn Fn(&Cell) -> String));
    columns.table(record, title, &cells)
}

/// Table of all groups' limits, and the shares of cp and ferry.
pub(in crate::experiments) fn limits(record: &Record) -> Option<Table> {
    let columns = ["", "fastest limit program", "its time", "cp / limit", "ferry / limit"];
    let mut table = Table::new("Limits: speeds of cp and ferry divided by the limit's", &columns);
    for group in groups::of(record) {
        let Some(limit) = limit(record, &group) else { continue };
        let time = record.summary(limit, MEASURE).map(|found| figure(found.median.middle, "s"));
        let reached = |tool: &str| {
            let cell = groups::cells_of(record, &group).find(|cell| cell.text("tool") == tool);
            let share = cell.and_then(|cell| share(record, limit, cell));
            share.map(|share| interval(&share)).unwrap_or_default()
        };
        table.row(vec![
            groups::heading(record, &group),
            limit.text("limit"),
            time.unwrap_or_default(),
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

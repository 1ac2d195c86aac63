//! Tables of a record's cells: a row for each cell with runs. [`not_measured`](super::not_measured) names the others.

use std::collections::BTreeSet;

use super::grid::{Table, measured};
use crate::record::{Cell, Measure, Record};
use crate::units::figure;
use crate::verdict::interval;

/// Cells that a note names before it counts the others.
const NAMED: usize = 4;

/// Text of a cell in a further column.
type Text<'c> = &'c dyn Fn(&Cell) -> String;

/// Columns of a table of cells.
pub struct Columns<'c> {
    /// Measure whose median has an interval and a ratio to the base.
    pub first: &'c Measure,
    /// Measures whose medians stand alone. Those without figures have no column.
    pub others: Vec<&'c Measure>,
    /// Heading and text of a last column.
    pub last: Option<(&'c str, Text<'c>)>,
}

/// A row for each cell, with its whole name.
#[must_use]
pub fn of_record(record: &Record) -> Table {
    let cells: Vec<&Cell> = record.cells.iter().collect();
    let title = "All cells";
    Columns::of(record)
        .map_or_else(|| Table::new(title, &["cell"]), |its| its.rows(record, title, &cells, ""))
}

/// A row for each of these cells. Their names lack what they share.
#[must_use]
pub fn of_cells<'r>(record: &Record, title: &str, cells: impl IntoIterator<Item = &'r Cell>) -> Table {
    let cells: Vec<&Cell> = cells.into_iter().collect();
    Columns::of(record).map_or_else(|| Table::new(title, &["cell"]), |its| its.table(record, title, &cells))
}

impl<'c> Columns<'c> {
    /// All measures of a record. `None` if it has none.
    #[must_use]
    pub fn of(record: &'c Record) -> Option<Self> {
        let (first, others) = record.measures.split_first()?;
        Some(Self { first, others: others.iter().collect(), last: None })
    }

    /// A row for each of these cells. Their names lack what they share.
    #[must_use]
    pub fn table(&self, record: &Record, title: &str, cells: &[&Cell]) -> Table {
        self.rows(record, title, cells, shared(cells))
    }

    fn rows(&self, record: &Record, title: &str, cells: &[&Cell], shared: &str) -> Table {
        let has_figures = |cell: &&Cell, measure: &Measure| !cell.figures(&measure.name).is_empty();
        let taken: Vec<&Cell> = cells.iter().copied().filter(|cell| !cell.runs.is_empty()).collect();
        let others = self.others.iter().copied();
        let others: Vec<&Measure> =
            others.filter(|measure| taken.iter().any(|cell| has_figures(cell, measure))).collect();
        let name = |name: &str| name.strip_prefix(shared).unwrap_or(name).to_owned();
        let is_whole = |cell: &&Cell| u64::try_from(cell.runs.len()) == Ok(record.runs);
        let counts_runs = !taken.iter().all(is_whole);
        let bases: BTreeSet<&str> = taken.iter().filter_map(|cell| cell.base.as_deref()).collect();

        let mut table = Table::new(title, &["cell"]);
        table.columns.extend(counts_runs.then(|| "runs".to_owned()));
        let is_enough =
            |cell: &&Cell| record.summary(cell, &self.first.name).is_some_and(|its| its.median.is_enough());
        let mark = if taken.iter().any(is_enough) { " (95 %)" } else { "" };
        table.columns.push(self.first.heading() + mark);
        table.columns.extend(match bases.iter().collect::<Vec<_>>()[..] {
            [] => None,
            [base] => Some(format!("times {}", name(base))),
            _ => Some("times the base".to_owned()),
        });
        table.columns.extend(others.iter().map(|measure| measure.heading()));
        table.columns.extend(self.last.iter().map(|(heading, _)| (*heading).to_owned()));
        for &cell in &taken {
            let mut row = vec![name(&cell.name)];
            row.extend(counts_runs.then(|| cell.runs.len().to_string()));
            let first = record.summary(cell, &self.first.name);
            row.push(first.map(|its| measured(&its.median, &self.first.unit)).unwrap_or_default());
            if !bases.is_empty() {
                let ratio = record.ratio_to_base(cell, &self.first.name);
                row.push(ratio.map(|ratio| interval(&ratio)).unwrap_or_default());
            }
            row.extend(others.iter().map(|measure| {
                let its = record.summary(cell, &measure.name);
                its.map(|its| figure(its.median.middle, &measure.unit)).unwrap_or_default()
            }));
            row.extend(self.last.iter().map(|(_, text)| text(cell)));
            table.row(row);
        }
        table
    }
}

/// Names the first cells and counts the others: `one, two, three, four and 3 more`.
pub(crate) fn listed(names: &[String]) -> String {
    match names.split_at_checked(NAMED) {
        Some((named, others)) if others.len() > 1 => {
            format!("{} and {} more", named.join(", "), others.len())
        }
        _ => names.join(", "),
    }
}

/// Returns the leading parameters that all names share, with the slash after them.
fn shared<'n>(cells: &[&'n Cell]) -> &'n str {
    let Some((&first, others)) = cells.split_first() else { return "" };
    let name: &'n str = &first.name;
    let starts = name.match_indices('/').map(move |(at, _)| &name[..=at]);
    let is_shared = |start: &&str| others.iter().all(|cell| cell.name.starts_with(*start));
    starts.rev().find(is_shared).unwrap_or_default()
}

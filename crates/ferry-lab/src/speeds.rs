//! Speeds of ferry and other copiers relative to cp, from records of `lab copy`: the table of docs/performance.md, and README's chart.
//!
//! Each tree in each cache state of a record is a row. The records must be finished, and of one machine, one build of
//! ferry and one cp, because their rows stand in one table. The text below the table names copiers without figures.

mod check;
mod label;
mod row;
mod text;

use std::path::Path;

use crate::error::Failure;
use crate::experiments::copy::{groups, shares};
use crate::plot::{Bar, Plot, PlotKind};
use crate::record::{Record, read};
use crate::table::Table;
use crate::units::figure;
use crate::verdict::interval;

use self::row::Row;

#[cfg(test)]
mod tests;

/// Speed of ferry divided by that of the best other copier that a copy should reach.
const AIM: f64 = 1.0;

/// Rows of records that belong together. There is at least one.
#[derive(Debug)]
pub struct Speeds {
    records: Vec<Record>,
    rows: Vec<Row>,
}

impl Speeds {
    /// Reads the records, in the order of the rows.
    ///
    /// # Errors
    /// If a record cannot be read, is not finished, or does not fit the others.
    pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Self, Failure> {
        let record = |path: &P| Ok((path.as_ref().display().to_string(), read::read(path.as_ref())?));
        Self::of(paths.iter().map(record).collect::<Result<_, Failure>>()?)
    }

    /// Takes the rows from records, each with its name.
    ///
    /// # Errors
    /// If a record is not finished or does not fit the others.
    pub fn of(records: Vec<(String, Record)>) -> Result<Self, Failure> {
        let Some(first) = records.first() else {
            return Err(Failure::Misuse("speeds need a record".to_owned()));
        };
        let mut rows: Vec<Row> = Vec::new();
        for named in &records {
            check::usable(&named.1).map_err(|why| check::refused(&named.0, &why))?;
            check::together(first, named).map_err(|why| check::refused(&named.0, &why))?;
            for group in groups::of(&named.1).iter().filter(|group| *group != "dd") {
                let row = Row::of(&named.1, group).map_err(|why| check::refused(&named.0, &why))?;
                if rows.iter().any(|known| known.label == row.label) {
                    let why = format!("another record has '{}', too", row.label);
                    return Err(check::refused(&named.0, &why));
                }
                rows.push(row);
            }
        }
        Ok(Self { records: records.into_iter().map(|(_, record)| record).collect(), rows })
    }

    /// Returns the table, and below it a text of at most ten lines.
    #[must_use]
    pub fn markdown(&self) -> String {
        let columns = ["copy", "cp", "ferry", "best other copier", "ferry / best other", "ferry / limit"];
        let mut table = Table::new("", &columns);
        for row in &self.rows {
            let limit = row.limit.as_ref().map(|limit| aimed(limit.reached.middle, shares::AIM));
            table.row(vec![
                row.name(),
                figure(row.cp_s, "s"),
                interval(&row.ferry),
                format!("{} {}", figure(row.best.speed, "x"), row.best.name),
                aimed(row.best.reached.middle, AIM),
                limit.unwrap_or_else(|| "not known".to_owned()),
            ]);
        }
        format!("{}\n{}", table.markdown_rows(), text::below(&self.records, &self.rows))
    }

    /// Returns the chart.
    #[must_use]
    pub fn plot(&self) -> Plot {
        let bar = |row: &Row| Bar {
            label: row.name(),
            ratio: row.ferry,
            marks: [Some(row.best.speed), row.limit.as_ref().map(|limit| limit.speed)],
        };
        let names = ["ferry", "best other copier", "limit of the machine"].map(str::to_owned);
        Plot {
            title: "Speed relative to GNU cp".to_owned(),
            measure: "speed relative to cp; more is faster".to_owned(),
            unit: "x".to_owned(),
            kind: PlotKind::Bars { names, bars: self.rows.iter().map(bar).collect() },
        }
    }
}

/// Formats a ratio, in bold if it misses its aim.
fn aimed(ratio: f64, aim: f64) -> String {
    let text = figure(ratio, "x");
    // Rounded as they are shown: 0.996 reaches 1.00.
    let hundredths = |value: f64| (value * 100.0).round();
    if hundredths(ratio) < hundredths(aim) { format!("**{text}**") } else { text }
}

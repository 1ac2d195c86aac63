//! Tables as text and as Markdown.

use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::units::figure;

#[cfg(test)]
mod tests;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Headings. The first column is text, the others are figures.
    pub columns: Vec<String>,
    /// Rows, each with a text for every column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Formats the table for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let widths = self.widths();
        let line = |cells: &[String]| {
            let mut out = String::new();
            for (index, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                let gap = if index == 0 { "" } else { "  " };
                out += &if index == 0 { format!("{cell}{padding}") } else { format!("{gap}{padding}{cell}") };
            }
            out.trim_end().to_owned() + "\n"
        };
        let mut out = format!("{}\n", self.title);
        out += &line(&self.columns);
        self.rows.iter().for_each(|row| out += &line(row));
        out
    }

    /// Formats the table as Markdown, below its title.
    #[must_use]
    pub fn markdown(&self) -> String {
        format!("### {}\n\n{}", self.title, self.markdown_rows())
    }

    /// Formats the table as Markdown without its title.
    #[must_use]
    pub fn markdown_rows(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> =
            (0..self.columns.len()).map(|index| if index == 0 { "---" } else { "---:" }.to_owned()).collect();
        let mut out = line(&self.columns) + &line(&rule);
        self.rows.iter().for_each(|row| out += &line(row));
        out
    }

    fn widths(&self) -> Vec<usize> {
        let width = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            cells.chain(self.columns.get(index)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.columns.len()).map(width).collect()
    }
}

/// A row for each cell: its runs, all statistics of the first measure, the medians of the others, and the ratio to its
/// base.
#[must_use]
pub fn of_record(record: &Record) -> Table {
    of_cells(record, "All cells", &record.cells)
}

/// As [`of_record`], for some of the cells.
#[must_use]
pub fn of_cells<'r>(record: &Record, title: &str, cells: impl IntoIterator<Item = &'r Cell>) -> Table {
    let Some((first, others)) = record.measures.split_first() else { return Table::new(title, &["cell"]) };
    let cells: Vec<&Cell> = cells.into_iter().collect();
    let with_base = cells.iter().any(|cell| cell.base.is_some());
    let mut table = Table::new(title, &["cell", "runs"]);
    table.columns.extend([first.heading(), "95 %".to_owned(), "least".to_owned(), "most".to_owned()]);
    if with_base {
        table.columns.push("times the base".to_owned());
    }
    table.columns.extend(others.iter().map(crate::record::Measure::heading));
    for cell in cells {
        let mut row = vec![cell.name.clone(), cell.runs.len().to_string()];
        let Some(summary) = record.summary(cell, &first.name) else {
            row.push(cell.missing.clone().unwrap_or_else(|| "not taken".to_owned()));
            row.resize(table.columns.len(), String::new());
            table.row(row);
            continue;
        };
        row.push(figure(summary.median.middle, &first.unit));
        row.push(between(&summary.median, &first.unit));
        row.extend([summary.min, summary.max].map(|value| figure(value, &first.unit)));
        if with_base {
            let ratio = record.ratio_to_base(cell, &first.name);
            row.push(ratio.map(|ratio| crate::verdict::interval(&ratio)).unwrap_or_default());
        }
        for measure in others {
            let summary = record.summary(cell, &measure.name);
            row.push(summary.map(|found| figure(found.median.middle, &measure.unit)).unwrap_or_default());
        }
        table.row(row);
    }
    table
}

/// Formats an interval: `70.1 to 73.4 ms`.
#[must_use]
pub fn between(interval: &Interval, unit: &str) -> String {
    let (low, high) = (figure(interval.low, unit), figure(interval.high, unit));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, low_unit)), Some((_, high_unit))) if low_unit == high_unit => {
            format!("{number} to {high}")
        }
        _ => format!("{low} to {high}"),
    }
}

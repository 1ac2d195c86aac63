//! Fits lines and tables to the width of the output.

use ferry_lab::table::Table;

use crate::layout::{self, Screen};
use crate::trace::figures::{Glyphs, bar, share};
use crate::units::count;

/// Fewest columns in which everything is shown.
const WIDE: usize = 60;
/// Fewest columns that text is fitted to.
const LEAST: usize = 40;
/// Columns of the longest bar, and of the shortest one that is worth drawing.
const BARS: (usize, usize) = (24, 6);
/// Columns between those of a table.
const GAP: usize = 2;
/// Stands for a space at which a line is not broken. Printed text has no control characters.
const GLUE: &str = "\u{1}";

/// The output's width and characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trace) struct Page {
    columns: usize,
    pub(super) glyphs: Glyphs,
}

impl Page {
    pub(in crate::trace) fn new(columns: usize, glyphs: Glyphs) -> Self {
        Self { columns: columns.max(LEAST), glyphs }
    }

    pub(in crate::trace) fn of_standard_output() -> Self {
        let screen = Screen::of(std::io::stdout()).unwrap_or(Screen::USUAL);
        Self::new(screen.columns, Glyphs::of_environment())
    }

    pub(super) fn columns(self) -> usize {
        self.columns
    }

    pub(super) fn is_wide(self) -> bool {
        self.columns >= WIDE
    }

    /// Breaks a text between words, and ends it with a line feed.
    pub(super) fn lines(self, text: &str) -> String {
        self.entry("", text)
    }

    /// Puts a text after `first`. All its lines begin in the same column.
    pub(super) fn entry(self, first: &str, text: &str) -> String {
        let indent = first.chars().count() + usize::from(!first.is_empty());
        layout::wrapped(first, text, indent, self.columns).replace(GLUE, " ") + "\n"
    }

    /// Formats one line, or several, for each name and its meaning.
    pub(super) fn legend(self, entries: &[(&str, &str)]) -> String {
        let longest = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 1;
        entries.iter().map(|(name, meaning)| self.entry(&format!("{name:<longest$}"), meaning)).collect()
    }

    /// Formats a table. One that is too wide loses the columns `less`, in that order, until it fits. Then the cells of
    /// its first column are cut.
    pub(super) fn table(self, table: &Table, less: &[usize]) -> String {
        let widest = |index: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(index)).chain(table.columns.get(index));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..table.columns.len()).map(widest).collect();
        let mut kept: Vec<usize> = (0..widths.len()).collect();
        let wide =
            |kept: &[usize]| kept.iter().map(|&index| widths[index] + GAP).sum::<usize>().saturating_sub(GAP);
        for column in less {
            if wide(&kept) <= self.columns {
                break;
            }
            kept.retain(|index| index != column);
        }
        let excess = wide(&kept).saturating_sub(self.columns);
        let room = widths.first().copied().unwrap_or(0).saturating_sub(excess).max(1);
        let fitted = |cells: &[String]| -> Vec<String> {
            let cells = kept.iter().filter_map(|&index| Some((index, cells.get(index)?)));
            cells.map(|(index, cell)| if index == 0 { self.cut(cell, room) } else { cell.clone() }).collect()
        };
        let rows = table.rows.iter().map(|row| fitted(row)).collect();
        let title = self.lines(&table.title).trim_end().to_owned();
        Table { title, columns: fitted(&table.columns), rows, ..Table::default() }.text()
    }

    /// Shortens a text at its end.
    fn cut(self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_owned();
        }
        let mark = self.glyphs.ellipsis();
        let kept: String = text.chars().take(width.saturating_sub(mark.chars().count())).collect();
        kept + mark
    }

    /// Formats a table of counts with shares and bars; empty if all counts are 0.
    pub(super) fn counts(self, title: &str, unit: &str, rows: &[(String, u64)]) -> String {
        let whole: u64 = rows.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n));
        if whole == 0 {
            return String::new();
        }
        let most = rows.iter().map(|(_, n)| *n).max().unwrap_or(0);
        let mut table = Table::new(title, &["", unit, "share"]);
        table.rows = rows.iter().map(|(name, n)| vec![name.clone(), count(*n), share(*n, whole)]).collect();
        let text = self.table(&table, &[2]);
        let lines: Vec<&str> = text.lines().collect();
        let (head, body) = lines.split_at(lines.len().saturating_sub(rows.len()));
        let used = body.iter().map(|line| line.chars().count()).max().unwrap_or(0) + GAP;
        let width = self.columns.saturating_sub(used).min(BARS.0);
        let mut out: String = head.iter().map(|line| format!("{line}\n")).collect();
        for (line, (_, n)) in body.iter().zip(rows) {
            let bar = if width < BARS.1 { String::new() } else { bar(*n, most, width, self.glyphs) };
            out += format!("{line}  {bar}").trim_end();
            out.push('\n');
        }
        out
    }
}

/// Marks a text that is not broken.
pub(super) fn whole(text: &str) -> String {
    text.replace(' ', GLUE)
}

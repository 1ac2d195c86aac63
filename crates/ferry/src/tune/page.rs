//! Abilities of standard output or a file: its number of columns, and block characters.

use ferry_lab::table::Table;

use crate::layout::{self, Screen};
use crate::output::columns;
use crate::quote::is_utf8_locale;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) columns: usize,
    /// False if only ASCII may be drawn.
    pub(super) has_blocks: bool,
}

impl Page {
    pub(super) fn of_standard_output() -> Self {
        Self { columns: columns(), has_blocks: is_utf8_locale() }
    }

    /// Abilities of a file.
    pub(super) fn of_file() -> Self {
        Self { columns: Screen::USUAL.columns, has_blocks: is_utf8_locale() }
    }

    /// Breaks a text between words. Lines after the first begin with `indent` spaces.
    pub(super) fn wrapped(self, text: &str, indent: usize) -> String {
        layout::wrapped("", text, indent, self.columns)
    }

    /// Formats a table whose columns are a name, a median, the lowest and the highest value, and the number of runs.
    /// The last columns are left out if the table does not fit.
    pub(super) fn table(self, table: &Table) -> String {
        let first = |count: usize| {
            let mut table = table.clone();
            table.columns.truncate(count);
            table.rows.iter_mut().for_each(|row| row.truncate(count));
            table.text()
        };
        let fits = |text: &String| text.lines().all(|line| line.chars().count() <= self.columns);
        [5, 4].into_iter().map(&first).find(fits).unwrap_or_else(|| first(2))
    }
}

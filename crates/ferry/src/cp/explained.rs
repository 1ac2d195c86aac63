//! `--explain`: counts files by the way in which their bytes were copied and the reason for it, and makes a table.

use std::collections::BTreeMap;

use ferry_copy::{Explained, Method};

use crate::layout::wrapped;
use crate::units::{bytes, count};

#[cfg(test)]
mod tests;

/// Fewest columns of a reason beside the figures; with less room it goes below them.
const LEAST: usize = 24;

/// Files and bytes by way and reason. Both come from fixed lists, so the size does not depend on the number of files.
#[derive(Debug, Default)]
pub(super) struct Ways(BTreeMap<(Method, &'static str), Amount>);

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    files: u64,
    bytes: u64,
}

impl Ways {
    pub(super) fn add(&mut self, explained: &Explained<'_>) {
        let amount = self.0.entry((explained.method, explained.why)).or_default();
        amount.files += 1;
        amount.bytes += explained.bytes;
    }

    /// Returns a table of at most `columns`, the most frequent way first; `None` if no bytes were to be copied.
    pub(super) fn table(&self, columns: usize) -> Option<String> {
        let mut ways: Vec<_> = self.0.iter().collect();
        if ways.is_empty() {
            return None;
        }
        ways.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.files));
        let heading = ["way", "files", "bytes", "reason"].map(str::to_owned);
        let row = |((method, why), amount): ((Method, &str), Amount)| {
            [method.name().to_owned(), count(amount.files), bytes(amount.bytes), why.to_owned()]
        };
        let rows = ways.into_iter().map(|(way, amount)| row((*way, *amount)));
        let rows: Vec<[String; 4]> = std::iter::once(heading).chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (way_width, files_width, bytes_width) = (width(0), width(1), width(2));
        let indent = way_width + files_width + bytes_width + 6;
        let lines = rows.iter().map(|[way, files, bytes, why]| {
            let figures = format!("{way:<way_width$}  {files:>files_width$}  {bytes:>bytes_width$}");
            if indent + LEAST <= columns {
                wrapped(&format!("{figures} "), why, indent, columns)
            } else {
                format!("{figures}\n{}", wrapped(" ", why, 2, columns))
            }
        });
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}

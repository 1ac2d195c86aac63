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
        let ways = self.0.iter();
        let rows = ways.map(|((method, why), amount)| (method.name(), amount.files, amount.bytes, *why));
        (!self.0.is_empty()).then(|| table(rows, columns))
    }
}

/// Returns a table of ways, with files, bytes and reason of each, in at most `columns`. The most frequent way is first.
pub(crate) fn table<'a>(rows: impl Iterator<Item = (&'a str, u64, u64, &'a str)>, columns: usize) -> String {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|&(_, files, ..)| std::cmp::Reverse(files));
    let heading = ["way", "files", "bytes", "reason"].map(str::to_owned);
    let rows = rows
        .into_iter()
        .map(|(way, files, size, why)| [way.to_owned(), count(files), bytes(size), why.to_owned()]);
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
    lines.collect::<Vec<_>>().join("\n")
}

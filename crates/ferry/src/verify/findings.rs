//! Differences that were found: their number by kind, and a sample of each kind. Their size does not depend on how many
//! there are.

use std::collections::{BTreeMap, BTreeSet};

use super::described::{Described, Kind};
use crate::layout::wrapped;
use crate::units::count;

#[cfg(test)]
mod tests;

/// Maximum number of differences of each kind that are kept, those with the first paths in byte order.
const SAMPLE: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Findings(BTreeMap<Kind, Group>);

#[derive(Debug, Default)]
struct Group {
    count: u64,
    sample: BTreeSet<Line>,
}

/// A difference in words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    path: Vec<u8>,
    quoted: String,
    message: String,
}

impl Findings {
    /// Counts a difference.
    pub(super) fn count(&mut self, kind: Kind) {
        self.0.entry(kind).or_default().count += 1;
    }

    /// Counts a difference, and keeps it as long as it belongs to the sample.
    pub(super) fn keep(&mut self, found: &impl Described) {
        let group = self.0.entry(found.kind()).or_default();
        group.count += 1;
        let is_full = group.sample.len() == SAMPLE;
        if is_full && group.sample.last().is_some_and(|last| last.path.as_slice() < found.path()) {
            return;
        }
        let (path, quoted, message) = (found.path().to_owned(), found.quoted_path(), found.message());
        group.sample.insert(Line { path, quoted, message });
        if group.sample.len() > SAMPLE {
            group.sample.pop_last();
        }
    }

    /// Returns the number of all differences.
    pub(super) fn total(&self) -> u64 {
        self.0.values().map(|group| group.count).sum()
    }

    pub(super) fn of(&self, kind: Kind) -> u64 {
        self.0.get(&kind).map_or(0, |group| group.count)
    }

    /// Returns the number of differences of each kind that there is.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.0.iter().map(|(kind, group)| (*kind, group.count))
    }

    /// Returns a paragraph for each kind with a sample.
    pub(super) fn paragraphs(&self, columns: usize) -> Vec<String> {
        let kept = self.0.iter().filter(|(_, group)| !group.sample.is_empty());
        kept.map(|(kind, group)| group.paragraph(*kind, columns)).collect()
    }
}

impl Group {
    fn paragraph(&self, kind: Kind, columns: usize) -> String {
        let mut lines = vec![format!("{}: {}", kind.name(), count(self.count))];
        let sample = self.sample.iter();
        lines.extend(
            sample.map(|Line { quoted, message, .. }| wrapped(&format!("  {quoted}:"), message, 6, columns)),
        );
        let rest = self.count.saturating_sub(u64::try_from(self.sample.len()).unwrap_or(u64::MAX));
        if rest > 0 {
            lines.push(format!("  and {} more (--all prints all)", count(rest)));
        }
        lines.join("\n")
    }
}

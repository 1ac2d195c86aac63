//! Assigns entries to parts so that each part has about the same number of entries and bytes.
//!
//! Totals are not known before the end. Entries that follow each other stay together in a *run*, so that a part works on few
//! folders. Each run goes to the part with the lowest cost so far. Runs grow with the cost so far, up to a bound.
//! So the costs of two parts differ by at most one run or one file.

use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// Cost of an entry beside its bytes, in bytes.
pub(super) const ENTRY: u64 = 128 << 10;

/// Cost of the shortest and the longest run.
const RUNS: [u64; 2] = [8 * ENTRY, 2_048 * ENTRY];

/// A run has at most this part of the mean cost of a part.
const SHARE: u64 = 32;

/// Costs of the parts.
#[derive(Debug)]
pub(super) struct Balance {
    costs: Vec<u64>,
    total: u64,
    /// Part that gets the run, and the rest of the run's cost.
    run: (usize, u64),
    /// Files with several names by device and inode number: their part, and the number of names that are still to be met.
    shared: HashMap<(u64, u64), (Option<usize>, u64)>,
}

/// A file with several names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    /// Device and inode number.
    pub(super) file: (u64, u64),
    /// Number of its names.
    pub(super) names: u64,
}

impl Balance {
    pub(super) fn new(parts: usize) -> Self {
        Self { costs: vec![0; parts.max(1)], total: 0, run: (0, 0), shared: HashMap::new() }
    }

    /// Returns the part for the next entry of the walk.
    pub(super) fn next(&mut self, bytes: u64) -> usize {
        if self.run.1 == 0 {
            let mean = self.total / self.costs.len() as u64;
            self.run = (self.cheapest(), (mean / SHARE).clamp(RUNS[0], RUNS[1]));
        }
        let (part, left) = self.run;
        let cost = bytes.saturating_add(ENTRY);
        self.run.1 = left.saturating_sub(cost);
        self.add(part, cost);
        part
    }

    /// Returns the part for a range of a file.
    pub(super) fn range(&mut self, bytes: u64) -> usize {
        let part = self.cheapest();
        self.add(part, bytes.saturating_add(ENTRY));
        part
    }

    /// Returns what was decided about an earlier name of a file, if there was one: its part, or `None` if it is copied in
    /// ranges.
    pub(super) fn earlier(&mut self, shared: Shared) -> Option<Option<usize>> {
        let (part, left) = self.shared.get_mut(&shared.file)?;
        let part = *part;
        *left -= 1;
        if *left == 0 {
            self.shared.remove(&shared.file);
        }
        if let Some(part) = part {
            self.add(part, ENTRY);
        }
        Some(part)
    }

    /// Notes what was decided about the first name of a file.
    pub(super) fn note(&mut self, shared: Shared, part: Option<usize>) {
        if shared.names > 1 {
            self.shared.insert(shared.file, (part, shared.names - 1));
        }
    }

    fn cheapest(&self) -> usize {
        let costs = self.costs.iter().enumerate();
        costs.min_by_key(|(_, cost)| **cost).map_or(0, |(part, _)| part)
    }

    fn add(&mut self, part: usize, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if let Some(sum) = self.costs.get_mut(part) {
            *sum = sum.saturating_add(cost);
        }
    }
}

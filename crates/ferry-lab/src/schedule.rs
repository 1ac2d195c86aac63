//! Order of the runs: each round takes every subject once, in random order.
//!
//! Interleaving spreads disturbances over all subjects, and the random order keeps one subject from always following
//! the same other one. The order depends on the seed and the round only, so that a resumed experiment continues in the
//! same order.

use std::time::Duration;

use ferry_tree::fill::{SplitMix64, derive};

#[cfg(test)]
mod tests;

/// Returns the order of `count` subjects in a round (Fisher and Yates).
#[must_use]
pub fn order(seed: u64, round: u64, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut numbers = SplitMix64::new(derive(seed, round));
    for last in (1..count).rev() {
        order.swap(last, numbers.index(last + 1));
    }
    order
}

/// Progress of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Current step.
    pub what: String,
    /// Runs taken, including those of earlier sessions.
    pub taken: u64,
    /// Total number of runs.
    pub planned: u64,
    /// Duration of this session.
    pub elapsed: Duration,
    /// Estimated remaining time, at the rate so far.
    pub left: Option<Duration>,
}

/// Estimates the remaining time for `missing` runs from `taken` runs in `elapsed`.
#[must_use]
pub fn left(elapsed: Duration, taken: u64, missing: u64) -> Option<Duration> {
    let milliseconds = (elapsed.as_millis() * u128::from(missing)).checked_div(u128::from(taken))?;
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

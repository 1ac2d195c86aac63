//! Who is taken when: rounds in which every subject is taken once, in an order of each round's own.
//!
//! Interleaving spreads whatever disturbs the machine over all subjects, and a random order keeps one from always
//! following the same other. The order follows from the printed seed and the round, so a resumed experiment goes on
//! in the order that it would have had.

use std::time::Duration;

use ferry_tree::fill::{SplitMix64, derive};

#[cfg(test)]
mod tests;

/// The order of `count` subjects in a round (Fisher and Yates).
#[must_use]
pub fn order(seed: u64, round: u64, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut numbers = SplitMix64::new(derive(seed, round));
    for last in (1..count).rev() {
        order.swap(last, numbers.index(last + 1));
    }
    order
}

/// How far an experiment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is being done now.
    pub what: String,
    /// Runs taken, those of an earlier session among them.
    pub taken: u64,
    /// Runs there will be.
    pub planned: u64,
    /// How long this session has run.
    pub elapsed: Duration,
    /// How long it will still run, if runs go on taking as long as they did.
    pub left: Option<Duration>,
}

/// Time left, after `taken` runs of this session took `elapsed`, and `missing` more are wanted.
#[must_use]
pub fn left(elapsed: Duration, taken: u64, missing: u64) -> Option<Duration> {
    let milliseconds = (elapsed.as_millis() * u128::from(missing)).checked_div(u128::from(taken))?;
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

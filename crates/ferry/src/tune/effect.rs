//! Describes in words how a profile changes later copies.

use std::num::NonZero;

use ferry_tune::Profile;

use crate::cp::profile_threads;
use crate::units::counted;

#[cfg(test)]
mod tests;

/// The number of cold reads that copies may have in flight, with a profile and without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    with: usize,
    without: usize,
    /// Reason why both are the same.
    reason: String,
}

impl Effect {
    /// Returns the effect of a profile on copies by this process.
    pub(super) fn here(profile: &Profile) -> Self {
        Self::of(profile, std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// Returns the effect of a profile on copies by so many workers.
    pub(super) fn of(profile: &Profile, workers: usize) -> Self {
        let without = ferry_io::Options::default().pool_threads;
        let Some(direct) = &profile.direct else {
            return Self {
                with: without,
                without,
                reason: "the profile has no figures for direct reads".to_owned(),
            };
        };
        let enough = usize::try_from(direct.enough_depth).unwrap_or(usize::MAX);
        let reason = if enough <= without {
            format!("up to {without} cold reads are in flight, and a depth of {enough} is enough")
        } else {
            let workers = counted(u64::try_from(workers).unwrap_or(u64::MAX), "processor", "processors");
            format!("up to {without} cold reads are in flight, the most for {workers}")
        };
        Self { with: profile_threads(direct, workers), without, reason }
    }

    /// Returns true if copies are the same with the profile and without.
    pub(super) fn is_none(&self) -> bool {
        self.with == self.without
    }

    /// Completes a sentence that begins with "copies from this filesystem".
    pub(super) fn words(&self) -> String {
        if self.is_none() {
            format!("run as without a profile: {}", self.reason)
        } else {
            format!("have up to {} cold reads in flight, not {}", self.with, self.without)
        }
    }
}

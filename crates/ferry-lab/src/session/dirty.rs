//! Whether a run wrote more than may wait in memory, so that from there on it was as fast as the device.

use crate::units::{figure, real};
use crate::warnings::{Kind, Warning};

/// The kernel's counters of written pages (/proc/vmstat).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dirty {
    /// Pages written since the machine started.
    dirtied: u64,
    /// From here on writers are held back to the device's speed: the middle of both thresholds.
    limit: u64,
}

impl Dirty {
    /// Reads the counters.
    pub(super) fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/vmstat").unwrap_or_default())
    }

    pub(super) fn parse(text: &str) -> Self {
        let number = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0)
        };
        let limit = u64::midpoint(number("nr_dirty_threshold"), number("nr_dirty_background_threshold"));
        Self { dirtied: number("nr_dirtied"), limit }
    }

    /// What to say if more was written since `before` than may wait.
    pub(super) fn warning_since(&self, before: &Self) -> Option<Warning> {
        let written = self.dirtied.saturating_sub(before.dirtied);
        if written <= self.limit || self.limit == 0 {
            return None;
        }
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let limit = figure(real(self.limit * page), "B");
        Some(Warning::note(
            Kind::DirtyThrottling,
            format!("a run writes more than the {limit} that may wait in memory"),
            "its end is as fast as the device; compare the durable times, or a smaller tree",
        ))
    }
}

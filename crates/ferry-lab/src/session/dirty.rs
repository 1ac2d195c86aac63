//! Detects runs that wrote more than the kernel lets wait in memory, and so ran at the device's speed.

use crate::record::warning::{Warning, WarningKind};
use crate::units::{figure, real};

#[cfg(test)]
mod tests;

/// Counters of written pages (/proc/vmstat).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dirty {
    /// Pages written since boot.
    dirtied: u64,
    /// Number of dirty pages from which the kernel throttles writers: the middle of both thresholds.
    limit: u64,
}

impl Dirty {
    /// Reads the counters.
    pub(super) fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/vmstat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let number = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0)
        };
        let limit = u64::midpoint(number("nr_dirty_threshold"), number("nr_dirty_background_threshold"));
        Self { dirtied: number("nr_dirtied"), limit }
    }

    /// Returns a warning if more pages were written since `before` than the limit.
    pub(super) fn warning_since(&self, before: &Self) -> Option<Warning> {
        let written = self.dirtied.saturating_sub(before.dirtied);
        if written <= self.limit || self.limit == 0 {
            return None;
        }
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let limit = figure(real(self.limit * page), "B");
        Some(Warning::note(
            WarningKind::DirtyThrottling,
            format!("a run writes more than the {limit} that may wait in memory"),
            "its end is as fast as the device; compare the durable times, or a smaller tree",
        ))
    }
}

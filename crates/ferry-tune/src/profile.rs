//! A mount's figures.

mod date;
mod format;
mod identity;
mod sanity;
mod stale;
pub mod store;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use date::age_seconds;
pub use format::Malformed;
pub use identity::kernel;

/// The version of the format that this program writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// A measured figure: median, least and most of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// How many were taken.
    pub runs: u32,
}

impl Figure {
    /// Of these samples, to five digits; `None` of none, or if one is not a number.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        if sorted.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median = match middle.checked_sub(1) {
            Some(before) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[before], upper),
            _ => upper,
        };
        let runs = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
        Some(Self {
            median: rounded(median),
            low: rounded(*sorted.first()?),
            high: rounded(*sorted.last()?),
            runs,
        })
    }
}

/// Five digits of it: no run repeats more.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// What was measured of one mount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`VERSION`].
    pub version: u32,
    /// By what and when.
    pub about: About,
    /// Where.
    pub place: Place,
    /// Files opened with O_DIRECT; none if the filesystem refuses that.
    pub direct: Option<Direct>,
    /// What calls cost.
    pub calls: Calls,
    /// What the filesystem has.
    pub can: Can,
    /// How the kernel ran operations that were queued in a ring: `inline`, `ring`, `worker`, `worker, one at a time`. Empty
    /// without io_uring, or where it can't be observed.
    pub handed_over: BTreeMap<String, String>,
}

/// By what and when it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The program and its version: `ferry 0.1.0`.
    pub tool: String,
    /// The kernel's release.
    pub kernel: String,
    /// When: RFC 3339, UTC.
    pub date: String,
    /// Whether it was `ferry tune --quick`.
    pub quick: bool,
    /// Processors that might be used.
    pub processors: u32,
}

/// Which filesystem, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its type: `ext4`.
    pub filesystem: String,
    /// Its UUID, or where it has none, its type and what is mounted.
    pub identity: String,
    /// What is mounted: `/dev/vda1`.
    pub source: String,
    /// The device's model and size.
    pub device: String,
    /// Mount options.
    pub options: String,
}

/// What files opened with O_DIRECT reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direct {
    /// MB/s.
    pub sequential_read: Figure,
    /// MB/s.
    pub sequential_write: Figure,
    /// 4 KiB a time, [`Self::enough_depth`] in flight: each second.
    pub random_read: Figure,
    /// The same, written.
    pub random_write: Figure,
    /// Random reads by how many are in flight, fewest first.
    pub depths: Vec<Depth>,
    /// The depth beyond which more in flight buys nothing: one of `depths`.
    pub enough_depth: u32,
    /// Sequential reads by the size of each, smallest first.
    pub blocks: Vec<Block>,
    /// The best of `blocks`, in bytes.
    pub best_block: u64,
}

/// Random reads with so many in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// How many.
    pub depth: u32,
    /// Reads a second.
    pub iops: Figure,
}

/// Sequential reads of so many bytes each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// How many.
    pub bytes: u64,
    /// MB/s.
    pub mb_per_s: Figure,
}

/// What calls cost, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// An empty file made by a plain call.
    pub inline_create: Figure,
    /// What a ring adds to a request that completes at once; none without io_uring.
    pub ring_hand_over: Option<Figure>,
    /// What a thread of the pool adds.
    pub pool_hand_over: Figure,
}

/// What the filesystem has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Can {
    /// FICLONE.
    pub reflink: bool,
    /// RWF_DONTCACHE.
    pub dontcache: bool,
    /// Of memory, for O_DIRECT, in bytes, if the kernel says (STATX_DIOALIGN).
    pub direct_memory_alignment: Option<u32>,
    /// Of offsets and sizes.
    pub direct_offset_alignment: Option<u32>,
}

#[cfg(test)]
mod tests;

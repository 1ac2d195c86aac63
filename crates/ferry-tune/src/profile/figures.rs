//! Figures of a mount, as a profile holds them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum length of a text in characters.
pub(super) const LONGEST_TEXT: usize = 1000;
/// Version of the format that this program reads and writes.
pub const VERSION: u32 = 1;

/// Median, minimum and maximum of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub low: f64,
    /// Maximum.
    pub high: f64,
    /// Number of runs.
    pub runs: u32,
}

impl Figure {
    /// Returns the figure of these samples, to five digits; `None` without samples or if one is not a number.
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

/// Rounds to five digits: measurements are not more precise.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Figures of one mount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`VERSION`].
    pub version: u32,
    /// Origin of the measurement.
    pub about: About,
    /// Filesystem that was measured.
    pub place: Place,
    /// Files opened with O_DIRECT; `None` if the filesystem refuses O_DIRECT.
    pub direct: Option<Direct>,
    /// Cost of calls.
    pub calls: Calls,
    /// Features of the filesystem.
    pub can: Can,
    /// Execution by the kernel of each operation that was queued in a ring: `inline`, `ring`, `worker` or `worker, one
    /// at a time`. Empty without io_uring or without permission to trace.
    pub handed_over: BTreeMap<String, String>,
}

/// Origin of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Program and version: `ferry 0.1.0`.
    pub tool: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Date in RFC 3339, UTC.
    pub date: String,
    /// True for `ferry tune --quick`.
    pub quick: bool,
    /// Number of processors available to the process.
    pub processors: u32,
}

/// Identity of a filesystem and its device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Type of the filesystem: `ext4`.
    pub filesystem: String,
    /// UUID, or type and source where there is no UUID.
    pub identity: String,
    /// Mounted source: `/dev/vda1`.
    pub source: String,
    /// Model and size of the device.
    pub device: String,
    /// Mount options.
    pub options: String,
}

/// Throughput of files opened with O_DIRECT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direct {
    /// MB/s.
    pub sequential_read: Figure,
    /// MB/s.
    pub sequential_write: Figure,
    /// Reads of 4 KiB a second with [`Self::enough_depth`] in flight.
    pub random_read: Figure,
    /// Writes of 4 KiB a second with [`Self::enough_depth`] in flight.
    pub random_write: Figure,
    /// Random reads by depth, ascending.
    pub depths: Vec<Depth>,
    /// Smallest of `depths` beyond which the rate no longer rises.
    pub enough_depth: u32,
    /// Sequential reads by request size, ascending.
    pub blocks: Vec<Block>,
    /// Best request size of `blocks`, in bytes.
    pub best_block: u64,
}

/// Random reads at one depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// Requests in flight.
    pub depth: u32,
    /// Reads a second.
    pub iops: Figure,
}

/// Sequential reads with one request size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Request size in bytes.
    pub bytes: u64,
    /// MB/s.
    pub mb_per_s: Figure,
}

/// Cost of calls in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Creation of an empty file by a plain call.
    pub inline_create: Figure,
    /// Added by a ring to a request that completes at once; `None` without io_uring.
    pub ring_hand_over: Option<Figure>,
    /// Added by a pool thread.
    pub pool_hand_over: Figure,
}

/// Features of a filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Can {
    /// Support of FICLONE.
    pub reflink: bool,
    /// Support of RWF_DONTCACHE.
    pub dontcache: bool,
    /// Alignment of memory for O_DIRECT in bytes, if the kernel reports it (STATX_DIOALIGN).
    pub direct_memory_alignment: Option<u32>,
    /// Alignment of offsets and sizes for O_DIRECT in bytes, if the kernel reports it.
    pub direct_offset_alignment: Option<u32>,
}

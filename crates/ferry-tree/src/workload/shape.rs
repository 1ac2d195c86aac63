//! Shapes of trees: folders, files and the distribution of their sizes.

use crate::fill::SplitMix64;
use serde::{Deserialize, Serialize};

/// Distribution of file sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// One size.
    Fixed(u64),
    /// Uniform distribution from `least` to `most`.
    Uniform {
        /// Smallest size.
        least: u64,
        /// Largest size.
        most: u64,
    },
    /// Approximately log-normal distribution, as in real trees: many small files, few large ones.
    LogNormal {
        /// Median size.
        median: u64,
        /// Standard deviation in hundredths of a doubling. At 200, about one file in six is more than four times
        /// the median.
        deviation_percent: u64,
        /// Largest size.
        most: u64,
    },
}

impl Sizes {
    pub(super) fn draw(self, numbers: &mut SplitMix64) -> u64 {
        match self {
            Self::Fixed(size) => size,
            Self::Uniform { least, most } => least + numbers.below(most.saturating_sub(least) + 1),
            Self::LogNormal { median, deviation_percent, most } => {
                log_normal(median, deviation_percent, numbers).min(most)
            }
        }
    }
}

impl Sizes {
    pub(super) fn mean(self) -> u64 {
        match self {
            Self::Fixed(size) => size,
            Self::Uniform { least, most } => least.midpoint(most),
            Self::LogNormal { median, deviation_percent, most } => {
                // The mean of a log-normal distribution is its median times e^(σ²/2), with σ in units of ln 2; 3466
                // is ln 2 / 2.
                let exponent =
                    deviation_percent.saturating_mul(deviation_percent).saturating_mul(1024 * 3466);
                let exponent = exponent / 100_000_000;
                let whole = u32::try_from(exponent / 1024).unwrap_or(u32::MAX);
                let factor = 1024 + exponent % 1024;
                let scaled = median.saturating_mul(factor) / 1024;
                scaled.saturating_mul(1_u64.checked_shl(whole).unwrap_or(u64::MAX)).min(most)
            }
        }
    }
}

/// Draws a log-normal number with integers only, so that it is the same on every machine. Twelve uniform numbers of
/// deviation 1/√12 add up to an approximately normal one of deviation 1, here in 1,024ths. 2^x is taken as 1+x
/// between powers, which is at most 6 % too large.
fn log_normal(median: u64, deviation_percent: u64, numbers: &mut SplitMix64) -> u64 {
    let sum: u64 = (0..12).map(|_| numbers.below(1025)).sum();
    let (larger, distance) = (sum >= 6144, sum.abs_diff(6144));
    let doublings = distance * deviation_percent / 100;
    let (whole, part) = (u32::try_from(doublings / 1024).unwrap_or(u32::MAX), doublings % 1024);
    let factor = 1024 + part;
    if larger {
        (median.saturating_mul(factor) / 1024).saturating_mul(1_u64.checked_shl(whole).unwrap_or(u64::MAX))
    } else {
        (median.saturating_mul(1024) / factor).checked_shr(whole).unwrap_or(0)
    }
}

/// Shape of a tree: folders `d0`, `d1` … with files `f0`, `f1` ….
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Folders in each folder.
    pub fanout: u64,
    /// Levels of folders beneath the root.
    pub depth: u64,
    /// Entries other than folders in each folder.
    pub files: u64,
    /// True if only the deepest folders hold files.
    pub leaves_only: bool,
    /// Number of deepest folders, from the first on, that hold one file more.
    pub extra_files: u64,
    /// Distribution of file sizes.
    pub sizes: Sizes,
    /// Percentage of files that are symbolic links to the previous file.
    pub symlink_percent: u64,
    /// Percentage of files that are another name of the previous file.
    pub hard_link_percent: u64,
    /// Percentage of files of 64 KiB and more whose middle third is a hole.
    pub sparse_percent: u64,
    /// Seed of all contents, sizes and choices.
    pub seed: u64,
}

impl Workload {
    /// A tree of regular files of one size.
    #[must_use]
    pub fn plain(fanout: u64, depth: u64, files: u64, size: u64, seed: u64) -> Self {
        Self {
            fanout,
            depth,
            files,
            leaves_only: false,
            extra_files: 0,
            sizes: Sizes::Fixed(size),
            symlink_percent: 0,
            hard_link_percent: 0,
            sparse_percent: 0,
            seed,
        }
    }

    /// Number of folders, including the root.
    #[must_use]
    pub fn folder_count(&self) -> u64 {
        let levels = std::iter::successors(Some(1_u64), |count| Some(count.saturating_mul(self.fanout)));
        let depth = usize::try_from(self.depth).unwrap_or(usize::MAX);
        levels.take(depth.saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// Approximate total size of all files in bytes.
    #[must_use]
    pub fn expected_bytes(&self) -> u64 {
        self.file_count().saturating_mul(self.sizes.mean())
    }

    /// Number of entries other than folders.
    #[must_use]
    pub fn file_count(&self) -> u64 {
        let depth = u32::try_from(self.depth).unwrap_or(u32::MAX);
        let leaves = self.fanout.saturating_pow(depth);
        let holders = if self.leaves_only { leaves } else { self.folder_count() };
        holders.saturating_mul(self.files).saturating_add(self.extra_files.min(leaves))
    }
}

//! Named trees of the measurements.

use super::shape::{Sizes, Workload};
use crate::quote::Quoted;
use std::str::FromStr;

/// A named tree. As text: its name in lower case, with parameters behind colons (`deep:5000`, `empty:100000:100`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// 3,905 files of 4 KiB in 781 folders.
    Small,
    /// 117,649 files of 4 KiB in the deepest of 19,608 folders.
    Wide,
    /// 780 files of 1 MiB in 156 folders.
    Large,
    /// 3,905 files of 1 MiB in 781 folders.
    Large3905,
    /// One file.
    Huge {
        /// Size in MiB.
        mebibytes: u64,
    },
    /// Three files of 4 KiB in one folder.
    Three,
    /// 50,000 files of 0 to 3 KiB in one folder.
    Flat,
    /// Nested folders with a file of 100 bytes in each.
    Deep {
        /// Levels beneath the root.
        levels: u64,
    },
    /// 4,092 entries in 341 folders: files of 0 to 64 MiB, links, and holes.
    Mixed,
    /// Empty files in the folders of one level.
    Empty {
        /// Number of files.
        files: u64,
        /// Number of folders.
        folders: u64,
    },
}

/// Largest file of `huge`, in MiB: 16 TiB.
const MOST_MEBIBYTES: u64 = 16 << 20;

/// The text is not the name of a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is none of small, wide, large, large-3905, huge[:MIB], three, flat, deep[:LEVELS], mixed, empty[:FILES[:FOLDERS]]", Quoted(.0.as_bytes()))]
pub struct UnknownPreset(String);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        let unknown = || UnknownPreset(text.to_owned());
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers: Result<Vec<u64>, _> = parts.map(str::parse).collect();
        let numbers = numbers.map_err(|_| unknown())?;
        match (name, numbers.as_slice()) {
            ("small", []) => Ok(Self::Small),
            ("wide", []) => Ok(Self::Wide),
            ("large", []) => Ok(Self::Large),
            ("large-3905", []) => Ok(Self::Large3905),
            ("huge", []) => Ok(Self::Huge { mebibytes: 2048 }),
            ("huge", [mebibytes]) if *mebibytes <= MOST_MEBIBYTES => Ok(Self::Huge { mebibytes: *mebibytes }),
            ("three", []) => Ok(Self::Three),
            ("flat", []) => Ok(Self::Flat),
            ("mixed", []) => Ok(Self::Mixed),
            ("deep", []) => Ok(Self::Deep { levels: 2000 }),
            ("deep", [levels]) => Ok(Self::Deep { levels: *levels }),
            ("empty", []) => Ok(Self::Empty { files: 100_000, folders: 100 }),
            ("empty", [files]) => Ok(Self::Empty { files: *files, folders: 100 }),
            ("empty", [files, folders]) if *folders > 0 => {
                Ok(Self::Empty { files: *files, folders: *folders })
            }
            _ => Err(unknown()),
        }
    }
}

impl Preset {
    /// Returns the tree of this name with contents made from `seed`.
    #[must_use]
    pub fn workload(self, seed: u64) -> Workload {
        match self {
            Self::Small => Workload::plain(5, 4, 5, 4096, seed),
            Self::Wide => Workload { leaves_only: true, ..Workload::plain(7, 5, 7, 4096, seed) },
            Self::Large => Workload::plain(5, 3, 5, 1 << 20, seed),
            Self::Large3905 => Workload::plain(5, 4, 5, 1 << 20, seed),
            Self::Huge { mebibytes } => Workload::plain(0, 0, 1, mebibytes << 20, seed),
            Self::Three => Workload::plain(0, 0, 3, 4096, seed),
            Self::Flat => {
                let sizes = Sizes::Uniform { least: 0, most: 3072 };
                Workload { sizes, ..Workload::plain(0, 0, 50_000, 0, seed) }
            }
            Self::Deep { levels } => Workload::plain(1, levels, 1, 100, seed),
            Self::Mixed => Workload {
                sizes: Sizes::LogNormal { median: 8192, deviation_percent: 250, most: 64 << 20 },
                symlink_percent: 5,
                hard_link_percent: 5,
                sparse_percent: 20,
                ..Workload::plain(4, 4, 12, 0, seed)
            },
            Self::Empty { files, folders } => {
                let folders = folders.max(1);
                let shape = Workload::plain(folders, 1, files / folders, 0, seed);
                Workload { leaves_only: true, extra_files: files % folders, ..shape }
            }
        }
    }
}

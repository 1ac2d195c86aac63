//! The machine: kernel, processors, memory, and the filesystem that is measured.
//!
//! Read from /proc and /sys. Values that cannot be read stay empty; none is guessed.

mod mounts;
mod place;
mod processor;
mod read;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use mounts::mount_points;
pub use place::{Device, Filesystem};
pub use processor::{Processor, Ticks};
use read::line;

#[cfg(test)]
mod tests;

/// Machine of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Release of the kernel: `6.18.0`.
    pub kernel: String,
    /// Version of the kernel (/proc/version).
    pub kernel_version: String,
    /// Processors, and how many of them this process may use.
    pub processor: Processor,
    /// Its memory.
    pub memory: Memory,
    /// Filesystem that holds the experiment's files.
    pub place: Filesystem,
}

/// The memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Total size.
    pub total_bytes: u64,
    /// Available size when the experiment began.
    pub available_bytes: u64,
    /// Limit of a cgroup, if it is smaller.
    pub limit_bytes: Option<u64>,
}

impl Machine {
    /// Reads the facts of this machine and of the filesystem that holds `folder`.
    #[must_use]
    pub fn look(folder: &Path) -> Self {
        Self {
            kernel: line("/proc/sys/kernel/osrelease"),
            kernel_version: line("/proc/version"),
            processor: Processor::look(),
            memory: Memory::look(),
            place: Filesystem::look(folder),
        }
    }

    /// Returns the machine without the facts that vary from hour to hour.
    #[must_use]
    pub fn lasting(&self) -> Self {
        let memory = Memory { available_bytes: 0, ..self.memory.clone() };
        Self { memory, ..self.clone() }
    }
}

/// Returns the memory that the cgroups of this process leave it; `None` without a limit.
pub(crate) fn memory_room() -> Option<u64> {
    let number = |path: PathBuf| line(path).parse::<u64>().ok();
    let room = |folder: PathBuf| {
        let of = |limit: &str, used: &str| {
            Some(number(folder.join(limit))?.saturating_sub(number(folder.join(used))?))
        };
        of("memory.max", "memory.current").or_else(|| of("memory.limit_in_bytes", "memory.usage_in_bytes"))
    };
    processor::cgroup_folders("memory").into_iter().filter_map(room).min()
}

impl Memory {
    fn look() -> Self {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kilobytes = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        };
        let total_bytes = kilobytes("MemTotal") * 1024;
        let limits = processor::cgroup_folders("memory")
            .into_iter()
            .flat_map(|folder| ["memory.max", "memory.limit_in_bytes"].map(|name| line(folder.join(name))));
        let limit = limits.filter_map(|text| text.parse().ok()).min();
        let limit_bytes = limit.filter(|bytes| *bytes < total_bytes);
        Self { total_bytes, available_bytes: kilobytes("MemAvailable") * 1024, limit_bytes }
    }
}

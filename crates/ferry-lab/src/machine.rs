//! The machine as far as it explains figures: kernel, processors, memory, and the filesystem that is measured on.
//!
//! Read from /proc and /sys; what can't be read is left out, never guessed.

mod device;
mod place;
mod processor;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use device::Device;
pub use place::{Place, mount_points};
pub use processor::{Processor, Ticks};

#[cfg(test)]
mod tests;

/// What an experiment ran on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The kernel's release: `6.18.0`.
    pub kernel: String,
    /// How the kernel calls itself (/proc/version).
    pub kernel_version: String,
    /// Its processors, and how many of them may be used.
    pub processor: Processor,
    /// Its memory.
    pub memory: Memory,
    /// Where the experiment's files were.
    pub place: Place,
}

/// The memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// All of it.
    pub total_bytes: u64,
    /// What could be used when the experiment began.
    pub available_bytes: u64,
    /// What a cgroup allows, if it is less.
    pub limit_bytes: Option<u64>,
}

impl Machine {
    /// Looks at this machine, and at the filesystem that holds `folder`.
    #[must_use]
    pub fn look(folder: &Path) -> Self {
        Self {
            kernel: line("/proc/sys/kernel/osrelease"),
            kernel_version: line("/proc/version"),
            processor: Processor::look(),
            memory: Memory::look(),
            place: Place::look(folder),
        }
    }
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

/// A file's first line, or nothing.
fn line(path: impl AsRef<Path>) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

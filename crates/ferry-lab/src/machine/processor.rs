//! Processors: which, how many, and how many of them this process may use.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::read::line;

/// The processors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// The model's name.
    pub model: String,
    /// Number of online processors.
    pub count: u64,
    /// Number of processors in the affinity mask.
    pub usable: u64,
    /// Which: `0-3,8`.
    pub affinity: String,
    /// Limit by a cgroup's quota, in percent of one processor.
    pub quota_percent: Option<u64>,
    /// True if the kernel runs under a hypervisor.
    pub virtualised: bool,
}

impl Processor {
    pub(super) fn look() -> Self {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |key: &str| {
            let is_key = |line: &&str| line.split(':').next().is_some_and(|name| name.trim() == key);
            let found = text.lines().find(is_key).and_then(|line| line.split_once(':'));
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let affinity = allowed.unwrap_or_default().trim().to_owned();
        Self {
            model: field("model name"),
            count: count(&line("/sys/devices/system/cpu/online")),
            usable: count(&affinity),
            affinity,
            quota_percent: quota_percent(),
            virtualised: field("flags").split(' ').any(|flag| flag == "hypervisor"),
        }
    }
}

/// Counts the numbers in a list such as `0-3,8`.
pub(super) fn count(list: &str) -> u64 {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.saturating_sub(first) + 1)
    };
    list.split(',').filter_map(part).sum()
}

fn quota_percent() -> Option<u64> {
    let folders = cgroup_folders("cpu");
    folders
        .iter()
        .filter_map(|folder| quota(&line(folder.join("cpu.max"))).or_else(|| first_version(folder)))
        .min()
}

/// `50000 100000` of cpu.max is 50 %.
pub(super) fn quota(text: &str) -> Option<u64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota * 100).checked_div(period)
}

fn first_version(folder: &Path) -> Option<u64> {
    let number = |name: &str| line(folder.join(name)).parse::<u64>().ok();
    (number("cpu.cfs_quota_us")? * 100).checked_div(number("cpu.cfs_period_us")?)
}

/// The folders of this process's cgroup and all above it, of version 2 and of version 1's `controller`.
pub(super) fn cgroup_folders(controller: &str) -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => PathBuf::from("/sys/fs/cgroup"),
            names if names.split(',').any(|name| name == controller) => {
                Path::new("/sys/fs/cgroup").join(controller)
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        folders.extend(path.ancestors().map(|above| root.join(above)));
    }
    folders
}

/// Processor time since the machine started (/proc/stat), in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Taken by the hypervisor.
    pub stolen: u64,
    /// All of it.
    pub all: u64,
}

impl Ticks {
    /// Reads the counters.
    #[must_use]
    pub fn now() -> Self {
        let fields: Vec<u64> =
            line("/proc/stat").split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests' time is in the first two.
        Self { stolen: fields.get(7).copied().unwrap_or(0), all: fields.iter().take(8).sum() }
    }
}

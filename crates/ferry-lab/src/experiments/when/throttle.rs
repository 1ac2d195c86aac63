//! Limits the throughput of two devices, so that each has a speed of its own though both are images on one disk.
//!
//! In version 1 of cgroups the limits hold for each cgroup alone, and the kernel writes dirty pages back in the root
//! one. So they are set for this process's own cgroup and for the root. In version 2 a new cgroup has the limits, and
//! copies run in it; with the controllers for memory and I/O its pages are written back under its limits.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::fixtures::{Group, REMOVE, Version, groups, within};
use super::held::Held;
use crate::command::Stranger;
use crate::error::Failure;

#[cfg(test)]
mod tests;

/// Sets the limits of version 1: `$1` and `$2` are devices, `$3` and `$4` cgroups, `$5` bytes a second. A limit that
/// can't be set or lifted does not keep the others from it; the failure shows at the end.
const FIRST: &str = "limit() { failed=0; for group in \"$4\" \"$5\"; do for way in read write; do for device in \"$2\" \
                     \"$3\"; do echo \"$device $1\" > \"$group/blkio.throttle.${way}_bps_device\" || failed=1; \
                     done; done; done; return $failed; }; limit \"$5\" \"$1\" \"$2\" \"$3\" \"$4\"";
/// Lifts them.
const LIFT: &str = "limit 0 \"$1\" \"$2\" \"$3\" \"$4\"";
/// Makes a cgroup with the limits of version 2: `$1` is its path, `$2` and `$3` are devices, `$4` bytes a second.
const SECOND: &str = "mkdir \"$1\" && for device in \"$2\" \"$3\"; do echo \"$device rbps=$4 wbps=$4\" > \
                      \"$1/io.max\" || break; done && [ \"$(wc -l < \"$1/io.max\")\" = 2 ]";

/// Limits on two devices; lifted when dropped.
#[derive(Debug)]
pub(super) struct Throttle {
    /// List of processes of the cgroup that has the limits, if commands have to enter one.
    processes: Option<PathBuf>,
    held: Held,
}

impl Throttle {
    /// Limits reads and writes of each device (`major:minor`).
    ///
    /// # Errors
    /// [`Failure::Run`] with the reason if this is not possible here.
    pub(super) fn make(devices: [&str; 2], bytes_per_second: u64) -> Result<Self, Failure> {
        let rate = bytes_per_second.to_string();
        if let Some([own, root]) = first_version() {
            let words: [&OsStr; 5] = [
                devices[0].as_ref(),
                devices[1].as_ref(),
                own.folder.as_os_str(),
                root.folder.as_os_str(),
                rate.as_ref(),
            ];
            let held = Held::make("limits of two devices", FIRST, LIFT, &words)?;
            return Ok(Self { processes: None, held });
        }
        let is_second = |group: &Group| {
            group.version == Version::Second && group.hands_down("io") && group.hands_down("memory")
        };
        let Some(parent) = groups("blkio").into_iter().find(is_second) else {
            let why = "there is one disk, and no cgroup can limit two devices on it";
            return Err(Failure::Run(why.to_owned()));
        };
        let folder = parent.below("-devices");
        let words: [&OsStr; 4] =
            [folder.as_os_str(), devices[0].as_ref(), devices[1].as_ref(), rate.as_ref()];
        let held = Held::make("a cgroup that limits two devices", SECOND, REMOVE, &words)?;
        Ok(Self { processes: Some(folder.join("cgroup.procs")), held })
    }

    /// Wraps a command so that the limits hold for it.
    pub(super) fn around(&self, command: &Stranger) -> Stranger {
        self.processes.as_ref().map_or_else(|| command.clone(), |processes| within(processes, command))
    }

    /// Lifts the limits.
    ///
    /// # Errors
    /// If they can't be.
    pub(super) fn remove(self) -> Result<(), Failure> {
        self.held.undo()
    }
}

/// Returns this process's own cgroup and the root of version 1's hierarchy for devices, if it has one with limits.
fn first_version() -> Option<[Group; 2]> {
    let mut found = groups("blkio");
    found.retain(|group| group.version == Version::First);
    // Only the root of all has this file; that of a container's hierarchy is another.
    let root = found.iter().find(|group| group.folder.join("release_agent").exists())?.clone();
    let own = found.into_iter().next()?;
    let has_limits = |group: &Group| group.folder.join("blkio.throttle.write_bps_device").exists();
    (has_limits(&own) && has_limits(&root)).then_some([own, root])
}

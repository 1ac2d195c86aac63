//! Cgroups: where they are, and one that limits memory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::held::Held;
use crate::command::Stranger;
use crate::error::Failure;

/// Removes the cgroup `$1`. Whatever is still in it was begun in it by the lab.
pub(super) const REMOVE: &str = "{ while read -r process; do kill -9 \"$process\"; done < \"$1/cgroup.procs\"; } \
                                 2> /dev/null; tries=0; until rmdir \"$1\" 2> /dev/null || [ $tries -ge 100 ]; \
                                 do sleep 0.05; tries=$((tries + 1)); done; ! [ -d \"$1\" ]";

/// Version of a cgroup's hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
}

/// A cgroup in whose hierarchy a controller may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) folder: PathBuf,
    pub(super) version: Version,
}

impl Group {
    /// Returns true if new cgroups below it have this controller. In version 2 it has to be enabled.
    pub(super) fn hands_down(&self, controller: &str) -> bool {
        let enabled = std::fs::read_to_string(self.folder.join("cgroup.subtree_control"));
        self.folder.is_dir()
            && (self.version == Version::First
                || enabled.is_ok_and(|names| names.split_whitespace().any(|name| name == controller)))
    }

    /// Returns the path of a cgroup of this process below it, which does not exist yet.
    pub(super) fn below(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("ferry-lab-{}{suffix}", std::process::id()))
    }
}

/// Returns this process's own cgroup and the root of each hierarchy with the controller (cgroups(7)).
pub(super) fn groups(controller: &str) -> Vec<Group> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    groups_in(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"), controller)
}

/// Returns the groups according to /proc/self/mountinfo and /proc/self/cgroup. Version 2 has one hierarchy for all
/// controllers.
pub(super) fn groups_in(mountinfo: &str, own: &str, controller: &str) -> Vec<Group> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((mount, filesystem)) = line.split_once(" - ") else { continue };
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next(), filesystem.nth(1).unwrap_or_default());
        let has_controller = options.split(',').any(|option| option == controller);
        let version = match kind {
            Some("cgroup") if has_controller => Version::First,
            Some("cgroup2") => Version::Second,
            _ => continue,
        };
        let Some(point) = mount.split(' ').nth(4).map(PathBuf::from) else { continue };
        let own_path = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_it = match version {
                Version::First => controllers.split(',').any(|name| name == controller),
                Version::Second => controllers.is_empty(),
            };
            is_it.then(|| path.trim_start_matches('/'))
        });
        let own_folder = own_path.filter(|path| !path.is_empty()).map(|path| point.join(path));
        found.extend(own_folder.into_iter().chain([point]).map(|folder| Group { folder, version }));
    }
    found
}

/// Wraps a command so that it runs in the cgroup with this list of processes.
pub(super) fn within(processes: &Path, command: &Stranger) -> Stranger {
    let enter = ["-c", "echo 0 > \"$0\" && exec \"$@\""].map(OsString::from);
    let place = [processes.as_os_str().to_owned(), command.program.clone().into_os_string()];
    let arguments = enter.into_iter().chain(place).chain(command.arguments.iter().cloned()).collect();
    Stranger { program: "sh".into(), arguments }
}

/// A memory cgroup of the lab's own.
#[derive(Debug)]
pub(in crate::experiments) struct MemoryLimit {
    processes: PathBuf,
    group: Held,
}

impl MemoryLimit {
    /// Makes a cgroup in which `bytes` of memory may be used, the page cache included.
    ///
    /// # Errors
    /// [`Failure::Run`] with the reason if there is no place where this is allowed.
    pub(in crate::experiments) fn make(bytes: u64) -> Result<Self, Failure> {
        let mut why = Failure::Run("no cgroup limits memory here".to_owned());
        for parent in groups("memory").into_iter().filter(|group| group.hands_down("memory")) {
            let limit_file = match parent.version {
                Version::First => "memory.limit_in_bytes",
                Version::Second => "memory.max",
            };
            let (folder, limit) = (parent.below(""), bytes.to_string());
            let words: [&OsStr; 3] = [folder.as_os_str(), limit_file.as_ref(), limit.as_ref()];
            match Held::make("a cgroup", "mkdir \"$1\" && echo \"$3\" > \"$1/$2\"", REMOVE, &words) {
                Ok(group) => return Ok(Self { processes: folder.join("cgroup.procs"), group }),
                Err(failure) => why = failure,
            }
        }
        Err(why)
    }

    /// Wraps a command so that it runs in the cgroup.
    pub(in crate::experiments) fn around(&self, command: &Stranger) -> Stranger {
        within(&self.processes, command)
    }

    /// The file by which processes enter it.
    pub(in crate::experiments) fn processes(&self) -> &Path {
        &self.processes
    }

    /// Pages of files that were read again after they had been pushed out, of all its processes (memory.stat).
    pub(in crate::experiments) fn refaults(&self) -> Option<u64> {
        let said = std::fs::read_to_string(self.processes.with_file_name("memory.stat")).ok()?;
        said.lines().find_map(|line| line.strip_prefix("workingset_refault_file "))?.parse().ok()
    }

    /// Removes it.
    ///
    /// # Errors
    /// If it can't be.
    pub(in crate::experiments) fn remove(self) -> Result<(), Failure> {
        self.group.undo()
    }
}

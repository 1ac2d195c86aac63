//! Two devices, and little memory: what the cases need besides files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::held::Held;
use crate::command::{Stranger, time};
use crate::error::Failure;
use crate::needs::Unmet;
use crate::search_path::find_program;
use crate::stop::Stop;
use crate::units::{figure, real};

/// Space for the filesystem's own structures.
pub(super) const SLACK_BYTES: u64 = 96 << 20;

/// Two filesystems on loop devices: one whose image is in the work folder, one whose image is in memory.
#[derive(Debug)]
pub(super) struct Devices {
    first: Image,
    second: Image,
    memory: Held,
}

#[derive(Debug)]
struct Image {
    folder: PathBuf,
    mount: Held,
}

impl Devices {
    /// Makes both, each with room for `bytes`.
    ///
    /// # Errors
    /// [`Failure::Run`] with what is missing: root, a program, loop devices, memory.
    pub(super) fn make(work: &Path, bytes: u64, stop: &Stop) -> Result<Self, Failure> {
        if !ferry_io::is_superuser() {
            return Err(Failure::Run("loop devices need root".to_owned()));
        }
        for program in ["mkfs.ext4", "mount", "umount"] {
            find_program(program.as_ref())
                .ok_or_else(|| Failure::Run(Unmet::Program(program.into()).to_string()))?;
        }
        let size = bytes.saturating_add(bytes / 8).saturating_add(SLACK_BYTES);
        let free = available_memory().unwrap_or(u64::MAX);
        // The copy in the image's file, and once more as the cache of its filesystem.
        if free < size.saturating_mul(2) {
            let (free, needed) = (figure(real(free), "B"), figure(real(size.saturating_mul(2)), "B"));
            let why = format!("a device in memory needs {needed} of memory, and {free} are free");
            return Err(Failure::Run(why));
        }
        let memory_folder = folder(work, "memory")?;
        let options = format!("size={},mode=700", size.saturating_add(1 << 20));
        let memory = Held::make(
            "a filesystem in memory",
            "mount -t tmpfs -o \"$1\" ferry-lab \"$2\"",
            UNMOUNT,
            &[OsStr::new(&options), memory_folder.as_os_str()],
        )?;
        let first = Image::make(work, "device-1", &work.join("image"), size, stop)?;
        let second = Image::make(work, "device-2", &memory_folder.join("image"), size, stop)?;
        Ok(Self { first, second, memory })
    }

    /// Mount point of the filesystem on the work folder's device.
    pub(super) fn first(&self) -> &Path {
        &self.first.folder
    }

    /// Mount point of the filesystem whose image is in memory.
    pub(super) fn second(&self) -> &Path {
        &self.second.folder
    }

    /// Removes both.
    ///
    /// # Errors
    /// The first thing that can't be removed.
    pub(super) fn remove(self) -> Result<(), Failure> {
        let Self { first, second, memory } = self;
        let outcomes = [second.mount.undo(), first.mount.undo(), memory.undo()];
        outcomes.into_iter().collect()
    }
}

/// Unmounts the folder `$2`: now, or as soon as nobody uses it. The loop device goes with the mount.
const UNMOUNT: &str = "umount \"$2\" 2> /dev/null || umount -l \"$2\"";

impl Image {
    fn make(work: &Path, name: &str, image: &Path, size: u64, stop: &Stop) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::file("create", image, &error);
        let file = File::create_new(image).map_err(failed)?;
        file.set_len(size).map_err(failed)?;
        drop(file);
        let mut command = Command::new("mkfs.ext4");
        command.args(["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"]).arg(image);
        time(&mut command, stop)?;
        let folder = folder(work, name)?;
        let mount = "mount -t ext4 -o loop,noatime,nodiscard \"$1\" \"$2\"";
        let mount = Held::make("a loop device", mount, UNMOUNT, &[image, &folder])?;
        Ok(Self { folder, mount })
    }
}

fn folder(work: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = work.join(name);
    std::fs::create_dir(&path).map_err(|error| Failure::file("create", &path, &error))?;
    Ok(path)
}

fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A memory cgroup of the lab's own.
#[derive(Debug)]
pub(in crate::experiments) struct MemoryLimit {
    processes: PathBuf,
    group: Held,
}

/// Parent for such cgroups, and the name of its limit file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) folder: PathBuf,
    pub(super) limit_file: &'static str,
}

impl MemoryLimit {
    /// Makes a cgroup in which `bytes` of memory may be used, the page cache included.
    ///
    /// # Errors
    /// [`Failure::Run`] with the reason if there is no place where this is allowed.
    pub(in crate::experiments) fn make(bytes: u64) -> Result<Self, Failure> {
        // Whatever is still in it was begun in it by the lab.
        const REMOVE: &str = "{ while read -r process; do kill -9 \"$process\"; done < \"$1/cgroup.procs\"; } \
                              2> /dev/null; tries=0; until rmdir \"$1\" 2> /dev/null || [ $tries -ge 100 ]; \
                              do sleep 0.05; tries=$((tries + 1)); done; ! [ -d \"$1\" ]";
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let mut why = Failure::Run("no cgroup limits memory here".to_owned());
        for parent in parents(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup")) {
            if !parent.can_limit() {
                continue;
            }
            let folder = parent.folder.join(format!("ferry-lab-{}", std::process::id()));
            let limit = bytes.to_string();
            let words: [&OsStr; 3] = [folder.as_os_str(), parent.limit_file.as_ref(), limit.as_ref()];
            match Held::make("a cgroup", "mkdir \"$1\" && echo \"$3\" > \"$1/$2\"", REMOVE, &words) {
                Ok(group) => return Ok(Self { processes: folder.join("cgroup.procs"), group }),
                Err(failure) => why = failure,
            }
        }
        Err(why)
    }

    /// Wraps a command so that it runs in the cgroup.
    pub(in crate::experiments) fn around(&self, command: &Stranger) -> Stranger {
        let enter = ["-c", "echo 0 > \"$0\" && exec \"$@\""].map(OsString::from);
        let place = [self.processes.clone().into_os_string(), command.program.clone().into_os_string()];
        let arguments = enter.into_iter().chain(place).chain(command.arguments.iter().cloned()).collect();
        Stranger { program: "sh".into(), arguments }
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

impl Parent {
    /// Returns true if child groups can have a memory limit: always in version 1, if enabled in version 2.
    fn can_limit(&self) -> bool {
        let switched_on = std::fs::read_to_string(self.folder.join("cgroup.subtree_control"));
        self.folder.is_dir()
            && (self.limit_file == V1_LIMIT
                || switched_on.is_ok_and(|names| names.split_whitespace().any(|name| name == "memory")))
    }
}

const V1_LIMIT: &str = "memory.limit_in_bytes";
const V2_LIMIT: &str = "memory.max";

/// This process's own memory cgroup, and the root of each hierarchy that limits memory (cgroups(7)).
pub(super) fn parents(mountinfo: &str, own: &str) -> Vec<Parent> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((mount, filesystem)) = line.split_once(" - ") else { continue };
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next(), filesystem.nth(1).unwrap_or_default());
        let has_memory = options.split(',').any(|option| option == "memory");
        let limit_file = match kind {
            Some("cgroup") if has_memory => V1_LIMIT,
            Some("cgroup2") => V2_LIMIT,
            _ => continue,
        };
        let Some(point) = mount.split(' ').nth(4).map(PathBuf::from) else { continue };
        let own_path = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_it = match limit_file {
                V1_LIMIT => controllers.split(',').any(|name| name == "memory"),
                _ => controllers.is_empty(),
            };
            is_it.then(|| path.trim_start_matches('/'))
        });
        let own_folder = own_path.filter(|path| !path.is_empty()).map(|path| point.join(path));
        found.extend(own_folder.into_iter().chain([point]).map(|folder| Parent { folder, limit_file }));
    }
    found
}

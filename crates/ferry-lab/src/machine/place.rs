//! The filesystem that holds a folder (type, mount options), and the block device beneath it (/sys/dev/block).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};

use super::mounts::{self, covering};
use super::read::line;

/// Filesystem and device of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    /// The filesystem's type: `ext4`.
    pub filesystem: String,
    /// Mount options, those of the filesystem included.
    pub options: Vec<String>,
    /// Mounted source, such as `/dev/vda`.
    pub source: String,
    /// True if no data ever reaches a device: tmpfs, or an image file on tmpfs.
    pub in_memory: bool,
    /// The block device beneath, if there is one.
    pub device: Option<Device>,
}

impl Filesystem {
    /// The filesystem that holds `folder`.
    #[must_use]
    pub fn look(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mounts = mounts::all();
        let Some(mount) = covering(&mounts, &folder) else { return Self::default() };
        let device = Device::look(&mount.number, &mount.source);
        let is_ram = matches!(mount.filesystem.as_str(), "tmpfs" | "ramfs");
        Self {
            filesystem: mount.filesystem.clone(),
            options: mount.options.clone(),
            source: mount.source.clone(),
            in_memory: is_ram || device.as_ref().is_some_and(|device| device.in_memory),
            device,
        }
    }

    /// Returns true if blocks of removed files are discarded at once.
    #[must_use]
    pub fn discards(&self) -> bool {
        self.options.iter().any(|option| option == "discard" || option.starts_with("discard="))
    }

    /// Returns true if new files take longer for minutes after others were removed.
    ///
    /// ext4 without a journal passes over an inode that was removed in the last minute, or in the last six if that was not
    /// written yet (`recently_deleted()` in the kernel's `fs/ext4/ialloc.c`). It looks at all of them for each new file of
    /// their group.
    #[must_use]
    pub fn avoids_removed_inodes(&self) -> bool {
        let Some(name) = self.source.strip_prefix("/dev/").filter(|_| self.filesystem == "ext4") else {
            return false;
        };
        // Each journal has a folder: `vda1-8` for the inode 8 of vda1.
        let Ok(journals) = std::fs::read_dir("/proc/fs/jbd2") else { return false };
        let is_of_it = |journal: &str| journal.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        let is_known = Path::new("/proc/fs/ext4").join(name).exists();
        is_known && !journals.flatten().any(|journal| journal.file_name().to_str().is_some_and(is_of_it))
    }
}

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its name: `nvme0n1`, of the whole device if the filesystem is on a part of it.
    pub name: String,
    /// Model name; empty if unknown.
    pub model: String,
    /// All of it.
    pub bytes: u64,
    /// True for rotating disks.
    pub rotational: bool,
    /// The I/O scheduler: `none`, `mq-deadline`.
    pub scheduler: String,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// True if the blocks are in memory.
    pub in_memory: bool,
}

impl Device {
    /// The device of that number (`259:1`), or else the one whose node is `source` (btrfs has no number of its own).
    fn look(number: &str, source: &str) -> Option<Self> {
        let folder = |number: &str| Path::new("/sys/dev/block").join(number).canonicalize().ok();
        let node = || {
            let device = std::fs::metadata(source).ok()?.rdev();
            folder(&format!("{}:{}", major(device), minor(device)))
        };
        let folder = folder(number).or_else(node)?;
        Some(Self::of(&whole(folder)))
    }

    fn of(folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let backing = line(folder.join("loop/backing_file"));
        let backing_file = (!backing.is_empty()).then_some(backing);
        let is_ram = name.starts_with("ram") || name.starts_with("zram");
        let in_memory =
            is_ram || backing_file.as_ref().is_some_and(|file| Filesystem::look(Path::new(file)).in_memory);
        Self {
            model: line(folder.join("device/model")),
            // In sectors of 512 bytes, whatever the device's own are.
            bytes: line(folder.join("size")).parse::<u64>().unwrap_or(0) * 512,
            rotational: line(folder.join("queue/rotational")) == "1",
            scheduler: chosen(&line(folder.join("queue/scheduler"))),
            name,
            backing_file,
            in_memory,
        }
    }
}

/// A partition's folder lies in that of its device, which alone has a queue.
fn whole(folder: PathBuf) -> PathBuf {
    if folder.join("queue").is_dir() {
        return folder;
    }
    folder.parent().map_or(folder.clone(), Path::to_owned)
}

/// The word in brackets of `none [mq-deadline]`, or the only word.
pub(super) fn chosen(text: &str) -> String {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(word, _)| word).to_owned()
}

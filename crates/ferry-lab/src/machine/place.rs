//! The filesystem that a folder is on: its type, mount options and device.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::device::Device;

/// Where files are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The filesystem's type: `ext4`.
    pub filesystem: String,
    /// Mount options, those of the filesystem included.
    pub options: Vec<String>,
    /// What is mounted: `/dev/vda`.
    pub source: String,
    /// Whether nothing of it ever reaches a device: tmpfs, or an image file on one.
    pub in_memory: bool,
    /// The block device beneath, if there is one.
    pub device: Option<Device>,
}

/// One line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    pub(super) filesystem: String,
    pub(super) source: String,
    pub(super) options: Vec<String>,
    pub(super) number: String,
}

impl Place {
    /// The filesystem that holds `folder`.
    #[must_use]
    pub fn look(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<Mount> = text.lines().filter_map(Mount::parse).collect();
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

    /// Whether removed files' blocks are discarded at once.
    #[must_use]
    pub fn discards(&self) -> bool {
        self.options.iter().any(|option| option == "discard" || option.starts_with("discard="))
    }
}

/// Where that source is mounted as a filesystem of that type.
#[must_use]
pub fn mount_points(filesystem: &str, source: &str) -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = text.lines().filter_map(Mount::parse);
    let found = mounts.filter(|mount| mount.filesystem == filesystem && mount.source == source);
    found.map(|mount| mount.point).collect()
}

/// The mount that a path is on: the longest mount point above it, of several the last one.
pub(super) fn covering<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.as_os_str().len())
}

impl Mount {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let mut fields = filesystem.split(' ');
        let (kind, source, inner) = (fields.next()?, fields.next()?, fields.next().unwrap_or_default());
        let mut options: Vec<String> = mount.get(5)?.split(',').map(str::to_owned).collect();
        for option in inner.split(',').filter(|option| !option.is_empty()) {
            if !options.iter().any(|known| known == option) {
                options.push(option.to_owned());
            }
        }
        Some(Self {
            point: PathBuf::from(std::ffi::OsStr::from_bytes(&unescaped(mount.get(4)?))),
            filesystem: kind.to_owned(),
            source: String::from_utf8_lossy(&unescaped(source)).into_owned(),
            options,
            number: (*mount.get(2)?).to_owned(),
        })
    }
}

/// Spaces, tabs, line ends and backslashes stand as `\ooo`.
fn unescaped(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let octal = bytes.get(index + 1..index + 4).filter(|_| byte == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                out.push(escaped);
                index += 4;
            }
            None => {
                out.push(byte);
                index += 1;
            }
        }
    }
    out
}

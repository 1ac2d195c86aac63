//! The mount table (/proc/self/mountinfo).

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    pub(super) filesystem: String,
    pub(super) source: String,
    pub(super) options: Vec<String>,
    pub(super) number: String,
}

/// Returns the mount points of this source with this filesystem type.
#[must_use]
pub fn mount_points(filesystem: &str, source: &str) -> Vec<PathBuf> {
    let found = all().into_iter().filter(|mount| mount.filesystem == filesystem && mount.source == source);
    found.map(|mount| mount.point).collect()
}

/// Every mount, in the order in which they were made.
pub(super) fn all() -> Vec<Mount> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(Mount::parse).collect()
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

//! Identity of the filesystem of a path: its UUID, wherever it is mounted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use ferry_lab::machine;
use rustix::fs::OFlags;

use super::figures::{LONGEST_TEXT, Place};

/// Maximum number of nested image files that are followed.
const MOST_LAYERS: usize = 4;

/// Release of the running kernel.
#[must_use]
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns the UUID of the filesystem of a path, if it has one. Only files and folders are opened: opening a device
/// or FIFO may have effects, so its parent is opened instead.
fn uuid(path: &Path) -> io::Result<Option<String>> {
    let kind = path.metadata()?.file_type();
    let is_opened = kind.is_dir() || kind.is_file();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = open(if is_opened { path } else { parent })?;
    Ok(ferry_io::probe::filesystem_uuid(file).ok())
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(|_| io::ErrorKind::InvalidInput)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

impl Place {
    /// Returns the filesystem of a file or folder.
    ///
    /// # Errors
    /// Those of open(2) and realpath(3).
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::with(path, uuid(path)?)
    }

    /// Returns the filesystem of a path whose UUID is already known, or known to be missing.
    ///
    /// # Errors
    /// Those of realpath(3).
    pub fn with(path: &Path, uuid: Option<String>) -> io::Result<Self> {
        let found = machine::Filesystem::look(&path.canonicalize()?);
        let identity = uuid.unwrap_or_else(|| format!("{} {}", found.filesystem, found.source));
        Ok(Self {
            filesystem: clean(&found.filesystem),
            identity: clean(&identity),
            source: clean(&found.source),
            device: clean(&device(&found, MOST_LAYERS)),
            options: clean(&found.options.join(",")),
        })
    }
}

/// Model and size. A loop device includes the device of its backing file, so that an image on another disk is
/// another device.
fn device(place: &machine::Filesystem, layers: usize) -> String {
    let Some(device) = &place.device else { return "no device".to_owned() };
    let size = format!("{} bytes", device.bytes);
    match &device.backing_file {
        Some(file) if layers > 0 => {
            let beneath = machine::Filesystem::look(Path::new(file));
            let on = match &beneath.device {
                Some(_) => self::device(&beneath, layers - 1),
                None => beneath.filesystem,
            };
            format!("loop, {size}, on {on}")
        }
        Some(_) => format!("loop, {size}"),
        None if device.model.is_empty() => format!("{}, {size}", device.name),
        None => format!("{}, {size}", device.model),
    }
}

/// Keeps one line of printable characters, because names of devices and mounts are not trusted.
fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST_TEXT).collect()
}

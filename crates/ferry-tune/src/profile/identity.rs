//! Which filesystem a path is on, told so that it is known again: by its UUID, wherever it is mounted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use ferry_lab::machine;
use rustix::fs::OFlags;

use super::Place;

/// Image files upon image files are followed so far.
const MOST_LAYERS: usize = 4;

/// The running kernel's release.
#[must_use]
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The UUID of the filesystem that a path is on, if it has one. What is no file and no folder is not opened, which might
/// be noticed by others; its folder is.
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
    /// The filesystem that a file or folder is on.
    ///
    /// # Errors
    /// Those of open(2) and realpath(3).
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::with(path, uuid(path)?)
    }

    /// The same, where the filesystem's UUID is known, or that it has none.
    ///
    /// # Errors
    /// Those of realpath(3).
    pub fn with(path: &Path, uuid: Option<String>) -> io::Result<Self> {
        let found = machine::Place::look(&path.canonicalize()?);
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

/// Model and size; of a loop device also what its file is on, so that an image on another disk is another device.
fn device(place: &machine::Place, layers: usize) -> String {
    let Some(device) = &place.device else { return "no device".to_owned() };
    let size = format!("{} bytes", device.bytes);
    match &device.backing_file {
        Some(file) if layers > 0 => {
            let beneath = machine::Place::look(Path::new(file));
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

/// One line of printable characters: what a device or a mount is called is not ferry's to trust.
fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(super::sanity::LONGEST_TEXT).collect()
}

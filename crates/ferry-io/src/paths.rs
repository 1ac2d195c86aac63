//! Paths as users give them, resolved to open folders.
//!
//! A path is walked one component at a time, each opened from the folder before it, so the kernel never gets more than
//! one name at once. Links are followed, because the user named them. The folders reached last are kept open: a later
//! path through one of them uses the folder found the first time, wherever its name leads by then. Used before a run
//! and in it, by plain calls.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;

use crate::confine::at_flags;
use crate::descriptor::Descriptor;
use crate::descriptor::Dir;
use crate::entry::Stat;
use crate::error::{Error, Operation, Result};
use crate::sys::{component, device_of, open_component, stat_component};

/// Folders kept open: those of a source, of its target and of the previous operand, each with its parent.
const KEPT: usize = 6;

/// Flags for passing through a folder, which may be searchable but not readable (open(2), O_PATH).
const THROUGH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// Flags for folders that are listed and synced.
const WHOLE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK);

/// Starting points of paths, and the folders reached from them.
///
/// ```
/// use ferry_io::Paths;
///
/// let paths = Paths::new();
/// paths.folder("/proc/self".as_ref())?;
/// assert!(paths.stat("/proc/self/stat".as_ref(), true)?.size == 0);
/// assert!(paths.names("/proc/self".as_ref())?.contains(&"maps".into()));
/// # Ok::<(), ferry_io::Error>(())
/// ```
#[derive(Debug)]
pub struct Paths {
    working: Result<Dir>,
    root: Result<Dir>,
    /// Least recently used first, each with the components that led to it.
    reached: Mutex<Vec<(Vec<u8>, Dir)>>,
}

impl Default for Paths {
    fn default() -> Self {
        Self::new()
    }
}

impl Paths {
    /// Paths that start at the present working folder and at the root. If one can't be opened, paths from there fail.
    #[must_use]
    pub fn new() -> Self {
        let start = |name| opened(open_component(CWD, name, THROUGH)).map(Dir::from_descriptor);
        Self { working: start(c"."), root: start(c"/"), reached: Mutex::default() }
    }

    /// Opens a folder. One that may be searched but not listed is opened with O_PATH. An empty path is the working
    /// folder.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn folder(&self, path: &Path) -> Result<Dir> {
        let found = self.walk(&Components::of(path))?;
        if ends_in_dot(path) {
            // Looking up `.` requires search permission.
            let searched = stat_component(found.fd(), c".", AtFlags::SYMLINK_NOFOLLOW);
            searched.map_err(|errno| Error::errno(Operation::Open, errno))?;
        }
        Ok(found)
    }

    fn walk(&self, components: &Components) -> Result<Dir> {
        if let Some(known) = self.reached(&components.all) {
            return Ok(known);
        }
        let (mut at, walked) = match self.nearest(&components.all) {
            Some(nearest) => nearest,
            None if components.is_absolute => (self.root.clone()?, 1),
            None => (self.working.clone()?, 0),
        };
        if components.all.len() == walked {
            at = open(&at, b".")?;
            self.keep(&components.all, &at);
        }
        let mut left = components.all[walked..].split_inclusive(|&byte| byte == b'/').count();
        let mut end = walked;
        for name in components.all[walked..].split_inclusive(|&byte| byte == b'/') {
            end += name.len();
            left -= 1;
            let name = &name[..name.len() - 1];
            if left > 1 {
                at = through(&at, name)?;
            } else {
                // The last but one too: a failed lookup in it is often repeated in another way.
                at = open(&at, name)?;
                self.keep(&components.all[..end], &at);
            }
        }
        Ok(at)
    }

    /// The attributes of a path; with `follow`, of the file that a link leads to.
    ///
    /// # Errors
    /// Those of stat(2).
    pub fn stat(&self, path: &Path, follow: bool) -> Result<Stat> {
        let failed = |errno| Error::errno(Operation::Stat, errno);
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(failed(Errno::NOENT));
        }
        let (above, name) = match bytes.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&bytes[..=slash], &bytes[slash + 1..]),
            None => (&b""[..], bytes),
        };
        // The folder's own name, which is always followed.
        let (dir, name, flags) = if matches!(name, b"" | b"." | b"..") {
            (self.folder(path)?, c"".to_owned(), AtFlags::EMPTY_PATH)
        } else {
            (
                self.folder(Path::new(OsStr::from_bytes(above)))?,
                component(name).map_err(failed)?,
                at_flags(follow),
            )
        };
        stat_component(dir.fd(), &name, flags).map_err(failed)
    }

    /// The names in a folder.
    ///
    /// # Errors
    /// Those of open(2) and getdents64(2).
    pub fn names(&self, folder: &Path) -> Result<Vec<OsString>> {
        let failed = |errno| Error::errno(Operation::List, errno);
        let folder = self.folder(folder)?;
        // A descriptor of its own, because another listing may use the folder's.
        let listing = rustix::fs::Dir::read_from(folder.fd()).map_err(failed)?;
        let names = listing.map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
        names.map(|name| name.map(OsString::from_vec).map_err(failed)).collect()
    }

    /// A folder reached earlier by the same components.
    fn reached(&self, components: &[u8]) -> Option<Dir> {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let index = reached.iter().position(|(known, _)| known == components)?;
        let found = reached.remove(index);
        let dir = found.1.clone();
        reached.push(found);
        Some(dir)
    }

    /// Returns the deepest folder reached earlier that lies on this path, and the length of its components in bytes.
    fn nearest(&self, components: &[u8]) -> Option<(Dir, usize)> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let above = reached.iter().filter(|(known, _)| !known.is_empty() && components.starts_with(known));
        above.max_by_key(|(known, _)| known.len()).map(|(known, dir)| (dir.clone(), known.len()))
    }

    fn keep(&self, components: &[u8], dir: &Dir) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.len() == KEPT {
            reached.remove(0);
        }
        reached.push((components.to_vec(), dir.clone()));
    }
}

/// A path without empty components and dots.
struct Components {
    is_absolute: bool,
    /// Each ends in a slash, so that a prefix is a folder above.
    all: Vec<u8>,
}

impl Components {
    fn of(path: &Path) -> Self {
        let bytes = path.as_os_str().as_bytes();
        let is_absolute = bytes.starts_with(b"/");
        let mut all = if is_absolute { b"/".to_vec() } else { Vec::new() };
        for name in bytes.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
            all.extend_from_slice(name);
            all.push(b'/');
        }
        Self { is_absolute, all }
    }
}

/// Returns true if the path ends in `.`, which the kernel looks up in the folder.
fn ends_in_dot(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    bytes[..end].ends_with(b"/.")
}

fn through(dir: &Dir, name: &[u8]) -> Result<Dir> {
    opened(component(name).and_then(|name| open_component(dir.fd(), &name, THROUGH)))
        .map(Dir::from_descriptor)
}

fn open(dir: &Dir, name: &[u8]) -> Result<Dir> {
    let whole = component(name).and_then(|name| match open_component(dir.fd(), &name, WHOLE) {
        Err(Errno::ACCESS) => open_component(dir.fd(), &name, THROUGH),
        answer => answer,
    });
    let descriptor = opened(whole)?;
    let device = device_of(descriptor.fd());
    Ok(Dir::from_descriptor(descriptor.on(device)))
}

fn opened(answer: std::result::Result<OwnedFd, Errno>) -> Result<Descriptor> {
    answer.map(Descriptor::from).map_err(|errno| Error::errno(Operation::Open, errno))
}

#[cfg(test)]
mod tests;

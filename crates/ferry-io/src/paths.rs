//! Paths as the user gave them: where a program's capabilities begin.
//!
//! A path is walked one component at a time, each opened from the folder before it, so that the kernel never gets more
//! than one name at once; links in it are followed, because who named the path meant them. The folders that were
//! reached last are kept open: who asks for one again, or for something in it, gets the folder that was found the first
//! time, whatever its path leads to by then. Used before a run as well as in it, by plain calls.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;

use crate::confine::at_flags;
use crate::dir::Dir;
use crate::entry::Stat;
use crate::error::{Error, Operation, Result};
use crate::op::Descriptor;
use crate::sys::{component, device_of, open_component, stat_component};

/// Folders that are kept open: those of a source, of its target and of the operand before, and the ones above them.
const KEPT: usize = 6;

/// What is needed only to go through it (open(2), O_PATH): it may be searchable without being readable.
const THROUGH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// What is to be listed and synced.
const WHOLE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK);

/// The folders that paths start from, and those that were reached.
#[derive(Debug)]
pub struct Paths {
    working: Result<Dir>,
    root: Result<Dir>,
    /// The least recently used first, each with the components that led to it.
    reached: Mutex<Vec<(Vec<u8>, Dir)>>,
}

impl Default for Paths {
    fn default() -> Self {
        Self::new()
    }
}

impl Paths {
    /// Paths that start from the present working folder and root. What can't be opened fails those that start there.
    #[must_use]
    pub fn new() -> Self {
        let start = |name| opened(open_component(CWD, name, THROUGH)).map(Dir::from_descriptor);
        Self { working: start(c"."), root: start(c"/"), reached: Mutex::default() }
    }

    /// Opens a folder; where it may be searched but not listed, only to be reached: then it can't be listed or synced.
    /// An empty path is the working folder.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn folder(&self, path: &Path) -> Result<Dir> {
        let found = self.walk(&Components::of(path))?;
        if ends_in_dot(path) {
            // To look for `.` in a folder is to search it.
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
                // The last but one, too: what can't be reached in it is often asked for otherwise.
                at = open(&at, name)?;
                self.keep(&components.all[..end], &at);
            }
        }
        Ok(at)
    }

    /// The attributes of what a path leads to; if it is a link itself, of that unless `follow` says so.
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
        // A folder's own name: what it leads to is wanted, whatever it is.
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
        // A descriptor of its own: the folder's may be listed by others.
        let listing = rustix::fs::Dir::read_from(folder.fd()).map_err(failed)?;
        let names = listing.map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
        names.map(|name| name.map(OsString::from_vec).map_err(failed)).collect()
    }

    /// A folder that was reached by the same components.
    fn reached(&self, components: &[u8]) -> Option<Dir> {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let index = reached.iter().position(|(known, _)| known == components)?;
        let found = reached.remove(index);
        let dir = found.1.clone();
        reached.push(found);
        Some(dir)
    }

    /// The folder reached that is nearest above, and how much of the components has been walked with it.
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

/// A path without what says nothing: doubled slashes and dots.
struct Components {
    is_absolute: bool,
    /// Each followed by a slash, so that what begins with another's is beneath it.
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

/// Whether a path says `.` of a folder that it names: the kernel looks it up there.
fn ends_in_dot(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    bytes[..end].ends_with(b"/.")
}

/// Opens a component on the way.
fn through(dir: &Dir, name: &[u8]) -> Result<Dir> {
    opened(component(name).and_then(|name| open_component(dir.fd(), &name, THROUGH)))
        .map(Dir::from_descriptor)
}

/// Opens the last component.
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

//! The file of a recording: unnamed until the run has ended, then at the requested path.
//!
//! So a run cannot copy or replace its own recording, two runs never write to one file, and a run that is refused,
//! panics or is killed leaves an older recording as it was. The name is given in one step. It replaces only the
//! recording that was there at the start, and only if that one is unchanged. If another file has the name, the
//! recording gets the first free name with a number appended.
//!
//! Limits: without support for unnamed files, or without /proc to link them, the file has a hidden name
//! (`.ferry-trace-PID-N`) meanwhile: a copy of that folder finds it, and a kill leaves it. A change to an older
//! recording between the last comparison and the rename is lost.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::file::is_replaceable;

/// Largest number appended to a name.
const MOST_FILES: u32 = 99_999;
/// Maximum number of hidden names tried.
const ATTEMPTS: u32 = 100;
/// Mode of the file, before the umask applies.
const MODE: Mode = Mode::from_raw_mode(0o666);
/// Placeholder in a path for the first free number.
const NUMBER: &[u8] = b"%n";

/// Number of recordings of this process for each path.
static TAKEN: Mutex<Vec<(PathBuf, u32)>> = Mutex::new(Vec::new());
/// Number in the next hidden name.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The future name of one recording.
#[derive(Debug)]
pub(super) struct RecordingFile {
    /// Kept open, because the process may change its working directory.
    folder: OwnedFd,
    path: PathBuf,
    name: OsString,
    /// The older recording at the path.
    before: Option<Seen>,
    /// Hidden name of the file, if it has one.
    hidden: Option<OsString>,
}

/// Identity and state of a file.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Seen {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Ok(Self { file: (found.dev(), found.ino()), size: found.size(), changed })
    }
}

impl RecordingFile {
    /// Opens the file for a recording to the path `told`.
    ///
    /// # Errors
    /// Those of open(2), and [`io::ErrorKind::AlreadyExists`] if a file that is no recording has the name.
    pub(super) fn open(told: &Path) -> io::Result<(Self, File)> {
        Self::open_where(told, true)
    }

    fn open_where(told: &Path, has_unnamed: bool) -> io::Result<(Self, File)> {
        // A number appended to `dir/` would make it a name, so the path is checked first.
        split(told.as_os_str().as_bytes())?;
        let is_counted = is_counted(told);
        let path = if is_counted { told.to_owned() } else { numbered(told) };
        let (folder, name) = split(path.as_os_str().as_bytes())?;
        let name = OsStr::from_bytes(name).to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, folder, flags, Mode::empty())?;
        let before = if is_counted { None } else { older(&folder, &name)? };
        let mut place = Self { folder, path, name, before, hidden: None };
        let unnamed = if has_unnamed { place.open_unnamed()? } else { None };
        let file = match unnamed {
            Some(file) => file,
            None => place.under_hidden_name(|folder, name| {
                openat(folder, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC, MODE)
            })?,
        };
        Ok((place, file.into()))
    }

    /// Opens an unnamed file, if the filesystem supports it and it can be linked later.
    fn open_unnamed(&self) -> Result<Option<OwnedFd>, Errno> {
        match openat(&self.folder, ".", OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, MODE) {
            Ok(file) => Ok(std::fs::symlink_metadata(way_to(&file)).is_ok().then_some(file)),
            // Answers of open(2) on filesystems and kernels without unnamed files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL | Errno::NOSYS) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Calls `make` with hidden names until one is free.
    fn under_hidden_name<T>(
        &mut self,
        make: impl Fn(&OwnedFd, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!(".ferry-trace-{}-{number}", std::process::id()));
            match make(&self.folder, &name) {
                Err(Errno::EXIST) => {}
                made => {
                    self.hidden = made.is_ok().then_some(name);
                    return made;
                }
            }
        }
        Err(Errno::BUSY)
    }

    /// The requested path, with this run's number in its process.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Names the complete file: `path`, or another name if `path` is taken. Returns the path.
    ///
    /// # Errors
    /// Those of link(2) and rename(2), for the last name tried.
    pub(super) fn publish(mut self, file: &File) -> Result<PathBuf, Errno> {
        if let Some(beginning) = self.name.as_bytes().strip_suffix(NUMBER) {
            let beginning = OsStr::from_bytes(beginning).to_owned();
            return self.take_numbered(file, &beginning, 1);
        }
        if self.take(file).is_ok() {
            return Ok(self.path.clone());
        }
        let mut beginning = self.name.clone();
        beginning.push(".");
        self.take_numbered(file, &beginning, 2)
    }

    /// Takes the path itself.
    fn take(&mut self, file: &File) -> Result<(), Errno> {
        let name = self.name.clone();
        match self.take_free(file, &name) {
            Err(Errno::EXIST) if self.before.is_some() => {}
            done => return done,
        }
        if self.hidden.is_none() {
            self.under_hidden_name(|folder, name| link(file, folder, name))?;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = File::from(openat(&self.folder, &name, flags, Mode::empty())?);
        let Some(hidden) = self.hidden.as_ref().filter(|_| Seen::of(&found).ok() == self.before) else {
            return Err(Errno::EXIST);
        };
        renameat(&self.folder, hidden, &self.folder, &name)?;
        self.hidden = None;
        Ok(())
    }

    /// Takes the first free name that consists of `beginning` and a number.
    fn take_numbered(&mut self, file: &File, beginning: &OsStr, first: u32) -> Result<PathBuf, Errno> {
        for number in first..=MOST_FILES {
            let mut name = beginning.to_owned();
            name.push(number.to_string());
            match self.take_free(file, &name) {
                Ok(()) => return Ok(self.path.with_file_name(name)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    /// Takes a free name.
    fn take_free(&mut self, file: &File, name: &OsStr) -> Result<(), Errno> {
        let Some(hidden) = &self.hidden else { return link(file, &self.folder, name) };
        match renameat_with(&self.folder, hidden, &self.folder, name, RenameFlags::NOREPLACE) {
            // Without RENAME_NOREPLACE, check first that the name is free.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => return Err(Errno::EXIST),
                    Err(Errno::NOENT) => renameat(&self.folder, hidden, &self.folder, name)?,
                    Err(errno) => return Err(errno),
                }
            }
            done => done?,
        }
        self.hidden = None;
        Ok(())
    }
}

impl Drop for RecordingFile {
    /// Removes the hidden name of a recording that was not published.
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            unlinkat(&self.folder, hidden, AtFlags::empty()).ok();
        }
    }
}

/// Returns true if the path asks for the first free number.
pub(super) fn is_counted(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(NUMBER)
}

/// Returns the path for this process's next recording to `path`: the path itself, then with `.2` appended, and so on.
fn numbered(path: &Path) -> PathBuf {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((_, times)) = taken.iter_mut().find(|(known, _)| known == path) else {
        taken.push((path.to_owned(), 1));
        return path.to_owned();
    };
    *times += 1;
    let mut name = OsString::from(path);
    name.push(format!(".{times}"));
    name.into()
}

/// Splits a path into its folder and its last component.
fn split(path: &[u8]) -> Result<(&OsStr, &[u8]), Errno> {
    let (folder, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (&b"/"[..], &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b"."[..], path),
    };
    match name {
        b"" | b"." | b".." => Err(Errno::ISDIR),
        name => Ok((OsStr::from_bytes(folder), name)),
    }
}

/// Returns the state of an older recording with this name, if there is one. Changes nothing.
fn older(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<Seen>> {
    // Opened for writing, because a user who may not write to it may not replace it.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    if !is_replaceable(&mut file)? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Seen::of(&file).map(Some)
}

/// Path by which an unnamed file is linked: only root may link it by its descriptor.
fn way_to(file: &impl std::os::fd::AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

fn link(file: &File, folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    linkat(CWD, way_to(file), folder, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(test)]
mod tests;

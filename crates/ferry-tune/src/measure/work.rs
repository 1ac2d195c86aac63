//! Workspace of a measurement: one large unnamed file, and a hidden folder for named files.
//!
//! The folder is locked while in use. The next run in the same place removes an unlocked one, which a killed run
//! has left; the unnamed file vanishes with its process. The owner of the parent folder may replace the hidden one,
//! so it is used and emptied by its descriptor (guard: `a_folder_that_is_swapped_is_not_followed`). Without /proc
//! it can be reached by its path only, and that owner is trusted.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ferry_io::{Io, Name, OpenHow};
use ferry_lab::load::fill;
use ferry_lab::{Failure, needs};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstatvfs, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::scale::Scale;
use super::steps::{SEED, Steps};

/// Prefix of the hidden folder's name; a process number and a counter follow.
const PREFIX: &str = ".ferry-tune-";
const TRIES: u32 = 100;
/// Minimum size of the file, of which its size is a multiple.
const LEAST_BYTES: u64 = 16 << 20;
/// The file takes at most one part in this many of the free space.
const SHARE: u64 = 4;
/// Names needed besides the created files that are measured.
const NAMES: u64 = 128;
/// Bytes written before each fdatasync(2), which bounds the delay of an interrupt.
const PIECE: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct Work {
    folder: PathBuf,
    /// The measured folder, open.
    above: File,
    name: String,
    /// Path of the hidden folder, by its descriptor.
    path: PathBuf,
    /// The hidden folder, open. Holds the lock, where locks are supported.
    open: File,
    is_removed: bool,
}

/// The file that is read and written: open, with a path to open it again.
#[derive(Debug)]
pub(super) struct WorkFile {
    pub(super) open: File,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl WorkFile {
    /// Opens the file again in a run of the runtime.
    pub(super) async fn open(&self, io: &Io, how: OpenHow) -> ferry_io::Result<ferry_io::File> {
        let (folder, name) = (self.path.parent(), self.path.file_name());
        let name = name.and_then(|name| Name::new(name.as_encoded_bytes()));
        let (Some(folder), Some(name)) = (folder, name) else { unreachable!("it was made with both") };
        // Entries of /proc are links.
        io.open_dir(folder)?.open(&name, how.following()).await
    }
}

impl Work {
    /// Removes leftovers of killed runs from `folder`, and creates a hidden folder in it.
    pub(super) fn make(folder: &Path) -> Result<Self, Failure> {
        let failed = |error: &io::Error| Failure::file("create a folder in", folder, error);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = rustix::fs::open(folder, flags, Mode::empty()).map(File::from);
        let above = above.map_err(|errno| failed(&errno.into()))?;
        remove_leftovers(folder, &above);
        let process = std::process::id();
        for number in 0..TRIES {
            let name = format!("{PREFIX}{process}-{number}");
            match mkdirat(&above, &name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(failed(&errno.into())),
            }
            let open = match open_folder(&above, &name) {
                Ok(open) if lock_of(&open) != LockState::ByOther && is_same(&open, &above, &name) => open,
                other => {
                    // It is empty, so removing it is harmless even if another user has replaced it.
                    unlinkat(&above, &name, AtFlags::REMOVEDIR).ok();
                    if let Err(errno) = other
                        && errno != Errno::NOENT
                    {
                        return Err(Failure::file("work in a new folder in", folder, &errno.into()));
                    }
                    continue;
                }
            };
            let path = path_of(&open).unwrap_or_else(|| folder.join(&name));
            return Ok(Self { folder: folder.to_owned(), above, name, path, open, is_removed: false });
        }
        Err(failed(&io::Error::other(format!("{TRIES} names exist already"))))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the hidden folder, valid even if it is moved.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file: every block is allocated on the device, and none is cached.
    pub(super) fn file(&self, scale: &Scale, steps: &mut Steps<'_>) -> Result<WorkFile, Failure> {
        let bytes = self.size(scale)?;
        steps.begin("writing the file")?;
        let (open, path) = self.open_file()?;
        let failed = |error: std::io::Error| Failure::file("write a file in", &self.folder, &error);
        let begun = Instant::now();
        let mut piece = vec![0; usize::try_from(PIECE).unwrap_or(1)];
        let mut written = 0;
        let patience = Duration::from_secs(scale.file_seconds);
        while written < bytes && (written < LEAST_BYTES || begun.elapsed() < patience) {
            steps.check()?;
            fill(SEED, written, &mut piece);
            (&open).write_all(&piece).map_err(failed)?;
            open.sync_data().map_err(failed)?;
            written += PIECE;
        }
        // Only advice: cached pages would cost direct requests time.
        rustix::fs::fadvise(&open, 0, None, rustix::fs::Advice::DontNeed).ok();
        Ok(WorkFile { open, path, bytes: written })
    }

    /// Returns a file size that leaves other programs enough space.
    fn size(&self, scale: &Scale) -> Result<u64, Failure> {
        let Ok(facts) = fstatvfs(&self.open) else { return Ok(scale.file_bytes) };
        let short = |needed, free, unit| {
            Err(needs::Unmet::Space { what: "measuring", folder: self.folder.clone(), needed, free, unit }
                .into())
        };
        let free = facts.f_bavail.saturating_mul(facts.f_frsize);
        if free < LEAST_BYTES * SHARE {
            return short(LEAST_BYTES * SHARE, free, "B");
        }
        let names = u64::from(scale.creates) + NAMES;
        // Filesystems that allocate inodes on demand report 0.
        if facts.f_files > 0 && facts.f_favail < names {
            return short(names, facts.f_favail, "files");
        }
        Ok((free / SHARE / LEAST_BYTES * LEAST_BYTES).min(scale.file_bytes))
    }

    /// Creates an unnamed file (O_TMPFILE), or a named one in the hidden folder where O_TMPFILE or /proc is
    /// missing.
    fn open_file(&self) -> Result<(File, PathBuf), Failure> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let unnamed = openat(&self.open, c".", flags, Mode::RUSR | Mode::WUSR).map(File::from);
        if let Ok(file) = unnamed
            && let Some(path) = path_of(&file)
        {
            return Ok((file, path));
        }
        let path = self.path.join("file");
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| Failure::file("create a file in", &self.folder, &error))?;
        Ok((file, path))
    }

    /// Removes the folder, and reports a failure to do so.
    pub(super) fn remove(mut self) -> Result<(), Failure> {
        self.is_removed = true;
        let removed = self.remove_all();
        removed.map_err(|error| Failure::file("remove", &self.folder.join(&self.name), &error))
    }

    fn remove_all(&self) -> io::Result<()> {
        empty(&self.open)?;
        if !is_same(&self.open, &self.above, &self.name) {
            return Err(io::Error::other("it was moved away; its contents are removed"));
        }
        Ok(unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR)?)
    }
}

impl Drop for Work {
    /// Cleans up after a panic, which is the failure to report.
    fn drop(&mut self) {
        if !self.is_removed {
            self.remove_all().ok();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockState {
    Now,
    ByOther,
    /// The filesystem does not support locks.
    Never,
}

fn lock_of(folder: &File) -> LockState {
    match flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => LockState::Now,
        Err(rustix::io::Errno::WOULDBLOCK) => LockState::ByOther,
        Err(_) => LockState::Never,
    }
}

fn open_folder(above: &File, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty()).map(File::from)
}

/// Path to an open file that cannot be redirected. Requires /proc.
fn path_of(open: &File) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    let found = path.metadata().ok().map(number);
    (found.is_some() && found == open.metadata().ok().map(number)).then_some(path)
}

fn is_same(open: &File, above: &File, name: &str) -> bool {
    match (rustix::fs::fstat(open), statat(above, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(open), Ok(found)) => (open.st_dev, open.st_ino) == (found.st_dev, found.st_ino),
        _ => false,
    }
}

/// Removes the entries of a folder: files, links and empty folders.
fn empty(folder: &File) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => unlinkat(folder, name, AtFlags::REMOVEDIR)?,
            other => other?,
        }
    }
    Ok(())
}

/// Removes this user's folders of finished runs. A failure does not prevent the measurement.
fn remove_leftovers(folder: &Path, above: &File) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(numbers) = name.strip_prefix(PREFIX) else { continue };
        let is_ours = numbers.split('-').all(|number| number.parse::<u32>().is_ok());
        let Ok(open) = open_folder(above, name) else { continue };
        let is_own = open.metadata().is_ok_and(|found| found.uid() == ferry_io::user());
        if is_ours && is_own && lock_of(&open) == LockState::Now && empty(&open).is_ok() {
            unlinkat(above, name, AtFlags::REMOVEDIR).ok();
        }
    }
}

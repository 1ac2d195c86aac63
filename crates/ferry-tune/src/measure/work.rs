//! Where it is measured: one large file that has no name, and a hidden folder for what needs one.
//!
//! The folder is locked while it is worked in. One that a killed run has left is not, and is removed by the next run in
//! the same place; the large file is gone with its process.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ferry_io::{Io, Name, OpenHow};
use ferry_lab::load::fill;
use ferry_lab::{Failure, needs};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, statvfs};

use super::Scale;
use super::steps::{SEED, Steps};

/// What the hidden folder's name begins with; a process's number and another follow.
const PREFIX: &str = ".ferry-tune-";
/// So many names are tried.
const TRIES: u32 = 100;
/// The file is at least so large, or nothing is measured; and its size is in multiples of this.
const LEAST_BYTES: u64 = 16 << 20;
/// It takes at most this part of what is free.
const SHARE: u64 = 4;
/// So much is written before it is brought to the device: an interrupt waits for no more.
const PIECE: u64 = 4 << 20;

/// A locked folder of its own, and what it is in.
#[derive(Debug)]
pub(super) struct Work {
    folder: PathBuf,
    path: PathBuf,
    /// Holds the lock; none where there are no locks.
    _lock: File,
    is_removed: bool,
}

/// The file that is read and written; open, and by a path under which it can be opened again.
#[derive(Debug)]
pub(super) struct WorkFile {
    pub(super) open: File,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl WorkFile {
    /// Opens it again, in a run of the runtime.
    pub(super) async fn open(&self, io: &Io, how: OpenHow) -> ferry_io::Result<ferry_io::File> {
        let (folder, name) = (self.path.parent(), self.path.file_name());
        let name = name.and_then(|name| Name::new(name.as_encoded_bytes()));
        let (Some(folder), Some(name)) = (folder, name) else { unreachable!("it was made with both") };
        // What /proc has are links.
        io.open_dir(folder)?.open(&name, how.following()).await
    }
}

impl Work {
    /// Removes what killed runs have left in `folder`, and makes a folder in it.
    pub(super) fn make(folder: &Path) -> Result<Self, Failure> {
        remove_leftovers(folder);
        let process = std::process::id();
        for number in 0..TRIES {
            let path = folder.join(format!("{PREFIX}{process}-{number}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Failure::file("create a folder in", folder, &error)),
            }
            match File::open(&path) {
                Ok(lock) if lock_of(&lock) != Locked::ByOther && is_same(&lock, &path) => {
                    return Ok(Self { folder: folder.to_owned(), path, _lock: lock, is_removed: false });
                }
                // Another run took it for a leftover before it was locked.
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    // The umask may leave nothing of its rights. What could not be used is of no use to anybody.
                    std::fs::remove_dir(&path).ok();
                    return Err(Failure::file("work in a new folder in", folder, &error));
                }
            }
        }
        Err(Failure::File {
            verb: "create a folder in",
            path: folder.to_owned(),
            why: format!("{TRIES} names are taken"),
        })
    }

    /// The folder that is measured.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The hidden folder in it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file: every block is on the device, and none in memory.
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
        // That pages stay in memory only costs direct requests time; it is told by nothing else.
        rustix::fs::fadvise(&open, 0, None, rustix::fs::Advice::DontNeed).ok();
        Ok(WorkFile { open, path, bytes: written })
    }

    /// As large as there is room for without taking it from others.
    fn size(&self, scale: &Scale) -> Result<u64, Failure> {
        let Ok(facts) = statvfs(&self.folder) else { return Ok(scale.file_bytes) };
        let free = facts.f_bavail.saturating_mul(facts.f_frsize);
        let needed = LEAST_BYTES * SHARE;
        if free < needed {
            let folder = self.folder.clone();
            return Err(needs::Unmet::Space { what: "measuring", folder, needed, free, unit: "B" }.into());
        }
        Ok((free / SHARE / LEAST_BYTES * LEAST_BYTES).min(scale.file_bytes))
    }

    /// A file without a name (O_TMPFILE), or one in the hidden folder where the filesystem has no such files, or /proc no
    /// way back to it.
    fn open_file(&self) -> Result<(File, PathBuf), Failure> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let unnamed = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR).map(File::from);
        if let Ok(file) = unnamed {
            let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            if std::fs::metadata(&path).is_ok_and(|found| found.is_file()) {
                return Ok((file, path));
            }
        }
        let path = self.path.join("file");
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| Failure::file("create a file in", &self.folder, &error))?;
        Ok((file, path))
    }

    /// Removes it and says so if it can't be.
    pub(super) fn remove(mut self) -> Result<(), Failure> {
        self.is_removed = true;
        std::fs::remove_dir_all(&self.path).map_err(|error| Failure::file("remove", &self.path, &error))
    }
}

impl Drop for Work {
    /// After a panic, which is what is told.
    fn drop(&mut self) {
        if !self.is_removed {
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locked {
    Now,
    ByOther,
    /// There are no locks here.
    Never,
}

fn lock_of(folder: &File) -> Locked {
    match flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Locked::Now,
        Err(rustix::io::Errno::WOULDBLOCK) => Locked::ByOther,
        Err(_) => Locked::Never,
    }
}

/// Whether the path still leads to what is open.
fn is_same(open: &File, path: &Path) -> bool {
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (open.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(found)) => number(open) == number(found),
        _ => false,
    }
}

/// Removes this user's folders of runs that have ended. What can't be removed is no reason not to measure.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(numbers) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let is_ours = numbers.split('-').all(|number| number.parse::<u32>().is_ok());
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(open) = rustix::fs::open(entry.path(), flags, Mode::empty()).map(File::from) else { continue };
        let is_own = open.metadata().is_ok_and(|found| found.uid() == ferry_io::user());
        if is_ours && is_own && lock_of(&open) == Locked::Now {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

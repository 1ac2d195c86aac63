//! Requirements of an experiment, checked before anything is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, Mode, OFlags, StatVfsMountFlags, access, statvfs};
use rustix::io::Errno;

use crate::message::quoted;
use crate::search_path::find_program;
use crate::units::{figure, real};

/// Room that stays free.
const RESERVE_BYTES: u64 = 64 << 20;

/// A requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Free space in the work folder.
    Space {
        /// For data.
        bytes: u64,
        /// For files and folders.
        entries: u64,
    },
    /// A program on the PATH.
    Program(OsString),
    /// Permission to drop the kernel's caches.
    DropCaches,
    /// io_uring, permitted to this process.
    Ring,
    /// Direct I/O (O_DIRECT) in the work folder.
    DirectIo,
    /// Root.
    Root,
}

/// A requirement that is not met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// The folder is unusable.
    #[error("cannot work in {}: {why}", quoted(.folder.as_os_str()))]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Reason.
        why: String,
    },
    /// Too little space.
    #[error("{} needs {} and {} has {} free", .what, figure(real(*.needed), .unit), quoted(.folder.as_os_str()), figure(real(*.free), .unit))]
    Space {
        /// Purpose.
        what: &'static str,
        /// Path of the folder.
        folder: PathBuf,
        /// Required amount.
        needed: u64,
        /// Available amount.
        free: u64,
        /// `B` or `files`.
        unit: &'static str,
    },
    /// The program is not on the PATH.
    #[error("{} is not found on the PATH", quoted(.0))]
    Program(OsString),
    /// No permission to drop caches.
    #[error(
        "cold caches need the right to write /proc/sys/vm/drop_caches: run it as root, or leave out the cold state"
    )]
    DropCaches,
    /// io_uring is unavailable, for this reason.
    #[error("{0}")]
    Ring(String),
    /// No direct I/O.
    #[error("{} is on a filesystem without direct I/O (O_DIRECT): use --work-dir on another", quoted(.0.as_os_str()))]
    DirectIo(PathBuf),
    /// Not root.
    #[error("this experiment needs root")]
    Root,
}

/// Checks that `folder` is usable, that files can be made in it, and that every need is met.
///
/// # Errors
/// The first need that is not met.
pub fn check(needs: &[Need], folder: &Path) -> Result<(), Unmet> {
    let unusable = |why: String| Unmet::Folder { folder: folder.to_owned(), why };
    let known = |errno: Errno| unusable(ferry_io::Cause::Errno(errno).to_string());
    let facts = statvfs(folder).map_err(known)?;
    if !folder.is_dir() {
        return Err(known(Errno::NOTDIR));
    }
    if facts.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(known(Errno::ROFS));
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(known)?;
    met(needs, folder)
}

/// Checks that every need is met.
///
/// # Errors
/// The first need that is not met.
pub fn met(needs: &[Need], folder: &Path) -> Result<(), Unmet> {
    needs.iter().try_for_each(|need| need.check(folder))
}

impl Need {
    fn check(&self, folder: &Path) -> Result<(), Unmet> {
        match self {
            Self::Space { bytes, entries } => space(folder, *bytes, *entries),
            Self::Program(name) => find_program(name).map(drop).ok_or_else(|| Unmet::Program(name.clone())),
            Self::DropCaches => may_drop_caches().then_some(()).ok_or(Unmet::DropCaches),
            Self::Ring => ring().map_err(Unmet::Ring),
            Self::DirectIo => {
                has_direct_io(folder).then_some(()).ok_or_else(|| Unmet::DirectIo(folder.to_owned()))
            }
            Self::Root => ferry_io::is_superuser().then_some(()).ok_or(Unmet::Root),
        }
    }
}

fn space(folder: &Path, bytes: u64, entries: u64) -> Result<(), Unmet> {
    let short =
        |what, needed, free, unit| Unmet::Space { what, folder: folder.to_owned(), needed, free, unit };
    let Ok(facts) = statvfs(folder) else { return Ok(()) };
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let needed = bytes.saturating_add(RESERVE_BYTES);
    if free < needed {
        return Err(short("the experiment", needed, free, "B"));
    }
    // Filesystems that allocate inodes dynamically report 0.
    if facts.f_files > 0 && facts.f_favail < entries {
        return Err(short("the experiment", entries, facts.f_favail, "files"));
    }
    Ok(())
}

/// Returns true if this process may drop the kernel's caches.
#[must_use]
pub fn may_drop_caches() -> bool {
    // The file's mode alone is not enough: in a container /proc may be mounted read-only.
    let path = "/proc/sys/vm/drop_caches";
    access(path, Access::WRITE_OK).is_ok()
        && rustix::fs::accessat(CWD, path, Access::WRITE_OK, rustix::fs::AtFlags::EACCESS).is_ok()
}

/// Returns true if files in `folder` support O_DIRECT. Tries it on an unnamed file.
#[must_use]
pub fn has_direct_io(folder: &Path) -> bool {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    // Other errors mean that unnamed files are unsupported.
    !matches!(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR), Err(Errno::INVAL))
}

/// Checks that io_uring is available.
///
/// # Errors
/// The reason why it is not.
pub fn ring() -> Result<(), String> {
    let options = ferry_io::Options { backend: ferry_io::Backend::Uring, ..ferry_io::Options::default() };
    ferry_io::run(&options, async |_| ()).map(drop).map_err(|error| error.to_string())
}

//! What an experiment needs, checked before anything is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, Mode, OFlags, StatVfsMountFlags, access, statvfs};
use rustix::io::Errno;

use crate::command::find_program;
use crate::error::quoted;
use crate::units::{figure, real};

/// Room that is left free besides.
const RESERVE_BYTES: u64 = 64 << 20;

/// One thing that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// So much room in the work folder.
    Space {
        /// For data.
        bytes: u64,
        /// For files and folders.
        entries: u64,
    },
    /// A program on the PATH.
    Program(OsString),
    /// The right to drop the kernel's caches.
    DropCaches,
    /// io_uring, allowed to this process.
    Ring,
    /// Reads and writes past the page cache (O_DIRECT) in the work folder.
    DirectIo,
    /// To be root.
    Root,
}

/// What is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// The folder to work in is not usable.
    #[error("cannot work in {}: {why}", quoted(.folder.as_os_str()))]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why not.
        why: String,
    },
    /// Too little room.
    #[error("{} needs {} and {} has {} free", .what, figure(real(*.needed), .unit), quoted(.folder.as_os_str()), figure(real(*.free), .unit))]
    Space {
        /// What it is for.
        what: &'static str,
        /// Where.
        folder: PathBuf,
        /// How much is needed.
        needed: u64,
        /// How much there is.
        free: u64,
        /// Of what.
        unit: &'static str,
    },
    /// No such program.
    #[error("{} is not found on the PATH", quoted(.0))]
    Program(OsString),
    /// No right to drop caches.
    #[error(
        "cold caches need the right to write /proc/sys/vm/drop_caches: run it as root, or leave out the cold state"
    )]
    DropCaches,
    /// No io_uring.
    #[error("{0}")]
    Ring(String),
    /// No O_DIRECT.
    #[error("{} is on a filesystem without direct I/O (O_DIRECT): use --work-dir on another", quoted(.0.as_os_str()))]
    DirectIo(PathBuf),
    /// Not root.
    #[error("this experiment needs root")]
    Root,
}

/// Checks that `folder` can be worked in, and all that an experiment says it needs.
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
    // Filesystems that make inodes as they need them say 0.
    if facts.f_files > 0 && facts.f_favail < entries {
        return Err(short("the experiment", entries, facts.f_favail, "files"));
    }
    Ok(())
}

/// Whether this process may drop the kernel's caches.
#[must_use]
pub fn may_drop_caches() -> bool {
    // The file's mode alone does not say: in a container it may be on a read-only /proc.
    let path = "/proc/sys/vm/drop_caches";
    access(path, Access::WRITE_OK).is_ok()
        && rustix::fs::accessat(CWD, path, Access::WRITE_OK, rustix::fs::AtFlags::EACCESS).is_ok()
}

/// Whether files of `folder` can be opened for reads and writes past the page cache; asked with a file without a name.
#[must_use]
pub fn has_direct_io(folder: &Path) -> bool {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    // Any other refusal is about the file without a name.
    !matches!(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR), Err(Errno::INVAL))
}

/// Whether io_uring can be had.
///
/// # Errors
/// Why not, in words.
pub fn ring() -> Result<(), String> {
    let options = ferry_io::Options { backend: ferry_io::Backend::Uring, ..ferry_io::Options::default() };
    ferry_io::run(&options, async |_| ()).map(drop).map_err(|error| error.to_string())
}

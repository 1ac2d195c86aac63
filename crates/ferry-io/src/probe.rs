//! Cache state and identity of files, asked without changing them. A measurement proves with this that a cache is cold
//! or warm.
//!
//! ```
//! use ferry_io::Errno;
//! use ferry_io::probe::{InMemory, data, filesystem_uuid, has_dontcache, is_name_in_memory};
//!
//! # let temporary = tempfile::tempdir()?;
//! let path = temporary.path().join("file");
//! std::fs::write(&path, "text")?;
//! let file = std::fs::File::open(&path)?;
//! match data(&file, 0, 0) {
//!     Ok(InMemory { bytes, dirty_bytes, .. }) => assert!(bytes >= dirty_bytes),
//!     // Linux 6.5, unless a filter forbids the call.
//!     Err(errno) => assert!([Errno::NOSYS, Errno::PERM].contains(&errno)),
//! }
//! println!("its name is in memory: {:?}", is_name_in_memory(&path));
//! println!("uncached transfers: {}, filesystem {:?}", has_dontcache(&file), filesystem_uuid(&file));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

mod uuid;

pub use uuid::filesystem_uuid;

/// Page-cache state of a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InMemory {
    /// Cached bytes, in whole pages.
    pub bytes: u64,
    /// Cached bytes that are not yet on the device.
    pub dirty_bytes: u64,
}

/// Returns the cached part of `size` bytes from `offset` on (cachestat(2), Linux 6.5). A size of 0 extends to the end.
///
/// # Errors
/// ENOSYS before Linux 6.5, EPERM if a filter forbids the call, EBADF for a descriptor that is open for neither reading
/// nor writing, EOPNOTSUPP for hugetlbfs.
pub fn data(file: impl AsFd, offset: u64, size: u64) -> Result<InMemory, Errno> {
    let (bytes, dirty_bytes) = crate::sys::cached_bytes(file.as_fd(), offset, size)?;
    Ok(InMemory { bytes, dirty_bytes })
}

/// Returns true if every component of `path` and its inode are cached: openat2(2) with RESOLVE_CACHED (Linux 5.12)
/// would not block. Reads nothing, does not follow a link at the end, and opens with O_PATH only.
///
/// # Errors
/// Those of openat2(2) except EAGAIN; ENOSYS or EINVAL if the kernel lacks the flag.
pub fn is_name_in_memory(path: &Path) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = path.as_os_str().as_bytes();
    let open = || rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED);
    match rustix::io::retry_on_intr(open) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns true if a file, open for reading, can be read without keeping its pages (RWF_DONTCACHE, trusted from Linux
/// 6.16 on). Reads one byte to find out.
#[must_use]
pub fn has_dontcache(file: impl AsFd) -> bool {
    crate::sys::has_dontcache(file.as_fd())
}

#[cfg(test)]
mod tests;

//! What of a file is in memory, asked without changing it: how a measurement proves that a cache is cold, or warm. And
//! whether its pages need be kept there at all, and which filesystem it is on.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

mod uuid;

pub use uuid::filesystem_uuid;

/// What the page cache holds of a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InMemory {
    /// Bytes that are in memory, in whole pages.
    pub bytes: u64,
    /// How many of those are not yet on the device.
    pub dirty_bytes: u64,
}

/// What is in memory of the `size` bytes from `offset` on (cachestat(2), Linux 6.5). A size of 0 means: to the end.
///
/// # Errors
/// ENOSYS before Linux 6.5, EPERM where a filter forbids it, EBADF for a descriptor that was not opened for reading or
/// writing, EOPNOTSUPP for hugetlbfs.
pub fn data(file: impl AsFd, offset: u64, size: u64) -> Result<InMemory, Errno> {
    let (bytes, dirty_bytes) = crate::sys::cached_bytes(file.as_fd(), offset, size)?;
    Ok(InMemory { bytes, dirty_bytes })
}

/// Whether every name of `path` and the inode it leads to are in memory: openat2(2) with RESOLVE_CACHED (Linux 5.12)
/// would not have to wait for a device. Nothing is read to find out, links are not followed at the end, and nothing
/// is opened for reading or writing (O_PATH).
///
/// # Errors
/// Those of openat2(2), but EAGAIN, which is the answer "no"; ENOSYS or EINVAL where the kernel can't be asked.
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

/// Whether bytes of a file, which is open for reading, can be had without keeping their pages (RWF_DONTCACHE, trusted from
/// Linux 6.16 on); a byte is read to find out.
#[must_use]
pub fn has_dontcache(file: impl AsFd) -> bool {
    crate::sys::has_dontcache(file.as_fd())
}

#[cfg(test)]
mod tests;

//! Texts of links, and what is read of a folder that is entered.

use std::ffi::{CStr, CString};

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::counted::call;
use crate::entry::Stat;
use crate::op::FileOrEntry;

/// An open link is read by the empty name.
pub(super) fn read_link(place: &FileOrEntry) -> Result<Vec<u8>, Errno> {
    match place {
        FileOrEntry::Open(link) => read_link_at(link.fd(), c""),
        FileOrEntry::Entry(dir, name) => read_link_at(dir.fd(), name.as_c_str()),
    }
}

/// Returns the text of a link.
pub(super) fn read_link_at(dir: BorrowedFd<'_>, name: &CStr) -> Result<Vec<u8>, Errno> {
    let read = || rustix::fs::readlinkat(dir, name, Vec::with_capacity(256));
    call(read).map(CString::into_bytes)
}

/// Attributes of an open folder, and if statx(2) tells, whether it is the root of a mount.
pub(super) fn stat_folder(folder: BorrowedFd<'_>) -> Result<(Stat, Option<bool>), Errno> {
    match call(|| rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)) {
        Ok(found) => {
            let is_mount_root = found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
            Ok((Stat::from_statx(&found), Some(is_mount_root)))
        }
        // Before Linux 4.11, or filtered.
        Err(Errno::NOSYS | Errno::PERM) => {
            Ok((Stat::from_kernel(&call(|| rustix::fs::fstat(folder))?), None))
        }
        Err(errno) => Err(errno),
    }
}

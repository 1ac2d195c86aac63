//! Opening one component beneath a folder, and making files without a name.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::counted::{Patience, call};
use crate::name::Name;

/// Opens one component beneath `dir`.
pub(super) fn open(
    dir: BorrowedFd<'_>,
    name: &Name,
    flags: OFlags,
    mode: Mode,
    patience: Patience,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let can_ask = !flags.intersects(OFlags::CREATE | OFlags::TRUNC | OFlags::TMPFILE);
    if patience == Patience::Ask && can_ask {
        let resolve = ResolveFlags::CACHED;
        match call(|| rustix::fs::openat2(dir, name.as_c_str(), flags, Mode::empty(), resolve)) {
            // The kernel (before 5.12) or a container's filter lacks openat2(2): no way to ask.
            Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => {}
            answer => return answer,
        }
    }
    call(|| rustix::fs::openat(dir, name.as_c_str(), flags, mode))
}

/// A file without a name, for writing and reading.
pub(super) fn open_unnamed(dir: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    call(|| rustix::fs::openat(dir, c".", flags, mode))
}

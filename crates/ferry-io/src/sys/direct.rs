//! Direct I/O and advice on the page cache, as plain calls.

use std::io::IoSliceMut;

use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::bytes::{RWF_DONTCACHE, is_dontcache_sound};
use super::call;
use crate::entry::DirectSupport;

/// Asks with STATX_DIOALIGN (Linux 6.1).
pub(crate) fn direct_support(file: BorrowedFd<'_>) -> DirectSupport {
    if call(|| rustix::fs::fstatfs(file)).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC) {
        return DirectSupport::InMemory;
    }
    let Ok(found) = call(|| rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)) else {
        return DirectSupport::Unreported;
    };
    if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN) {
        return DirectSupport::Unreported;
    }
    match found.stx_dio_mem_align.max(found.stx_dio_offset_align) {
        0 => DirectSupport::Unsupported,
        bytes => DirectSupport::Unit(bytes.into()),
    }
}

/// Tries RWF_DONTCACHE with a read of one byte.
pub(crate) fn has_dontcache(file: BorrowedFd<'_>) -> bool {
    let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
    let mut byte = [0];
    is_dontcache_sound()
        && call(|| rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, flags)).is_ok()
}

/// Asks for more read-ahead (POSIX_FADV_SEQUENTIAL). Advice only: failure changes nothing.
pub(crate) fn expect_sequential(file: BorrowedFd<'_>) {
    call(|| rustix::fs::fadvise(file, 0, None, Advice::Sequential)).ok();
}

/// Drops a range's clean pages from the page cache (POSIX_FADV_DONTNEED).
pub(crate) fn forget_cached(file: BorrowedFd<'_>, at: u64, size: u64) -> Result<(), Errno> {
    let size = std::num::NonZeroU64::new(size);
    call(|| rustix::fs::fadvise(file, at, size, Advice::DontNeed))
}

/// Sets or clears O_DIRECT on an open file (F_SETFL of fcntl(2)).
pub(crate) fn set_direct(file: BorrowedFd<'_>, is_direct: bool) -> Result<(), Errno> {
    let mut flags = call(|| rustix::fs::fcntl_getfl(file))?;
    flags.set(OFlags::DIRECT, is_direct);
    call(|| rustix::fs::fcntl_setfl(file, flags))
}

/// The filesystem's block size in bytes (`st_blksize`); 0 if fstat(2) fails.
pub(crate) fn block_bytes(file: BorrowedFd<'_>) -> u64 {
    call(|| rustix::fs::fstat(file)).map_or(0, |found| u64::try_from(found.st_blksize).unwrap_or(0))
}

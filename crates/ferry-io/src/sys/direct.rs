//! What the kernel says about direct I/O to a file, and about leaving the page cache alone.

use std::io::IoSliceMut;

use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::bytes::{RWF_DONTCACHE, is_dontcache_sound};
use super::call;
use crate::entry::DirectAlignment;

/// STATX_DIOALIGN (Linux 6.1).
pub(crate) fn direct_alignment(file: BorrowedFd<'_>) -> DirectAlignment {
    let Ok(found) = call(|| rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)) else {
        return DirectAlignment::Untold;
    };
    if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN) {
        return DirectAlignment::Untold;
    }
    match found.stx_dio_mem_align.max(found.stx_dio_offset_align) {
        0 => DirectAlignment::None,
        bytes => DirectAlignment::Bytes(bytes.into()),
    }
}

/// Whether a file is on tmpfs, which takes O_DIRECT (Linux 6.6) and has nothing but the page cache.
pub(crate) fn is_in_memory(file: BorrowedFd<'_>) -> bool {
    call(|| rustix::fs::fstatfs(file)).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC)
}

/// Whether RWF_DONTCACHE works for a file, which is open for reading: asked by a read of a byte.
pub(crate) fn has_dontcache(file: BorrowedFd<'_>) -> bool {
    let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
    let mut byte = [0];
    is_dontcache_sound()
        && call(|| rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, flags)).is_ok()
}

/// Has the kernel read further ahead of a file that is read in order.
pub(crate) fn expect_sequential(file: BorrowedFd<'_>) {
    // Only advice: the bytes are the same without it.
    call(|| rustix::fs::fadvise(file, 0, None, Advice::Sequential)).ok();
}

/// Has the page cache forget a range that the device has.
pub(crate) fn forget_cached(file: BorrowedFd<'_>, at: u64, size: u64) -> Result<(), Errno> {
    let size = std::num::NonZeroU64::new(size);
    call(|| rustix::fs::fadvise(file, at, size, Advice::DontNeed))
}

/// Has an open file's transfers go past the page cache (O_DIRECT) or through it, from now on (F_SETFL of fcntl(2)).
pub(crate) fn set_direct(file: BorrowedFd<'_>, is_direct: bool) -> Result<(), Errno> {
    let mut flags = call(|| rustix::fs::fcntl_getfl(file))?;
    flags.set(OFlags::DIRECT, is_direct);
    call(|| rustix::fs::fcntl_setfl(file, flags))
}

/// What a file's filesystem calls a block (`st_blksize`); 0 if it can't be asked.
pub(crate) fn block_bytes(file: BorrowedFd<'_>) -> u64 {
    call(|| rustix::fs::fstat(file)).map_or(0, |found| u64::try_from(found.st_blksize).unwrap_or(0))
}

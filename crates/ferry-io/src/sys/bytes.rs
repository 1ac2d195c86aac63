//! Calls that move bytes or shape files.

use std::sync::OnceLock;

use rustix::fd::{AsRawFd as _, BorrowedFd};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::{Errno, IoSlice, IoSliceMut, ReadWriteFlags};

use super::{Patience, call, checked, count_call};
use crate::buffers::Block;
use crate::op::{AT_POSITION, Op};
use crate::vectored;

/// `RWF_DONTCACHE` (Linux 6.14): write back at once and drop the pages.
pub(super) const RWF_DONTCACHE: u32 = 0x80;

/// Returns true if RWF_DONTCACHE is sound: before 6.16 the kernel may drop pages that a reader uses.
pub(crate) fn is_dontcache_sound() -> bool {
    static IS_SOUND: OnceLock<bool> = OnceLock::new();
    *IS_SOUND.get_or_init(|| is_kernel_at_least((6, 16)))
}

/// Returns true if the kernel's release is at least `wanted`.
pub(crate) fn is_kernel_at_least(wanted: (u32, u32)) -> bool {
    rustix::system::uname().release().to_str().is_ok_and(|release| is_at_least(release, wanted))
}

/// Compares a release such as `6.18.4-rc1` with `wanted`.
fn is_at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= wanted,
        _ => false,
    }
}

/// Reads into the block from its byte `skip` on, and ends its filled part there.
pub(super) fn read(
    file: BorrowedFd<'_>,
    block: &mut Option<Block>,
    skip: usize,
    size: usize,
    at: u64,
    patience: Patience,
) -> Result<usize, Errno> {
    let block = block.as_mut().ok_or(Errno::FAULT)?;
    let count = read_into(file, block, skip, size, at, patience)?;
    block.set_filled(skip + count);
    Ok(count)
}

/// copy_file_range(2), each side a descriptor and an offset.
pub(super) fn copy_range(
    (source, mut from): (BorrowedFd<'_>, u64),
    (target, mut to): (BorrowedFd<'_>, u64),
    size: usize,
) -> Result<usize, Errno> {
    call(|| rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), size))
}

/// FICLONE.
pub(super) fn clone(source: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    call(|| rustix::fs::ioctl_ficlone(target, source))
}

/// Finds data or a hole (SEEK_DATA, SEEK_HOLE); `None` past the last.
pub(super) fn seek(file: BorrowedFd<'_>, at: u64, hole: bool) -> Result<Option<u64>, Errno> {
    let to = if hole { SeekFrom::Hole(at) } else { SeekFrom::Data(at) };
    match call(|| rustix::fs::seek(file, to)) {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// fallocate(2) that keeps the size.
pub(super) fn allocate(file: BorrowedFd<'_>, at: u64, size: u64) -> Result<(), Errno> {
    call(|| rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, at, size))
}

/// Reads at most `size` bytes at `at` into the block from its byte `skip` on.
pub(super) fn read_into(
    file: BorrowedFd<'_>,
    block: &mut Block,
    skip: usize,
    size: usize,
    at: u64,
    patience: Patience,
) -> Result<usize, Errno> {
    let memory = block.as_mut_capacity();
    let end = memory.len().min(skip.saturating_add(size));
    let memory = memory.get_mut(skip..end).ok_or(Errno::FAULT)?;
    if patience != Patience::Wait
        && at != AT_POSITION
        && let Some(answer) = ask(file, &mut [IoSliceMut::new(memory)], at)
    {
        return answer;
    }
    if at == AT_POSITION {
        return call(|| rustix::io::read(file, &mut *memory));
    }
    call(|| rustix::io::pread(file, &mut *memory, at))
}

/// Reads into several blocks from byte `skip` of them all on, and ends there what they hold.
pub(super) fn read_vectored(
    file: BorrowedFd<'_>,
    (blocks, skip): (&mut [Block], usize),
    at: u64,
    uncached: bool,
    patience: Patience,
) -> Result<usize, Errno> {
    let mut parts = vectored::to_fill(blocks, skip);
    let asked = if patience == Patience::Wait { None } else { ask(file, &mut parts, at) };
    let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
    let count = match asked {
        Some(answer) => answer?,
        None if uncached => call(|| rustix::io::preadv2(file, &mut parts, at, flags))?,
        None => call(|| rustix::io::preadv(file, &mut parts, at))?,
    };
    vectored::set_filled(blocks, skip + count);
    Ok(count)
}

/// Reads cached bytes; `None` if the kernel can't be asked.
fn ask(file: BorrowedFd<'_>, parts: &mut [IoSliceMut<'_>], at: u64) -> Option<Result<usize, Errno>> {
    match call(|| rustix::io::preadv2(file, parts, at, ReadWriteFlags::NOWAIT)) {
        // tmpfs and others answer from memory anyway; slow filesystems are found out by their times.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => None,
        // Linux 5.9 and 5.10 may report the end too early (preadv2(2), BUGS).
        Ok(0) if parts.iter().any(|part| !part.is_empty()) => None,
        answer => Some(answer),
    }
}

/// Writes the block's bytes from `skip` on at `at`.
pub(super) fn write(
    file: BorrowedFd<'_>,
    block: Option<&Block>,
    skip: usize,
    at: u64,
) -> Result<usize, Errno> {
    let bytes = block.and_then(|block| block.as_slice().get(skip..)).ok_or(Errno::FAULT)?;
    if at == AT_POSITION {
        return call(|| rustix::io::write(file, bytes));
    }
    call(|| rustix::io::pwrite(file, bytes, at))
}

/// Writes the blocks' bytes from byte `skip` of all on.
pub(super) fn write_vectored(
    file: BorrowedFd<'_>,
    (blocks, skip): (&[Block], usize),
    at: u64,
    uncached: bool,
) -> Result<usize, Errno> {
    let parts = vectored::to_write(blocks, skip);
    if uncached {
        let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
        return call(|| rustix::io::pwritev2(file, &parts, at, flags));
    }
    call(|| rustix::io::pwritev(file, &parts, at))
}

/// The bytes of a write request.
pub(crate) fn bytes_to_write(op: &Op) -> Option<&[u8]> {
    let Op::Write { block: Some(block), skip, .. } = op else { return None };
    block.as_slice().get(*skip..)
}

/// Writes adjacent requests in one call; returns the total number of bytes.
pub(crate) fn write_joined<'a>(ops: impl Iterator<Item = &'a Op> + Clone) -> Result<usize, Errno> {
    let Some(Op::Write { file, at, .. }) = ops.clone().next() else { return Err(Errno::INVAL) };
    let slices: Vec<_> = ops.filter_map(bytes_to_write).map(IoSlice::new).collect();
    call(|| rustix::io::pwritev(file.fd(), &slices, *at))
}

/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE: starts writing the range back.
pub(super) fn start_write_back(file: BorrowedFd<'_>, at: u64, size: u64) -> Result<(), Errno> {
    sync_range(file, (at, size), libc::SYNC_FILE_RANGE_WRITE)
}

/// sync_file_range(2) as fsync(2) would do it for the range's bytes alone.
pub(super) fn finish_write_back(file: BorrowedFd<'_>, at: u64, size: u64) -> Result<(), Errno> {
    sync_range(file, (at, size), FINISH)
}

fn sync_range(file: BorrowedFd<'_>, (at, size): (u64, u64), flags: libc::c_uint) -> Result<(), Errno> {
    let (at, size) = (at.cast_signed(), size.cast_signed());
    call(|| {
        // SAFETY: takes only integers.
        let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), at, size, flags) };
        checked(answer.into()).map(|_| ())
    })
}

/// Brings a range to the device, including pages already being written.
const FINISH: libc::c_uint =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

#[repr(C)]
struct CachestatRange {
    at: u64,
    size: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    write_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

const SYS_CACHESTAT: libc::c_long = 451;

/// Cached bytes of a range, and the dirty ones among them (cachestat(2), Linux 6.5).
pub(crate) fn cached_bytes(file: BorrowedFd<'_>, at: u64, size: u64) -> Result<(u64, u64), Errno> {
    let range = CachestatRange { at, size };
    let mut found = Cachestat::default();
    count_call();
    // SAFETY: both structures have the kernel's layout and outlive the call.
    let answer =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut found, 0_u32) };
    checked(answer)?;
    let page = rustix::param::page_size() as u64;
    Ok((found.cached * page, (found.dirty + found.write_back) * page))
}

#[cfg(test)]
mod tests {
    use super::is_at_least;

    #[test]
    fn releases_are_compared_by_number() {
        for release in ["6.16.0", "6.16", "6.18.44-fc-v669", "10.0-rc1"] {
            assert!(is_at_least(release, (6, 16)), "{release}");
        }
        for release in ["6.14.11-generic", "6.9", "5.19.0", "", "odd", "6"] {
            assert!(!is_at_least(release, (6, 16)), "{release}");
        }
    }
}

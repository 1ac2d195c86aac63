//! Transfers past the page cache (O_DIRECT): switching an open file, asking for its alignment, and moving a caller's
//! own blocks. `ferry-direct` builds its cached files on this.
//!
//! One descriptor is switched back and forth because a second one would need the file's name again: the name may belong
//! to another file by then, and a file without a name could not be opened at all.

use std::ops::Range;

use rustix::io::Errno;

use crate::buffers::{Block, Blocks};
use crate::descriptor::{Descriptor, File};
use crate::entry::DirectSupport;
use crate::error::{Result, SetupError};
use crate::file::blocks_of;
use crate::op::{Op, Outcome, expect_outcome};
use crate::sys;
use crate::vectored;
use crate::worker::submit_overlapping;

/// Smallest unit of direct requests, in bytes. The page cache holds whole pages, so smaller requests would still share
/// a page with buffered ones.
const SMALLEST_UNIT: u64 = 4096;

/// Unit that offsets, sizes and memory of direct requests are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectUnit {
    /// The unit in bytes.
    pub bytes: u64,
    /// True if the filesystem reported it (STATX_DIOALIGN, Linux 6.1). Otherwise, as on btrfs, it is a guess: the
    /// filesystem's block size (`st_blksize`). If the guess is wrong, requests fail with EINVAL.
    pub is_reported: bool,
}

/// Unit of [`map_blocks`], in bytes.
const PAGE: usize = 4096;

/// Reason why a file's transfers go through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyBuffered {
    /// Opening or switching the file failed; EINVAL if the filesystem has no direct I/O.
    Refused(Errno),
    /// The filesystem has no direct I/O for this file: it is encrypted, or its data is journalled.
    NotThisFile,
    /// The filesystem is in memory.
    InMemory,
    /// The filesystem's unit, in bytes, does not divide the block size.
    Alignment(u64),
    /// The filesystem reports no alignment, and a trial read of a block failed.
    Tried(Errno),
    /// The name belonged to another file when it was opened for the second time.
    Replaced,
}

/// Maps `count` blocks of `block_bytes` each, apart from the run's own. They are aligned to a page and use large pages
/// where available, so that a request over neighbouring blocks has few parts.
///
/// # Errors
/// [`SetupError::BadOption`] if `block_bytes` is no multiple of 4096, or if the blocks exceed the address space;
/// [`SetupError::NoMemory`] if the mapping fails.
pub fn map_blocks(count: usize, block_bytes: usize) -> std::result::Result<Vec<Block>, SetupError> {
    let bad = |name, value, allowed| SetupError::BadOption { name, value, allowed };
    if block_bytes == 0 || !block_bytes.is_multiple_of(PAGE) {
        return Err(bad("block size", block_bytes, "a multiple of 4096"));
    }
    let fits = count.checked_mul(block_bytes).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if !fits || u32::try_from(count).is_err() {
        return Err(bad("number of blocks", count, "small enough for the address space"));
    }
    let memory = Blocks::map(count, block_bytes)?;
    memory.want_large_pages();
    Ok(memory.take_all())
}

impl File {
    /// Switches to transfers past the page cache (O_DIRECT) and returns their unit. No transfer of this file may be in
    /// flight.
    ///
    /// # Errors
    /// The reason why the file has no direct I/O; its transfers stay buffered.
    pub fn set_direct(&self) -> std::result::Result<DirectUnit, WhyBuffered> {
        self.switch(true).map_err(WhyBuffered::Refused)?;
        let unit = match self.direct_support() {
            DirectSupport::InMemory => Err(WhyBuffered::InMemory),
            DirectSupport::Unsupported => Err(WhyBuffered::NotThisFile),
            DirectSupport::Unit(bytes) => {
                Ok(DirectUnit { bytes: bytes.max(SMALLEST_UNIT), is_reported: true })
            }
            DirectSupport::Unreported => {
                Ok(DirectUnit { bytes: self.filesystem_block().max(SMALLEST_UNIT), is_reported: false })
            }
        };
        if unit.is_err() {
            self.set_buffered();
        }
        unit
    }

    /// Switches back to transfers through the page cache.
    pub fn set_buffered(&self) {
        // Can't fail for an open file; if it did, unaligned requests would fail with EINVAL.
        self.switch(false).ok();
    }

    fn switch(&self, is_direct: bool) -> std::result::Result<(), Errno> {
        match &*self.fd() {
            Descriptor::Real(handle) => {
                sys::set_direct(handle.fd(), is_direct)?;
                handle.note_direct(is_direct);
                Ok(())
            }
            Descriptor::Sim(descriptor) => descriptor.set_direct(is_direct),
        }
    }

    /// Returns the alignment that direct I/O on this file requires, or the reason why none is known (STATX_DIOALIGN of
    /// statx(2), Linux 6.1). One system call; it does not read from the device.
    #[must_use]
    pub fn direct_support(&self) -> DirectSupport {
        match &*self.fd() {
            Descriptor::Real(handle) => sys::direct_support(handle.fd()),
            Descriptor::Sim(descriptor) => descriptor.direct_support(),
        }
    }

    /// The filesystem's block size in bytes (`st_blksize`).
    fn filesystem_block(&self) -> u64 {
        match &*self.fd() {
            Descriptor::Real(handle) => sys::block_bytes(handle.fd()),
            Descriptor::Sim(_) => SMALLEST_UNIT,
        }
    }

    /// Returns true if transfers of this file, which is open for reading, may be uncached (RWF_DONTCACHE): their pages
    /// leave the page cache once they are on the device.
    #[must_use]
    pub fn has_uncached(&self) -> bool {
        match &*self.fd() {
            Descriptor::Real(handle) => sys::has_dontcache(handle.fd()),
            Descriptor::Sim(_) => false,
        }
    }

    /// Asks the kernel to drop the clean pages of a range from the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED).
    /// `offset` and `size` are in bytes; a size of 0 means up to the end. Errors are ignored, and pages may stay.
    /// A simulated file has no page cache.
    pub fn forget_cached(&self, offset: u64, size: u64) {
        if let Descriptor::Real(handle) = &*self.fd() {
            sys::forget_cached(handle.fd(), offset, size).ok();
        }
    }

    /// Reads at `offset` into the blocks' memory after its first `skip` bytes, by one call (preadv2(2)). Returns the
    /// blocks and the number of bytes read: it may be smaller than the room, and is 0 at the end of the file. With
    /// `uncached`, the pages leave the page cache afterwards (RWF_DONTCACHE). Routed as a request whose fiber has other
    /// work meanwhile.
    pub async fn read_blocks_at(
        &self,
        blocks: Vec<Block>,
        skip: usize,
        offset: u64,
        uncached: bool,
    ) -> (Vec<Block>, Result<usize>) {
        let op = Op::ReadVectored { file: self.fd(), blocks, skip, at: offset, uncached };
        let (op, result) = submit_overlapping(op).await;
        (blocks_of(op), expect_outcome!(result, Outcome::Count(count) => count))
    }

    /// Writes the bytes of `range` of the blocks' memory at `offset`, by one call (pwritev2(2)). Returns the blocks and
    /// the number of bytes written, which may be smaller than the range. With `uncached`, the pages leave the page
    /// cache once they are on the device (RWF_DONTCACHE). Routed as a request whose fiber has other work meanwhile.
    pub async fn write_blocks_at(
        &self,
        mut blocks: Vec<Block>,
        range: Range<usize>,
        offset: u64,
        uncached: bool,
    ) -> (Vec<Block>, Result<usize>) {
        vectored::set_filled(&mut blocks, range.end);
        let op = Op::WriteVectored { file: self.fd(), blocks, skip: range.start, at: offset, uncached };
        let (op, result) = submit_overlapping(op).await;
        (blocks_of(op), expect_outcome!(result, Outcome::Count(count) => count))
    }
}

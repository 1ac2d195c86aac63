//! First difference between the contents of two files of equal size.

use super::difference::Side;
use super::progress::Progress;
use crate::attributes::Attributes;
use crate::extents::{self, read_full};
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

const BLOCK_BYTES: usize = 1 << 18;
/// Minimum size of a file for which the kernel is advised to read further ahead.
const LARGE_BYTES: u64 = 1 << 20;

/// Blocks of both sides, reused from file to file by one thread.
#[derive(Debug)]
pub struct Buffers {
    source: Vec<u8>,
    target: Vec<u8>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { source: vec![0; BLOCK_BYTES], target: vec![0; BLOCK_BYTES] }
    }
}

/// Two open files, and their attributes from before they were opened.
pub(super) struct Files<'a> {
    pub(super) source: BorrowedFd<'a>,
    pub(super) target: BorrowedFd<'a>,
    pub(super) source_attributes: &'a Attributes,
    pub(super) target_attributes: &'a Attributes,
}

impl Files<'_> {
    /// Returns the offset of the first byte in `range` that differs or that only one side has. A range with the last byte
    /// goes on to the actual end, because files of /proc have size zero.
    pub(super) fn first_difference(
        &self,
        range: Range<u64>,
        buffers: &mut Buffers,
        progress: &Progress,
    ) -> Result<Option<u64>, (Side, Errno)> {
        let size = self.source_attributes.size;
        let last = range.end.min(size);
        let bytes = last.saturating_sub(range.start);
        if let Some(bytes) = NonZeroU64::new(bytes).filter(|bytes| bytes.get() > LARGE_BYTES) {
            for file in [self.source, self.target] {
                // Only advice: not every file accepts it.
                fadvise(file, range.start, Some(bytes), Advice::Sequential).ok();
            }
        }
        let mut offset = range.start;
        while offset < last && !progress.is_stopped() {
            let Some((start, end)) = self.data(offset, last)? else { break };
            offset = start;
            while offset < end && !progress.is_stopped() {
                let left = usize::try_from(end - offset).unwrap_or(usize::MAX).min(BLOCK_BYTES);
                let equal = self.block(buffers, offset, left)?;
                progress.bytes.fetch_add(equal.bytes, Relaxed);
                offset += equal.bytes;
                if equal.differs {
                    return Ok(Some(offset));
                }
                if equal.bytes < count(left) {
                    // Both end before their size: files of /sys have size 4096.
                    return Ok(None);
                }
            }
        }
        if range.end < size { Ok(None) } else { self.behind(buffers, size, progress) }
    }

    /// Returns the offset of the first difference behind the common size.
    fn behind(
        &self,
        buffers: &mut Buffers,
        size: u64,
        progress: &Progress,
    ) -> Result<Option<u64>, (Side, Errno)> {
        let mut offset = size;
        while !progress.is_stopped() {
            let equal = self.block(buffers, offset, BLOCK_BYTES)?;
            progress.bytes.fetch_add(equal.bytes, Relaxed);
            offset += equal.bytes;
            if equal.bytes < count(BLOCK_BYTES) {
                return Ok(equal.differs.then_some(offset));
            }
        }
        Ok(None)
    }

    /// Returns the next run before `last` that is data on either side, or all the rest if neither side seems to have holes.
    fn data(&self, offset: u64, last: u64) -> Result<Option<(u64, u64)>, (Side, Errno)> {
        let dense = |attributes: &Attributes| attributes.allocated >= attributes.size;
        if dense(self.source_attributes) || dense(self.target_attributes) {
            return Ok(Some((offset, last)));
        }
        let source = extents::next(self.source, offset, last).map_err(|errno| (Side::Source, errno))?;
        let target = extents::next(self.target, offset, last).map_err(|errno| (Side::Target, errno))?;
        let first = source.into_iter().chain(target).min();
        Ok(first.map(|extent| (extent.offset, extent.end())))
    }

    fn block(&self, buffers: &mut Buffers, offset: u64, size: usize) -> Result<Equal, (Side, Errno)> {
        let (source, target) = (&mut buffers.source[..size], &mut buffers.target[..size]);
        let got_source = read_full(self.source, source, offset).map_err(|errno| (Side::Source, errno))?;
        let got_target = read_full(self.target, target, offset).map_err(|errno| (Side::Target, errno))?;
        let (source, target) = (&source[..got_source], &target[..got_target]);
        let equal = if source == target {
            source.len()
        } else {
            source.iter().zip(target).take_while(|(a, b)| a == b).count()
        };
        Ok(Equal { bytes: count(equal), differs: equal < source.len().max(target.len()) })
    }
}

/// Number of equal bytes, and whether a difference or the end of one side follows.
struct Equal {
    bytes: u64,
    differs: bool,
}

fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

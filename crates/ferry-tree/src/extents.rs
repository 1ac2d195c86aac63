//! Where a file has data and where it has holes (`SEEK_DATA`, `SEEK_HOLE`, lseek(2)).

use crate::describe::Extent;
use rustix::fd::AsFd;
use rustix::fs::{Advice, SeekFrom, fadvise, fdatasync, seek};
use rustix::io::{Errno, Result};

/// The first run of data at or after `offset`, ending at `size` at most; `None` if only a hole is left.
/// A filesystem that can't tell has data everywhere.
pub(crate) fn next(file: impl AsFd, offset: u64, size: u64) -> Result<Option<Extent>> {
    if offset >= size {
        return Ok(None);
    }
    let start = match seek(&file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(Extent { offset, size: size - offset })),
        Err(errno) => return Err(errno),
    };
    // The hole may have been punched, or the file cut, since: then there is nothing at `start` any more.
    let end = match seek(&file, SeekFrom::Hole(start)) {
        Ok(end) => end.min(size),
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    Ok((start < end).then_some(Extent { offset: start, size: end.saturating_sub(start) }))
}

/// All runs of data in a file of `size` bytes.
pub(crate) fn list(file: impl AsFd, size: u64) -> Result<Vec<Extent>> {
    let mut extents: Vec<Extent> = Vec::new();
    let mut offset = 0;
    while let Some(extent) = next(&file, offset, size)? {
        offset = extent.end();
        match extents.last_mut() {
            // ext4 and XFS may name two extents of data that touch.
            Some(last) if last.end() == extent.offset => last.size += extent.size,
            _ => extents.push(extent),
        }
    }
    Ok(extents)
}

/// Makes what `SEEK_DATA` and `st_blocks` say about a file final: writes it back, and drops what is cached of it.
/// Until then delayed allocations count as data, and so do cached pages of preallocated blocks.
pub(crate) fn settle(file: impl AsFd) {
    // Where neither can be done, what is known already has to do.
    fdatasync(&file).ok();
    fadvise(&file, 0, None, Advice::DontNeed).ok();
}

/// Reads until `buffer` is full or the file ends, and says how much that was.
pub(crate) fn read_full(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let position = offset + u64::try_from(done).unwrap_or(0);
        match rustix::io::pread(&file, &mut buffer[done..], position) {
            Ok(0) => break,
            Ok(size) => done += size,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

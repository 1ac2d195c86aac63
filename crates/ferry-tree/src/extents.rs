//! Data and holes of a file (`SEEK_DATA`, `SEEK_HOLE`, lseek(2)).

use crate::describe::Extent;
use rustix::fd::AsFd;
use rustix::fs::{Advice, SeekFrom, fadvise, fdatasync, seek};
use rustix::io::{Errno, Result};

/// Returns the first run of data at or after `offset`, cut at `size`; `None` if only a hole is left. Where the
/// filesystem cannot report holes, everything counts as data.
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
    // The hole may have been punched, or the file truncated, meanwhile: then nothing is left at `start`.
    let end = match seek(&file, SeekFrom::Hole(start)) {
        Ok(end) => end.min(size),
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    Ok((start < end).then_some(Extent { offset: start, size: end.saturating_sub(start) }))
}

/// Returns all runs of data in a file of `size` bytes.
pub(crate) fn list(file: impl AsFd, size: u64) -> Result<Vec<Extent>> {
    let mut extents: Vec<Extent> = Vec::new();
    let mut offset = 0;
    while let Some(extent) = next(&file, offset, size)? {
        offset = extent.end();
        match extents.last_mut() {
            // ext4 and XFS may report two adjacent runs.
            Some(last) if last.end() == extent.offset => last.size += extent.size,
            _ => extents.push(extent),
        }
    }
    Ok(extents)
}

/// Writes a file back and drops its cached pages, which makes `SEEK_DATA` and `st_blocks` final. Until then,
/// delayed allocations and cached pages of preallocated blocks count as data.
pub(crate) fn settle(file: impl AsFd) {
    // If both fail, the preliminary answer has to do.
    fdatasync(&file).ok();
    fadvise(&file, 0, None, Advice::DontNeed).ok();
}

/// Reads until `buffer` is full or the file ends, and returns the number of bytes read.
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

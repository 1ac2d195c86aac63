//! Moves the pieces of a large file by the chosen calls (`choose.rs`).

use std::time::Instant;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::{bytes, call};
use crate::choose::{Means, Moves, Piece, Ways, move_pieces};
use crate::entry::Stat;
use crate::mapped::Mapped;

/// Bytes of one copy_file_range(2) of a piece with a limit, so that it can end early.
const STEP: usize = 1 << 20;

/// Copies up to `size` bytes to the same offset by the fastest of several ways.
pub(super) fn copy(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    at: u64,
    size: usize,
    ways: &Ways,
) -> Result<usize, Errno> {
    move_pieces(ways, &mut Pieces { source, target, at, since: Instant::now(), buffer: Vec::new() }, size)
}

/// Two open files, and the offset in both from which on bytes move.
struct Pieces<'a> {
    source: BorrowedFd<'a>,
    target: BorrowedFd<'a>,
    at: u64,
    /// Time from which on `now_ns` counts.
    since: Instant,
    /// Bytes between a read and a write: at most those of one write.
    buffer: Vec<u8>,
}

impl Moves for Pieces<'_> {
    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn piece(&mut self, done: usize, piece: &Piece) -> Result<usize, Errno> {
        let at = self.at + done as u64;
        let until = self.now_ns().saturating_add(piece.limit_ns);
        match piece.way.means() {
            Means::Kernel => self.by_kernel(at, piece, until),
            Means::Mapped(write_bytes) => self.by_mapping(at, piece, (write_bytes, until)),
            Means::Buffered(write_bytes) => self.by_buffer(at, piece, (write_bytes, until)),
        }
    }
}

impl Pieces<'_> {
    fn by_kernel(&mut self, at: u64, piece: &Piece, until: u64) -> Result<usize, Errno> {
        let step = if until == u64::MAX { piece.bytes } else { STEP };
        let (source, target) = (self.source, self.target);
        self.repeat(piece.bytes, (step, until), |done, size| {
            let at = at + done as u64;
            bytes::copy_range((source, at), (target, at), size)
        })
    }

    fn by_buffer(
        &mut self,
        at: u64,
        piece: &Piece,
        (write_bytes, until): (usize, u64),
    ) -> Result<usize, Errno> {
        let (source, target) = (self.source, self.target);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(write_bytes.max(buffer.len()), 0);
        let moved = self.repeat(piece.bytes, (write_bytes, until), |done, size| {
            let (at, buffer) = (at + done as u64, &mut buffer[..size]);
            let count = call(|| rustix::io::pread(source, &mut *buffer, at))?;
            write_whole(target, &buffer[..count], at)
        });
        self.buffer = buffer;
        moved
    }

    /// Writes a mapping of the source. EAGAIN if the source has changed meanwhile, or cannot be written from its mapping: the
    /// same range is then to be copied in another way.
    ///
    /// A mapping shows zeros behind the end of its file, up to the end of the page. A file that became shorter and then
    /// longer again would leave such zeros in the copy.
    fn by_mapping(
        &mut self,
        at: u64,
        piece: &Piece,
        (write_bytes, until): (usize, u64),
    ) -> Result<usize, Errno> {
        let skip = usize::try_from(at % rustix::param::page_size() as u64).map_err(|_| Errno::OVERFLOW)?;
        let before = self.version()?;
        let mapped = Mapped::part(self.source, at - skip as u64, skip + piece.bytes)?;
        mapped.populate(skip, piece.bytes)?;
        let target = self.target;
        let written = self.repeat(piece.bytes, (write_bytes, until), |done, size| {
            mapped.write_to(target, skip + done, size).map_err(|_| Errno::AGAIN)
        })?;
        if self.version()? != before {
            return Err(Errno::AGAIN);
        }
        Ok(usize::try_from(before.0.saturating_sub(at)).unwrap_or(usize::MAX).min(written))
    }

    /// Size of the source, and the times of its last changes.
    fn version(&self) -> Result<(u64, [i64; 4]), Errno> {
        let stat = Stat::from_kernel(&call(|| rustix::fs::fstat(self.source))?);
        let (modified, changed) = (stat.times.modified, stat.changed);
        let nanoseconds = [modified.nanoseconds, changed.nanoseconds].map(i64::from);
        Ok((stat.size, [modified.seconds, changed.seconds, nanoseconds[0], nanoseconds[1]]))
    }

    /// Repeats a call until `bytes` are moved, it is late, or the call moves nothing. An error after some bytes is met
    /// again by the next piece.
    fn repeat(
        &mut self,
        bytes: usize,
        (step, until): (usize, u64),
        mut calls: impl FnMut(usize, usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut done = 0;
        while done < bytes {
            match calls(done, step.min(bytes - done)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(errno) => return Err(errno),
            }
            if until != u64::MAX && self.now_ns() > until {
                break;
            }
        }
        Ok(done)
    }
}

/// Writes all bytes; fewer if an error is met after some.
fn write_whole(target: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match call(|| rustix::io::pwrite(target, &bytes[done..], at + done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

#[cfg(all(test, not(miri)))]
mod tests;

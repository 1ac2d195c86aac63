//! One large file copied by several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use ferry_io::mapped::Mapped;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};

use super::limit::{Calls, Limit};

/// Blocks beyond one for each reader: those read ahead of the writer.
const AHEAD: usize = 3;
/// Alignment of memory for O_DIRECT.
const PAGE: usize = 4096;
/// Bytes that the second thread populates in one call.
const POPULATED: usize = 8 << 20;

/// Copies `size` bytes.
pub(super) fn copy(how: &Limit, input: &OwnedFd, output: &OwnedFd, size: u64) -> Result<(), Errno> {
    if size == 0 {
        return Ok(());
    }
    match how.calls {
        Calls::Mapped => mapped(how, input, output, size),
        // The writer is one of the two threads of a pipe.
        Calls::Pipe => read_beside(how, how.threads - 1, input, output, size),
        Calls::Direct | Calls::ReadWrite | Calls::CopyRange | Calls::Cached | Calls::Readers => {
            read_beside(how, how.threads, input, output, size)
        }
    }
}

fn mapped(how: &Limit, input: &OwnedFd, output: &OwnedFd, size: u64) -> Result<(), Errno> {
    let size = usize::try_from(size).map_err(|_| Errno::FBIG)?;
    let mapping = Mapped::of(input, size)?;
    let write = |populates: bool| {
        let mut at = 0;
        while at < size {
            if populates {
                mapping.populate(at, how.block_bytes)?;
            }
            at += mapping.write_to(output, at, how.block_bytes)?;
        }
        Ok(())
    };
    if how.threads == 1 {
        return write(true);
    }
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let populate = || {
            let mut rest = (0..size).step_by(POPULATED).take_while(|_| !has_ended.load(Ordering::Relaxed));
            rest.try_for_each(|at| mapping.populate(at, POPULATED))
        };
        let populating = Builder::new().spawn_scoped(scope, populate).map_err(|_| Errno::AGAIN)?;
        let written = write(false);
        has_ended.store(true, Ordering::Relaxed);
        written.and(populating.join().unwrap_or(Err(Errno::IO)))
    })
}

/// Memory for one block, aligned for O_DIRECT.
struct Block {
    bytes: Vec<u8>,
    start: usize,
}

impl Block {
    fn new(size: usize) -> Self {
        let bytes = vec![0; size + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Self { bytes, start }
    }

    fn space(&mut self, size: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + size]
    }

    fn filled(&self, count: usize) -> &[u8] {
        &self.bytes[self.start..self.start + count]
    }
}

/// Next block to read, and memory for it. Both are taken under one lock, so that the block that the writer waits for
/// always has memory.
struct Supply {
    next: u64,
    free: Receiver<Block>,
}

/// A block that was read: its index, memory and number of bytes.
type Read = Result<(u64, Block, usize), Errno>;

/// Reads with several threads, writes in order with this one.
fn read_beside(
    how: &Limit,
    readers: usize,
    input: &OwnedFd,
    output: &OwnedFd,
    size: u64,
) -> Result<(), Errno> {
    let block_bytes = u64::try_from(how.block_bytes).map_err(|_| Errno::FBIG)?;
    let (free, supplied) = channel();
    for _ in 0..readers + AHEAD {
        free.send(Block::new(how.block_bytes)).map_err(|_| Errno::IO)?;
    }
    let (sender, filled) = channel();
    let supply = Mutex::new(Supply { next: 0, free: supplied });
    std::thread::scope(|scope| {
        for _ in 0..readers {
            let (sender, supply) = (sender.clone(), &supply);
            let read = move || {
                while let Some((index, mut block)) = take(supply, size.div_ceil(block_bytes)) {
                    let at = index * block_bytes;
                    let count = fill(how, input, &mut block, (at, size - at));
                    if sender.send(count.map(|count| (index, block, count))).is_err() {
                        return;
                    }
                }
            };
            Builder::new().spawn_scoped(scope, read).map_err(|_| Errno::AGAIN)?;
        }
        drop(sender);
        write_in_order(output, &filled, free, size.div_ceil(block_bytes))
    })
}

/// Returns the next block to read and its memory, or `None` at the end or if the writer has ended.
fn take(supply: &Mutex<Supply>, blocks: u64) -> Option<(u64, Block)> {
    let mut supply = supply.lock().unwrap_or_else(PoisonError::into_inner);
    if supply.next == blocks {
        return None;
    }
    let block = supply.free.recv().ok()?;
    let index = supply.next;
    supply.next += 1;
    Some((index, block))
}

/// Reads the block at `at`, which has at most `left` bytes. Fails if the file has become shorter.
fn fill(how: &Limit, input: &OwnedFd, block: &mut Block, (at, left): (u64, u64)) -> Result<usize, Errno> {
    let wanted = usize::try_from(left).map_or(how.block_bytes, |left| left.min(how.block_bytes));
    let (space, mut count) = (block.space(how.block_bytes), 0);
    while count < wanted {
        let offset = at + u64::try_from(count).map_err(|_| Errno::FBIG)?;
        match retry_on_intr(|| rustix::io::pread(input, &mut space[count..], offset))? {
            0 => return Err(Errno::NODATA),
            more => count += more,
        }
    }
    Ok(wanted)
}

/// Writes `blocks` blocks in the order of the file. Owns `free`, so that readers end if it fails.
fn write_in_order(
    output: &OwnedFd,
    filled: &Receiver<Read>,
    free: Sender<Block>,
    blocks: u64,
) -> Result<(), Errno> {
    let (mut early, mut next) = (BTreeMap::new(), 0);
    while next < blocks {
        let (index, block, count) = filled.recv().map_err(|_| Errno::IO)??;
        early.insert(index, (block, count));
        while let Some((block, count)) = early.remove(&next) {
            write_all(output, block.filled(count))?;
            // No reader needs it after the last block.
            drop(free.send(block));
            next += 1;
        }
    }
    Ok(())
}

pub(super) fn write_all(output: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = retry_on_intr(|| rustix::io::write(&output, bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

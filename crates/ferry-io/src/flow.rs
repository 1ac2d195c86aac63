//! Copying bytes between two files, by the kernel alone or with several blocks in flight.
//!
//! Where the kernel is to copy ([`Flow::offload`]) it is asked piece by piece, and blocks carry what it will not.
//!
//! A fiber a block: it waits for a block of memory, reads until that is full or the source ends, and writes it. Reads
//! that the page cache answers run on the worker's own thread; writes leave it, so both run at once. The writes of
//! one file are serialised by its inode's lock, and the backends run them one after another instead of letting
//! threads fight for it.
//!
//! Ends when the source is shorter than was said, and never reads past what was said: a source that grows can't keep
//! it going (guard: `a_growing_source_ends`).

use std::cell::Cell;

use rustix::io::Errno;

use crate::buffers::Block;
use crate::error::Result;
use crate::file::File;
use crate::run::Io;
use crate::scope::for_each;

/// The most that the kernel is asked to copy by one call: short enough for cancelling and for `progress`.
const PIECE_BYTES: usize = 32 << 20;

/// How [`copy`] goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Blocks in flight at most; at least one.
    pub depth: usize,
    /// Bytes a block, at most the runtime's block size.
    pub block_bytes: usize,
    /// Whether the source is not in memory: then reads leave the worker too, one after another, so that the kernel's
    /// reading ahead keeps in step.
    pub cold: bool,
    /// Whether writes leave the worker, so that it reads on meanwhile. For one large file; with many files at a time the
    /// worker has enough else to do, and handing each write over costs more than it saves.
    pub overlap: bool,
    /// Whether the kernel copies what it can (copy_file_range(2)): the bytes are touched once, or not at all where the
    /// filesystem shares extents.
    pub offload: bool,
    /// What writes are multiples of: more than 1 for a target past the page cache. What is left over where the source ends
    /// is not copied, and the end that is returned is before it.
    pub unit: usize,
}

impl Flow {
    /// Buffered on both sides, `depth` blocks of `block_bytes` in flight, writes on the worker where they don't wait.
    #[must_use]
    pub fn buffered(depth: usize, block_bytes: usize) -> Self {
        Self { depth, block_bytes, cold: false, overlap: false, offload: false, unit: 1 }
    }

    /// By the kernel where it can, away from the worker; what it will not copy goes as with [`Self::buffered`].
    #[must_use]
    pub fn offloaded(depth: usize, block_bytes: usize) -> Self {
        Self { offload: true, cold: true, ..Self::buffered(depth, block_bytes) }
    }
}

/// Copies the bytes from `start` to `end` of `source` to the same place in `target`, and tells `progress` of each
/// block or piece written. Returns where the source really ended, if that is before `end`.
///
/// # Errors
/// The first error of a read or a write; the other blocks in flight are cancelled.
pub async fn copy(
    io: &Io,
    source: &File,
    target: &File,
    (start, end): (u64, u64),
    flow: Flow,
    progress: impl Fn(u64),
) -> Result<u64> {
    let start =
        if flow.offload { offload(source, target, (start, end), flow.cold, &progress).await? } else { start };
    let block_bytes = flow.block_bytes.min(io.block_size()).max(1);
    let real_end = Cell::new(end);
    let offsets = (0..).map(|index| start + index * block_bytes as u64).take_while(|&at| at < real_end.get());
    for_each(flow.depth.max(1), offsets, async |at: u64| {
        let wanted = usize::try_from((end - at).min(block_bytes as u64)).unwrap_or(block_bytes);
        let (mut block, filled) = fill(source, io.block().await?, (wanted, block_bytes), at, flow.cold).await;
        let filled = filled?;
        let whole = filled - filled % flow.unit.max(1);
        if whole < wanted {
            real_end.set(real_end.get().min(at + whole as u64));
        }
        if whole == 0 {
            return Ok(());
        }
        block.set_filled(whole);
        let (_block, written) = target.write_whole(block, at, flow.overlap).await;
        written?;
        progress(whole as u64);
        Ok(())
    })
    .await?;
    Ok(real_end.get())
}

/// Lets the kernel copy; where it stopped, because it refused or says that there is no more. Neither proves the end, and
/// what is wrong is told better by who reads or writes there.
async fn offload(
    source: &File,
    target: &File,
    (start, end): (u64, u64),
    is_cold: bool,
    progress: impl Fn(u64),
) -> Result<u64> {
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        match source.copy_range(at, target, at, wanted, is_cold).await {
            Ok(0) => break,
            Ok(count) => {
                at += count as u64;
                progress(count as u64);
            }
            Err(error) if error.is_cancelled() => return Err(error),
            Err(_refused) => break,
        }
    }
    Ok(at)
}

/// Reads at `at` until the block holds `wanted` bytes or the source ends. Each read asks for whole blocks, as direct
/// I/O must; a source that has grown gives more than is wanted, which is left out.
async fn fill(
    source: &File,
    block: Block,
    (wanted, asked): (usize, usize),
    at: u64,
    waits: bool,
) -> (Block, Result<usize>) {
    let mut block = block;
    let mut filled = 0;
    loop {
        let room = asked - filled;
        let (back, count) = source.read_more_at(block, filled, room, at + filled as u64, waits).await;
        block = back;
        match count {
            Ok(count) => filled += count,
            // Direct I/O can't go on from the odd place where a file ended.
            Err(error) if filled > 0 && error.is(Errno::INVAL) => break,
            Err(error) => return (block, Err(error)),
        }
        if filled >= wanted || count == Ok(0) {
            break;
        }
    }
    filled = filled.min(wanted);
    block.set_filled(filled);
    (block, Ok(filled))
}

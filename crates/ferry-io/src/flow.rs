//! Copying bytes between two files, by the kernel alone or with several blocks in flight.
//!
//! With [`Flow::offload`] the kernel copies piece by piece; blocks carry the rest. Each block has a fiber, which waits
//! for the block, reads until it is full or the source ends, and writes it. Reads answered from the page cache run on
//! the worker's thread, while writes leave it, so both run at once. The writes of one file run one after another,
//! because its inode's lock would serialise them anyway.
//!
//! The copy ends early if the source is shorter than expected and never reads beyond `end`, so a growing source can't
//! keep it going (guard: `a_growing_source_ends`).

use std::cell::Cell;

use rustix::io::Errno;

use crate::buffers::Block;
use crate::descriptor::File;
use crate::error::Result;
use crate::run::Io;
use crate::scope::for_each;

/// Maximum bytes of one copy_file_range(2), so that cancelling and `progress` are timely.
const PIECE_BYTES: usize = 32 << 20;

/// The way in which [`copy`] moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Maximum number of blocks in flight; at least one.
    pub depth: usize,
    /// Bytes per block, at most the runtime's block size.
    pub block_bytes: usize,
    /// Set if the source is not in memory. Reads then leave the worker too, in order, so that kernel read-ahead keeps
    /// up.
    pub cold: bool,
    /// Set if writes leave the worker, which reads on meanwhile. For one large file only: with many files the worker
    /// has enough other work, and handing writes over costs more than it saves.
    pub overlap: bool,
    /// Set if the kernel copies the bytes (copy_file_range(2)) as far as it will.
    pub offload: bool,
    /// Unit of writes in bytes; more than 1 for a target past the page cache. A rest smaller than a unit at the
    /// source's end is not copied, and the returned end is before it.
    pub unit: usize,
}

impl Flow {
    /// Buffered on both sides, with `depth` blocks of `block_bytes` in flight and writes on the worker.
    #[must_use]
    pub fn buffered(depth: usize, block_bytes: usize) -> Self {
        Self { depth, block_bytes, cold: false, overlap: false, offload: false, unit: 1 }
    }

    /// By the kernel, away from the worker; the rest as with [`Self::buffered`].
    #[must_use]
    pub fn offloaded(depth: usize, block_bytes: usize) -> Self {
        Self { offload: true, cold: true, ..Self::buffered(depth, block_bytes) }
    }
}

/// Copies the bytes from `start` to `end` of `source` to the same offsets of `target`, and reports each block or piece
/// written to `progress`. Returns the end reached: `end`, or the source's real end before it.
///
/// ```
/// use ferry_io::flow::{Flow, copy};
/// use ferry_io::{Error, Name, OpenHow, Options, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     # let temporary = tempfile::tempdir().expect("a folder");
///     # std::fs::write(temporary.path().join("source"), vec![1; 100_000]).expect("a file");
///     let folder = io.open_dir(temporary.path())?;
///     let name = |text: &str| Name::new(text.as_bytes()).expect("one component of a path");
///     let source = folder.open(&name("source"), OpenHow::read()).await?;
///     let target = folder.open(&name("target"), OpenHow::create(0o644)).await?;
///     let written = std::cell::Cell::new(0);
///     let progress = |bytes| written.set(written.get() + bytes);
///     // The first half by the kernel, the second by up to two blocks in flight.
///     let offloaded = Flow::offloaded(2, 16_384);
///     let middle = copy(&io, &source, &target, (0, 50_000), offloaded, progress).await?;
///     let end = copy(&io, &source, &target, (middle, u64::MAX), Flow::buffered(2, 16_384), progress).await?;
///     assert_eq!((end, written.get()), (100_000, 100_000));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// Lets the kernel copy and returns the offset where it stopped. A refusal or a count of 0 does not prove the end of the
/// file, so the caller continues with reads and writes, which also report errors more precisely.
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
/// I/O must; bytes beyond `wanted`, of a source that has grown, are left out.
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
            // Direct I/O can't go on from the unaligned end of a file.
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

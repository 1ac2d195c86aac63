//! `--verify`: reads a copy back from its device, and compares its bytes with the source's.
//!
//! A target with direct I/O is read past the page cache, for which the kernel first writes the file's pages. Otherwise
//! the pages are written, dropped and read again. A filesystem in memory has no device: its pages are compared.
//!
//! The source is read through the page cache, which has it from copying it. Only what was copied is compared: a source
//! that has grown since is not followed.
//!
//! Limits: a device may answer from a cache of its own. A page that another program keeps in memory can't be dropped.

use std::cell::Cell;
use std::ops::Range;

use ferry_io::{Block, File, WhyBuffered, for_each};

use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Ranges of one file that are compared at once.
const DEPTH: usize = 8;
/// Attempts to drop a file's pages: a processor's list may hold some for a moment.
const DROPS: u32 = 10;

/// Returns true if the source has the target's bytes at the same offsets.
pub(crate) async fn is_same(run: &Run, source: &File, target: &File) -> Result<bool, FailureKind> {
    let size = target.stat().await.during(Verb::ReadTarget)?.size;
    let unit = bypass_cache(run, target).await?;
    let is_same = Cell::new(true);
    let step = run.io.block_size() as u64;
    let offsets = (0..size.div_ceil(step)).map(|index| index * step).take_while(|_| is_same.get());
    let compared = for_each(DEPTH, offsets, async |at: u64| {
        if !is_same_range(run, (source, target), at..size.min(at + step), unit).await? {
            is_same.set(false);
        }
        Ok(())
    })
    .await;
    target.set_buffered();
    compared.map(|()| is_same.get())
}

/// Lets reads of the target come from its device. Returns the unit of their offsets.
async fn bypass_cache(run: &Run, target: &File) -> Result<u64, FailureKind> {
    match target.set_direct() {
        Ok(unit) if unit.is_reported && (run.io.block_size() as u64).is_multiple_of(unit.bytes) => {
            return Ok(unit.bytes);
        }
        Ok(_) => target.set_buffered(),
        Err(WhyBuffered::InMemory) => return Ok(1),
        Err(_) => {}
    }
    target.sync_data().await.during(Verb::Sync)?;
    for _ in 0..DROPS {
        target.forget_cached(0, 0);
        if target.cached_bytes(0, u64::MAX).is_none_or(|(cached, _)| cached == 0) {
            break;
        }
    }
    Ok(1)
}

/// Compares one range, at most a block.
async fn is_same_range(
    run: &Run,
    (source, target): (&File, &File),
    range: Range<u64>,
    unit: u64,
) -> Result<bool, FailureKind> {
    let mut block = run.io.block().await.during(Verb::ReadTarget)?;
    // A fiber that holds a block must not wait for another. This holds as many bytes.
    let mut copied = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let (back, count) = target.read_at(block, at).await;
        let count = (count.during(Verb::ReadTarget)? as u64).min(range.end - at);
        // Direct I/O goes on at a unit only.
        let count = if at + count < range.end { count - count % unit } else { count };
        let bytes = usize::try_from(count).unwrap_or(0);
        copied.clear();
        copied.extend_from_slice(&back.as_slice()[..bytes]);
        let (back, is_same) = has_bytes(source, back, &copied, at).await?;
        if bytes == 0 || !is_same {
            return Ok(false);
        }
        block = back;
        at += count;
    }
    Ok(true)
}

/// Returns true if a file has these bytes at an offset.
async fn has_bytes(file: &File, block: Block, bytes: &[u8], at: u64) -> Result<(Block, bool), FailureKind> {
    let (mut block, mut left, mut at) = (block, bytes, at);
    while !left.is_empty() {
        let (back, count) = file.read_some_at(block, left.len(), at).await;
        let count = count.during(Verb::Read)?;
        if count == 0 || back.as_slice()[..count] != left[..count] {
            return Ok((back, false));
        }
        block = back;
        left = &left[count..];
        at += count as u64;
    }
    Ok((block, true))
}

/// Writes a file of one block and reads it back; twice if it differs.
pub(crate) async fn write_verified(run: &Run, target: &File, block: Block) -> Result<(), FailureKind> {
    let bytes = block.as_slice().to_vec();
    let mut block = block;
    for _ in 0..2 {
        block.as_mut_capacity()[..bytes.len()].copy_from_slice(&bytes);
        block.set_filled(bytes.len());
        let (written, answer) = target.write_all_at(block, 0).await;
        answer.during(Verb::Write)?;
        bypass_cache(run, target).await?;
        let (back, count) = target.read_at(written, 0).await;
        let count = count.during(Verb::ReadTarget)?;
        target.set_buffered();
        if back.as_slice()[..count] == bytes {
            return Ok(());
        }
        block = back;
    }
    Err(FailureKind::Unverified)
}

//! `--verify`: reads a copy back from its device, and compares its bytes with the source's.
//!
//! A target with direct I/O is read past the page cache, for which the kernel first writes the file's pages. Otherwise
//! the pages are written, dropped and read again. A filesystem in memory has no device: its pages are compared.
//!
//! The source is read through the page cache, which has it from copying it. Only what was copied is compared: a source
//! that has grown since is not followed.
//!
//! Limits: a device may answer from a cache of its own. A page that another program keeps in memory can't be dropped.

pub(crate) mod flush;
pub(crate) mod room;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use ferry_io::{Block, File, WhyBuffered, for_each};

use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use room::DEPTH;

/// Attempts to drop a file's pages: a processor's list may hold some for a moment.
const DROPS: u32 = 10;
/// Reads in a row that return less than a unit, after which the bytes count as different.
const FRUITLESS: u32 = 10;

/// Returns true if the source has the target's bytes at the same offsets.
pub(crate) async fn is_same(run: &Run, source: &File, target: &File) -> Result<bool, FailureKind> {
    let _permit = run.room.permits.acquire().await.during(Verb::ReadTarget)?;
    let size = target.stat().await.during(Verb::ReadTarget)?.size;
    let step = run.io.block_size();
    // Direct reads would have it written in pieces of their size.
    target.sync_data().await.during(Verb::Sync)?;
    let unit = bypass_cache(run, target).await?;
    let blocks = RefCell::new(run.room.take(step).during(Verb::ReadTarget)?);
    let is_same = Cell::new(true);
    let step = step as u64;
    let offsets = (0..size.div_ceil(step)).map(|index| index * step).take_while(|_| is_same.get());
    let compared = for_each(DEPTH, offsets, async |at: u64| {
        let _in_flight = run.begin().await.during(Verb::ReadTarget)?;
        let one = blocks.borrow_mut().pop();
        let other = blocks.borrow_mut().pop();
        let (Some(one), Some(other)) = (one, other) else { unreachable!("each range has two blocks") };
        let range = at..size.min(at + step);
        let (one, other, equal) = compare(source, target, (one, other), range, unit).await?;
        blocks.borrow_mut().extend([one, other]);
        is_same.set(is_same.get() && equal);
        Ok(())
    })
    .await;
    target.set_buffered();
    run.room.give_back(blocks.into_inner());
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

/// Compares one range, at most a block. Returns the blocks, and true if it is the same.
async fn compare(
    source: &File,
    target: &File,
    (one, other): (Block, Block),
    range: Range<u64>,
    unit: u64,
) -> Result<(Block, Block, bool), FailureKind> {
    let (mut one, mut other, mut at) = (one, other, range.start);
    let mut fruitless = 0;
    while at < range.end {
        let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let copied;
        let original;
        (one, copied) = read(target, one, at).await.during(Verb::ReadTarget)?;
        (other, original) = read(source, other, at).await.during(Verb::Read)?;
        // Bytes behind the range are another's, and either read may be short. Direct I/O goes on at a unit only.
        let count = copied.min(original).min(left) as u64;
        let count = if at + count < range.end { count - count % unit } else { count };
        let bytes = usize::try_from(count).unwrap_or(0);
        fruitless = if bytes == 0 { fruitless + 1 } else { 0 };
        if fruitless == FRUITLESS || one.as_slice()[..bytes] != other.as_slice()[..bytes] {
            return Ok((one, other, false));
        }
        at += count;
    }
    Ok((one, other, true))
}

/// Reads up to a block at an offset. Returns the block and the number of bytes.
async fn read(file: &File, block: Block, at: u64) -> ferry_io::Result<(Block, usize)> {
    let (mut blocks, count) = file.read_blocks_at(vec![block], 0, at, false).await;
    let count = count?;
    let Some(block) = blocks.pop() else { unreachable!("one was passed") };
    Ok((block, count))
}

/// Lets reads of a small file come from its device. Returns the unit of their offsets.
async fn leave_cache(run: &Run, target: &File, device: Option<u64>, size: usize) -> Result<u64, FailureKind> {
    let unit = bypass_cache(run, target).await?;
    let is_direct = unit > 1;
    if let Some(device) = device.filter(|_| is_direct && size <= flush::MOST_BYTES) {
        run.flushes.reach_device(target, device).await.during(Verb::Sync)?;
    }
    Ok(unit)
}

/// Reads the first bytes of a file into a block. Returns the block and their number, which is smaller at the file's end.
async fn read_all(
    target: &File,
    block: Block,
    (size, unit): (usize, usize),
) -> Result<(Block, usize), FailureKind> {
    let (mut block, mut done, mut fruitless) = (block, 0, 0);
    while done < size && fruitless < FRUITLESS {
        let left = (size - done).next_multiple_of(unit);
        let count;
        (block, count) = target.read_beside_at(block, done, left, done as u64).await;
        let count = count.during(Verb::ReadTarget)?;
        // A read may be short. Direct I/O goes on at a unit only.
        let count = if done + count < size { count - count % unit } else { count };
        fruitless = if count == 0 { fruitless + 1 } else { 0 };
        done += count;
    }
    Ok((block, done.min(size)))
}

/// Writes a file of one block and reads it back; twice if it differs. `device` is the target's, if it is known.
pub(crate) async fn write_verified(
    run: &Run,
    target: &File,
    device: Option<u64>,
    block: Block,
) -> Result<(), FailureKind> {
    let _pending = (block.as_slice().len() <= flush::MOST_BYTES).then(|| run.flushes.begin());
    let bytes = block.as_slice().to_vec();
    let mut block = block;
    for _ in 0..2 {
        block.as_mut_capacity()[..bytes.len()].copy_from_slice(&bytes);
        block.set_filled(bytes.len());
        let in_flight = run.pay(bytes.len() as u64).await?;
        let (written, answer) = target.write_all_at(block, 0).await;
        answer.during(Verb::Write)?;
        drop(in_flight);
        let unit = leave_cache(run, target, device, bytes.len()).await?;
        let in_flight = run.begin().await.during(Verb::ReadTarget)?;
        let unit = usize::try_from(unit).unwrap_or(1);
        let (back, count) = read_all(target, written, (bytes.len(), unit)).await?;
        drop(in_flight);
        target.set_buffered();
        if back.as_slice()[..count] == bytes {
            return Ok(());
        }
        block = back;
    }
    Err(FailureKind::Unverified)
}

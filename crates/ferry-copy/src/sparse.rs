//! Files with holes: data is copied, holes are left out.
//!
//! For a manifest, holes are hashed as zeros, and blocks when they are written (`trail.rs`). Longer ranges are read from
//! the target, right after they were moved.

use std::ops::Range;

use ferry_io::{Block, Errno, File, Stat};

use crate::mover::{Moved, Mover};
use crate::report::{During as _, FailureKind, Method, Verb};

/// Bytes in which zeros become holes with `--sparse=always`.
const UNIT: usize = 4096;

/// Copies the source's data extents (SEEK_DATA, SEEK_HOLE) from an offset on, and gives the target the source's size.
pub(crate) async fn copy_data(mover: &mut Mover<'_>, stat: &Stat, from: u64) -> Result<Moved, FailureKind> {
    let (run, source, target) = (mover.run, mover.source, mover.target);
    let (mut at, mut size) = (from, stat.size);
    let mut moved = Moved { method: Method::Nothing, bytes: 0, why: "it is all hole" };
    let mut kept = None;
    while at < stat.size {
        let data = match source.seek_data(at).await {
            Ok(Some(data)) => data.min(stat.size),
            Ok(None) => {
                size = end_of_hole(source, size).await?;
                break;
            }
            // The filesystem reports no holes: everything may be data.
            Err(error) if error.is(Errno::INVAL) || error.is(Errno::OPNOTSUPP) => at,
            Err(error) => return Err(Verb::Read.failed(error)),
        };
        if data >= stat.size {
            break;
        }
        let hole = source.seek_hole(data).await.ok().flatten();
        let end = end_of_data(data, hole, stat.size);
        mover.leave_out(at..data);
        let (method, reached) = if end - data <= run.io.block_size() as u64 {
            (Method::Whole, move_small(mover, data..end, &mut kept).await?)
        } else {
            // A fiber that holds a block must not wait for another.
            kept = None;
            let moved = mover.move_range(data..end).await?;
            (moved.method, moved.end)
        };
        moved.method = method;
        moved.why = "it has holes; only data is moved";
        moved.bytes += reached - data;
        if reached < end {
            // The source has become shorter.
            target.truncate(reached).await.during(Verb::Write)?;
            return Ok(moved);
        }
        run.progress.bytes_done.add(data - at);
        mover.note(end);
        at = end;
    }
    // A fiber that holds a block must not wait for another.
    drop(kept);
    mover.end(at).await?;
    target.truncate(size).await.during(Verb::Write)?;
    mover.leave_out(at..size);
    run.progress.bytes_done.add(stat.size.saturating_sub(at));
    Ok(moved)
}

/// Copies the data extents of a range. The target's size is the caller's matter. Returns the number of bytes moved, and the
/// method of the last extent.
pub(crate) async fn copy_data_of(
    mover: &mut Mover<'_>,
    range: Range<u64>,
) -> Result<(u64, Method), FailureKind> {
    let (run, source) = (mover.run, mover.source);
    let (mut at, mut bytes, mut method) = (range.start, 0, Method::Nothing);
    while at < range.end {
        let data = match source.seek_data(at).await {
            Ok(Some(data)) => data.min(range.end),
            Ok(None) => range.end,
            // The filesystem reports no holes: everything may be data.
            Err(error) if error.is(Errno::INVAL) || error.is(Errno::OPNOTSUPP) => at,
            Err(error) => return Err(Verb::Read.failed(error)),
        };
        run.progress.bytes_done.add(data - at);
        if data == range.end {
            break;
        }
        let hole = source.seek_hole(data).await.ok().flatten();
        let end = end_of_data(data, hole, range.end);
        let moved = mover.move_range(data..end).await?;
        if moved.end < end {
            return Err(FailureKind::Changed);
        }
        method = moved.method;
        bytes += end - data;
        at = end;
    }
    mover.end(range.end).await?;
    Ok((bytes, method))
}

/// Returns the end of a source that has no further data. It may be shorter by now.
async fn end_of_hole(source: &File, size: u64) -> Result<u64, FailureKind> {
    let now = source.stat().await.during(Verb::Stat)?;
    Ok(now.size.min(size))
}

/// Returns the end of the data at `data`, always behind it. If a hole begins right there, the data was punched out
/// between the two calls: then zeros are read, so that no data behind them is missed.
fn end_of_data(data: u64, hole: Option<u64>, size: u64) -> u64 {
    let end = hole.unwrap_or(size).min(size);
    if end > data { end } else { size.min(data + UNIT as u64) }
}

/// Moves a range that fits into a block, which is kept for the next such range. Returns the offset reached.
async fn move_small(
    mover: &mut Mover<'_>,
    range: Range<u64>,
    kept: &mut Option<Block>,
) -> Result<u64, FailureKind> {
    mover.sides.note_odd(range.start);
    if mover.has_to_read(range.start) {
        // A fiber that holds a block must not wait for another.
        *kept = None;
    }
    mover.follow(range.start).await?;
    let block = match kept.take() {
        Some(block) => block,
        None => mover.run.io.block().await.during(Verb::Read)?,
    };
    let (block, reached) = move_piece(mover, range, block).await?;
    mover.reach(reached).await?;
    *kept = Some(block);
    Ok(reached)
}

/// Moves a range that fits into the block. Returns the block and the offset reached. Fragmented files have tens of
/// thousands of such ranges, and asking which are cached would cost more than reading.
async fn move_piece(mover: &Mover<'_>, range: Range<u64>, block: Block) -> Result<(Block, u64), FailureKind> {
    let (run, source, target) = (mover.run, mover.source, mover.target);
    let (mut block, mut at) = (block, range.start);
    while at < range.end {
        let wanted = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let (filled, count) = source.read_some_at(block, wanted, at).await;
        let count = count.during(Verb::Read)? as u64;
        if count == 0 {
            return Ok((filled, at));
        }
        let in_flight = run.pay(count).await?;
        let (written, answer) = target.write_all_at(filled, at).await;
        answer.during(Verb::Write)?;
        drop(in_flight);
        mover.pass(at, written.as_slice()).await;
        run.progress.bytes_done.add(count);
        block = written;
        at += count;
    }
    Ok((block, at))
}

/// `--sparse=always`: leaves out all zeros, hole or not.
pub(crate) async fn punch(mover: &mut Mover<'_>, stat: &Stat) -> Result<Moved, FailureKind> {
    let (run, source, target) = (mover.run, mover.source, mover.target);
    let (mut at, mut bytes, mut looked_after) = (0, 0, 0);
    while at < stat.size {
        match source.seek_data(at).await {
            Ok(None) => {
                run.progress.bytes_done.add(stat.size - at);
                let end = end_of_hole(source, stat.size).await?;
                mover.leave_out(at..end);
                at = end;
                break;
            }
            // The next data may be far: holes are not read.
            Ok(Some(data)) => {
                let next = at.max(data - data % UNIT as u64);
                run.progress.bytes_done.add(next - at);
                mover.leave_out(at..next.min(stat.size));
                at = next;
            }
            Err(_) => {}
        }
        mover.follow(at.min(stat.size)).await?;
        let block = run.io.block().await.during(Verb::Read)?;
        let (mut block, count) = source.read_at(block, at).await;
        let count = count.during(Verb::Read)?;
        if count == 0 {
            break;
        }
        for (start, end) in data_runs(block.as_slice()) {
            let _in_flight = run.pay((end - start) as u64).await?;
            let (back, written) = target.write_part_at(block, (start, end), at + start as u64).await;
            written.during(Verb::Write)?;
            block = back;
            bytes += (end - start) as u64;
        }
        // Bytes by which the source has grown are cut off.
        let most = usize::try_from(stat.size.saturating_sub(at)).unwrap_or(usize::MAX);
        mover.pass(at, &block.as_slice()[..count.min(most)]).await;
        at += count as u64;
        run.progress.bytes_done.add(count as u64);
        mover.reach(at).await?;
        if at - looked_after >= mover.sides.piece() {
            mover.sides.forget(source, looked_after..at).await?;
            looked_after = at;
        }
    }
    mover.sides.forget(source, looked_after..at).await?;
    let end = at.min(stat.size);
    mover.end(end).await?;
    target.truncate(end).await.during(Verb::Write)?;
    Ok(Moved { method: Method::Whole, bytes, why: mover.sides.why.unwrap_or("zeros become holes") })
}

/// Returns the ranges of `bytes`, in whole units, that are not zero.
fn data_runs(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (index, unit) in bytes.chunks(UNIT).enumerate() {
        if unit.iter().all(|&byte| byte == 0) {
            continue;
        }
        let (start, end) = (index * UNIT, index * UNIT + unit.len());
        match runs.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            Some(_) | None => runs.push((start, end)),
        }
    }
    runs
}

#[cfg(test)]
mod tests;

//! Files with holes: data is copied, holes are left out.

use std::ops::Range;

use ferry_io::{Block, Errno, File, Stat};

use crate::mover::{Moved, Mover};
use crate::report::{During as _, FailureKind, Method, Verb};
use crate::run::Run;

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
        let (method, reached) = if end - data <= run.io.block_size() as u64 {
            mover.sides.note_odd(data);
            let block = match kept.take() {
                Some(block) => block,
                None => run.io.block().await.during(Verb::Read)?,
            };
            let (block, reached) = move_piece(run, source, target, data..end, block).await?;
            mover.pieces.reach(target, reached).await?;
            kept = Some(block);
            (Method::Whole, reached)
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
    run.progress.bytes_done.add(stat.size.saturating_sub(at));
    Ok(moved)
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

/// Moves a range that fits into the block. Returns the block and the offset reached. Fragmented files have tens of
/// thousands of such ranges, and asking which are cached would cost more than reading.
async fn move_piece(
    run: &Run,
    source: &File,
    target: &File,
    range: Range<u64>,
    block: Block,
) -> Result<(Block, u64), FailureKind> {
    let (mut block, mut at) = (block, range.start);
    while at < range.end {
        let wanted = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let (filled, count) = source.read_some_at(block, wanted, at).await;
        let count = count.during(Verb::Read)? as u64;
        if count == 0 {
            return Ok((filled, at));
        }
        run.pay(count).await?;
        let (written, answer) = target.write_all_at(filled, at).await;
        answer.during(Verb::Write)?;
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
                at = end_of_hole(source, stat.size).await?;
                break;
            }
            // The next data may be far: holes are not read.
            Ok(Some(data)) => {
                let next = at.max(data - data % UNIT as u64);
                run.progress.bytes_done.add(next - at);
                at = next;
            }
            Err(_) => {}
        }
        let block = run.io.block().await.during(Verb::Read)?;
        let (mut block, count) = source.read_at(block, at).await;
        let count = count.during(Verb::Read)?;
        if count == 0 {
            break;
        }
        for (start, end) in data_runs(block.as_slice()) {
            run.pay((end - start) as u64).await?;
            let (back, written) = target.write_part_at(block, (start, end), at + start as u64).await;
            written.during(Verb::Write)?;
            block = back;
            bytes += (end - start) as u64;
        }
        at += count as u64;
        run.progress.bytes_done.add(count as u64);
        mover.pieces.reach(target, at).await?;
        if at - looked_after >= mover.sides.piece() {
            mover.sides.forget(source, looked_after..at).await?;
            looked_after = at;
        }
    }
    mover.sides.forget(source, looked_after..at).await?;
    mover.end(at).await?;
    target.truncate(at.min(stat.size)).await.during(Verb::Write)?;
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

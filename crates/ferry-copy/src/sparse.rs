//! Files with holes: the data is copied, the holes are left out.

use ferry_io::{Block, Errno, Error, File, Stat};

use crate::bytes::{Moved, Way};
use crate::copier::Copier;
use crate::report::{FailureKind, Method, Verb};

/// The unit in which zeros become holes with `--sparse=always`.
const UNIT: usize = 4096;

fn io(verb: Verb) -> impl Fn(Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// Copies the source's data extents (SEEK_DATA, SEEK_HOLE) and gives the target the source's size.
pub(crate) async fn copy_data(way: &mut Way<'_>, stat: &Stat) -> Result<Moved, FailureKind> {
    let (copier, source, target) = (way.copier, way.source, way.target);
    let (mut at, mut size) = (0, stat.size);
    let mut moved = Moved { method: Method::Nothing, bytes: 0, why: "it is all hole" };
    let mut kept = None;
    while at < stat.size {
        let data = match source.seek_data(at).await {
            Ok(Some(data)) => data.min(stat.size),
            Ok(None) => {
                size = end_of_hole(source, size).await?;
                break;
            }
            // No such question on this filesystem: all of it may be data.
            Err(error) if error.is(Errno::INVAL) || error.is(Errno::OPNOTSUPP) => at,
            Err(error) => return Err(io(Verb::Read)(error)),
        };
        if data >= stat.size {
            break;
        }
        let hole = source.seek_hole(data).await.ok().flatten();
        let end = end_of_data(data, hole, stat.size);
        let (method, reached) = if end - data <= copier.io.block_size() as u64 {
            way.sides.note_odd(data);
            let block = match kept.take() {
                Some(block) => block,
                None => copier.io.block().await.map_err(io(Verb::Read))?,
            };
            let (block, reached) = move_piece(copier, source, target, (data, end), block).await?;
            way.pieces.reach(target, reached).await?;
            kept = Some(block);
            (Method::Whole, reached)
        } else {
            // Who holds a block must not wait for another.
            kept = None;
            let (method, reached, _) = way.move_range((data, end)).await?;
            (method, reached)
        };
        moved.method = method;
        moved.why = "it has holes; only data is moved";
        moved.bytes += reached - data;
        if reached < end {
            // The source has become shorter.
            target.truncate(reached).await.map_err(io(Verb::Write))?;
            return Ok(moved);
        }
        copier.progress.bytes_done.add(data - at);
        at = end;
    }
    way.end(at).await?;
    target.truncate(size).await.map_err(io(Verb::Write))?;
    copier.progress.bytes_done.add(stat.size.saturating_sub(at));
    Ok(moved)
}

/// Where a source ends that has no more data: a hole, unless it has become shorter meanwhile.
async fn end_of_hole(source: &File, size: u64) -> Result<u64, FailureKind> {
    let now = source.stat().await.map_err(io(Verb::Stat))?;
    Ok(now.size.min(size))
}

/// Where data that begins at `data` ends, by the kernel's answer; always further on. Where a hole is said to begin
/// right there, the data has been punched out between the two questions: what is read then are zeros, and nothing
/// behind them is missed.
fn end_of_data(data: u64, hole: Option<u64>, size: u64) -> u64 {
    let end = hole.unwrap_or(size).min(size);
    if end > data { end } else { size.min(data + UNIT as u64) }
}

/// Moves a range that fits into the block; gives the block back, and where the source ended. Fragmented files have
/// tens of thousands of them: asking what is in memory would cost more than reading.
async fn move_piece(
    copier: &Copier,
    source: &File,
    target: &File,
    (start, end): (u64, u64),
    block: Block,
) -> Result<(Block, u64), FailureKind> {
    let (mut block, mut at) = (block, start);
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX);
        let (filled, count) = source.read_some_at(block, wanted, at).await;
        let count = count.map_err(io(Verb::Read))? as u64;
        if count == 0 {
            return Ok((filled, at));
        }
        copier.pay(count).await?;
        let (written, answer) = target.write_all_at(filled, at).await;
        answer.map_err(io(Verb::Write))?;
        copier.progress.bytes_done.add(count);
        block = written;
        at += count;
    }
    Ok((block, at))
}

/// `--sparse=always`: leaves out whatever is zero, hole or not.
pub(crate) async fn punch(way: &mut Way<'_>, stat: &Stat) -> Result<Moved, FailureKind> {
    let (copier, source, target) = (way.copier, way.source, way.target);
    let (mut at, mut bytes, mut looked_after) = (0, 0, 0);
    while at < stat.size {
        match source.seek_data(at).await {
            Ok(None) => {
                copier.progress.bytes_done.add(stat.size - at);
                at = end_of_hole(source, stat.size).await?;
                break;
            }
            // The next data may be far: holes are not read.
            Ok(Some(data)) => {
                let next = at.max(data - data % UNIT as u64);
                copier.progress.bytes_done.add(next - at);
                at = next;
            }
            Err(_) => {}
        }
        let block = copier.io.block().await.map_err(io(Verb::Read))?;
        let (mut block, count) = source.read_at(block, at).await;
        let count = count.map_err(io(Verb::Read))?;
        if count == 0 {
            break;
        }
        for (start, end) in data_runs(block.as_slice()) {
            copier.pay((end - start) as u64).await?;
            let (back, written) = target.write_part_at(block, (start, end), at + start as u64).await;
            written.map_err(io(Verb::Write))?;
            block = back;
            bytes += (end - start) as u64;
        }
        at += count as u64;
        copier.progress.bytes_done.add(count as u64);
        way.pieces.reach(target, at).await?;
        if at - looked_after >= way.sides.piece() {
            way.sides.forget(source, (looked_after, at)).await?;
            looked_after = at;
        }
    }
    way.sides.forget(source, (looked_after, at)).await?;
    way.end(at).await?;
    target.truncate(at.min(stat.size)).await.map_err(io(Verb::Write))?;
    Ok(Moved { method: Method::Whole, bytes, why: way.sides.why.unwrap_or("zeros become holes") })
}

/// The stretches of `bytes`, in whole units, that are not zero.
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

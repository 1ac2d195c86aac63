//! Files with holes: the data is copied, the holes are left out.

use std::sync::Arc;

use ferry_io::{Errno, Error, File, Stat};

use crate::bytes::{self, Moved};
use crate::copier::Copier;
use crate::report::{FailureKind, Method, Progress, Verb};

/// The unit in which zeros become holes with `--sparse=always`.
const UNIT: usize = 4096;

fn io(verb: Verb) -> impl Fn(Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// Copies the source's data extents (SEEK_DATA, SEEK_HOLE) and gives the target the source's size.
pub(crate) async fn copy_data(
    copier: &Arc<Copier>,
    source: &File,
    target: &File,
    stat: &Stat,
) -> Result<Moved, FailureKind> {
    let mut at = 0;
    let mut moved = Moved { method: Method::Nothing, bytes: 0, why: "it is all hole" };
    while at < stat.size {
        let data = match source.seek_data(at).await {
            Ok(Some(data)) => data.min(stat.size),
            Ok(None) => break,
            // No such question on this filesystem: all of it may be data.
            Err(error) if error.is(Errno::INVAL) || error.is(Errno::OPNOTSUPP) => at,
            Err(error) => return Err(io(Verb::Read)(error)),
        };
        if data >= stat.size {
            break;
        }
        let hole = match source.seek_hole(data).await {
            Ok(Some(hole)) => hole.min(stat.size),
            Ok(None) | Err(_) => stat.size,
        };
        if hole <= data {
            break;
        }
        let (method, end, _) = bytes::move_range(copier, source, target, (data, hole)).await?;
        moved.method = method;
        moved.why = "it has holes; only data is moved";
        moved.bytes += end - data;
        if end < hole {
            // The source has become shorter.
            target.truncate(end).await.map_err(io(Verb::Write))?;
            return Ok(moved);
        }
        at = hole;
    }
    target.truncate(stat.size).await.map_err(io(Verb::Write))?;
    Ok(moved)
}

/// `--sparse=always`: leaves out whatever is zero, hole or not.
pub(crate) async fn punch(
    copier: &Copier,
    source: &File,
    target: &File,
    stat: &Stat,
) -> Result<Moved, FailureKind> {
    let mut at = 0;
    let mut bytes = 0;
    while at < stat.size {
        match source.seek_data(at).await {
            Ok(None) => {
                at = stat.size;
                break;
            }
            // The next data may be far: holes are not read.
            Ok(Some(data)) => at = at.max(data - data % UNIT as u64),
            Err(_) => {}
        }
        let block = copier.io.block().await.map_err(io(Verb::Read))?;
        let (mut block, count) = source.read_at(block, at).await;
        let count = count.map_err(io(Verb::Read))?;
        if count == 0 {
            break;
        }
        for (start, end) in data_runs(block.as_slice()) {
            let (back, written) = target.write_part_at(block, (start, end), at + start as u64).await;
            written.map_err(io(Verb::Write))?;
            block = back;
            bytes += (end - start) as u64;
        }
        at += count as u64;
        Progress::add(&copier.progress.bytes_done, count as u64);
    }
    target.truncate(at.min(stat.size)).await.map_err(io(Verb::Write))?;
    Ok(Moved { method: Method::Whole, bytes, why: "zeros become holes" })
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

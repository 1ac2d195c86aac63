//! One file, a fiber a block: eio's `eurcp`, which the second document measures (seed 003).
//!
//! Nothing counts the fibers: one is spawned when there is a block of memory for it, so the block pool is the bound,
//! and a slow target holds the reading back.

mod arguments;

use std::process::ExitCode;

use arguments::{Failure, Place};
use ferry_io::{Block, Error, File, FileKind, Io, OpenHow, scope};

async fn copy(io: &Io, source: Place, target: Place) -> Result<(), Failure> {
    let file = source.folder.open(&source.name, OpenHow::read()).await?;
    let stat = file.stat().await?;
    if stat.kind != FileKind::Regular {
        return Err(Failure::NotCopied(source.name, stat.kind));
    }
    let copy = target.folder.open(&target.name, OpenHow::create(stat.mode)).await?;
    scope(async |fibers| {
        for at in (0..stat.size).step_by(io.block_size()) {
            let block = io.block().await?;
            let end = stat.size.min(at + io.block_size() as u64);
            fibers.spawn(copy_block(&file, &copy, block, (at, end)));
        }
        Ok::<_, Error>(())
    })
    .await?;
    Ok(())
}

/// Copies the bytes from `at` to `end`; each call may move only a part.
async fn copy_block(source: &File, target: &File, block: Block, range: (u64, u64)) -> Result<(), Error> {
    let (mut at, end) = range;
    let mut block = block;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX);
        let (filled, count) = source.read_some_at(block, wanted, at).await;
        let count = count?;
        if count == 0 {
            // The source was truncated.
            break;
        }
        let (written, outcome) = target.write_all_at(filled, at).await;
        outcome?;
        block = written;
        at += count as u64;
    }
    Ok(())
}

fn main() -> ExitCode {
    arguments::main(1, async |io, source, target, _| copy(io, source, target).await)
}

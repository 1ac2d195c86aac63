//! Copies one file, for all programs.

use ferry_io::flow::{self, Flow};
use ferry_io::{Io, OpenHow};

use super::entry::{EntryAt, Failure};

/// Copies a file with `depth` blocks in flight; eio's `Flow.copy` has one.
pub(super) async fn copy(
    io: &Io,
    source: &EntryAt,
    target: &EntryAt,
    mode: u32,
    depth: usize,
) -> Result<(), Failure> {
    let source = source.folder.open(&source.name, OpenHow::read()).await?;
    let target = target.folder.open(&target.name, OpenHow::create(mode)).await?;
    let size = source.stat().await?.size;
    flow::copy(io, &source, &target, (0, size), Flow::buffered(depth, io.block_size()), |_| ()).await?;
    Ok(())
}

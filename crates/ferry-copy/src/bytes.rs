//! Moving all bytes of a file, by the first of these means that applies.
//!
//! 1. Share the extents, where the filesystem can (FICLONE).
//! 2. Write a file that was read whole.
//! 3. Copy a file with holes by its data extents (`sparse.rs`).
//! 4. Move the rest by ranges (`mover.rs`).
//!
//! With `--verify` the copy is then read back, and copied once more if it differs (`check.rs`).
//!
//! docs/decisions/0014 has the figures.

use std::sync::Arc;

use ferry_io::{Block, Content, Errno, File, FileKind, Stat, first};

use crate::abilities::Abilities;
use crate::check;
use crate::folder::Folder;
use crate::mover::{Moved, Mover};
use crate::options::{Reflink, Sparse};
use crate::report::{During as _, FailureKind, Method, Verb};
use crate::run::Run;
use crate::sparse;
use crate::target::Target;
use crate::trail::Trail;

/// Moves all of a file's bytes.
pub(crate) async fn move_all(
    run: &Arc<Run>,
    folder: &Folder,
    stat: &Stat,
    content: Content,
    target: &Target<'_>,
) -> Result<Moved, FailureKind> {
    match content {
        Content::Whole(block) | Content::Begun(_, block) => {
            let device = target.device().or_else(|| folder.abilities().map(|known| known.devices.target));
            write_whole(run, block, target, device).await
        }
        Content::Stored(_, bytes) => Ok(stored(run, bytes)),
        // Boxed: its state would be part of every small file's.
        Content::Open(file) if run.options.verify && target.kind == FileKind::Regular => {
            Box::pin(move_verified(run, folder, stat, file, target)).await
        }
        Content::Open(file) => Box::pin(move_open(run, folder, stat, file, target)).await,
    }
}

/// Counts a file that was written by one request.
fn stored(run: &Run, bytes: u64) -> Moved {
    run.progress.bytes_done.add(bytes);
    if bytes == 0 {
        return Moved { method: Method::Nothing, bytes, why: "it is empty" };
    }
    Moved { method: Method::Whole, bytes, why: "it fits into a block" }
}

/// Moves all bytes, reads them back, and moves them once more if they differ.
async fn move_verified(
    run: &Arc<Run>,
    folder: &Folder,
    stat: &Stat,
    source: File,
    target: &Target<'_>,
) -> Result<Moved, FailureKind> {
    if !matches!(stat.kind, FileKind::Regular | FileKind::BlockDevice) {
        return Err(FailureKind::ReadOnce);
    }
    let moved = move_open(run, folder, stat, source.clone(), target).await?;
    if check::is_same(run, &source, &target.file).await? {
        return Ok(moved);
    }
    target.file.truncate(0).await.during(Verb::Write)?;
    target.trail.iter().for_each(Trail::restart);
    let abilities = run.abilities(folder, stat.device, target.device());
    let moved = move_ranges(run, &abilities, stat, &source, target, 0).await?;
    if check::is_same(run, &source, &target.file).await? { Ok(moved) } else { Err(FailureKind::Unverified) }
}

async fn move_open(
    run: &Arc<Run>,
    folder: &Folder,
    stat: &Stat,
    source: File,
    target: &Target<'_>,
) -> Result<Moved, FailureKind> {
    let are_files = stat.kind == FileKind::Regular && target.kind == FileKind::Regular;
    let abilities = run.abilities(folder, stat.device, target.device());
    // A stream's extents can't be shared: with `--reflink=always` that is an error, as with cp.
    if (are_files || run.options.reflink == Reflink::Always)
        && let Some(moved) = clone(run, &abilities, stat, &source, target).await?
    {
        return Ok(moved);
    }
    if !are_files {
        return stream(run, &source, target).await;
    }
    let Some(part) = target.part() else {
        return move_ranges(run, &abilities, stat, &source, target, 0).await;
    };
    run.progress.bytes_done.add(part.from());
    let moved = move_ranges(run, &abilities, stat, &source, target, part.from());
    let noted = async { Err(Verb::Write.failed(part.follow(run, &target.file).await)) };
    Box::pin(first(moved, noted)).await
}

/// Reads and writes, or lets the kernel copy, all bytes from an offset on.
async fn move_ranges(
    run: &Arc<Run>,
    abilities: &Abilities,
    stat: &Stat,
    source: &File,
    target: &Target<'_>,
    from: u64,
) -> Result<Moved, FailureKind> {
    if stat.size == 0 {
        // Files in /proc claim to be empty, and so do devices.
        return read_to_end(run, source, target, 0).await;
    }
    let mut mover = Mover::of(run, abilities, stat, source, target);
    match run.options.sparse {
        Sparse::Always => return sparse::punch(&mut mover, stat).await,
        Sparse::Auto if stat.may_have_holes() => return sparse::copy_data(&mut mover, stat, from).await,
        Sparse::Auto | Sparse::Never => {}
    }
    if stat.size <= run.io.block_size() as u64 {
        let block = run.io.block().await.during(Verb::Read)?;
        let (block, count) = source.read_at(block, 0).await;
        if count.during(Verb::Read)? as u64 == stat.size {
            return write_whole(run, block, target, Some(abilities.devices.target)).await;
        }
        drop(block);
    }
    let moved = mover.move_range(from..stat.size).await?;
    mover.end(moved.end).await?;
    if moved.end < stat.size {
        target.file.truncate(moved.end).await.during(Verb::Write)?;
    }
    let why = mover.sides.why.unwrap_or(moved.why);
    Ok(Moved { method: moved.method, bytes: moved.end.saturating_sub(from), why })
}

async fn write_whole(
    run: &Run,
    block: Block,
    target: &Target<'_>,
    device: Option<u64>,
) -> Result<Moved, FailureKind> {
    let bytes = block.as_slice().len() as u64;
    if bytes == 0 {
        return Ok(stored(run, bytes));
    }
    if target.kind == FileKind::Regular && run.options.verify {
        Box::pin(check::write_verified(run, &target.file, device, block)).await?;
        return Ok(stored(run, bytes));
    }
    let _in_flight = run.pay(bytes).await?;
    if target.kind == FileKind::Regular {
        target.file.write_all_at(block, 0).await.1.during(Verb::Write)?;
    } else {
        target.file.write_next(block).await.1.during(Verb::Write)?;
    }
    Ok(stored(run, bytes))
}

/// Shares the extents, if that is allowed and possible.
async fn clone(
    run: &Run,
    abilities: &Abilities,
    stat: &Stat,
    source: &File,
    target: &Target<'_>,
) -> Result<Option<Moved>, FailureKind> {
    let always = run.options.reflink == Reflink::Always;
    let unwanted = run.options.reflink == Reflink::Never || run.options.sparse == Sparse::Never;
    // `--debug` reports the answer for each file.
    let is_promising = run.options.debug || abilities.may_clone() && stat.size > 0;
    if !always && (unwanted || !is_promising) {
        return Ok(None);
    }
    match source.clone_to(&target.file).await {
        Ok(()) => {
            abilities.note_clone();
            run.progress.bytes_done.add(stat.size);
            Ok(Some(Moved {
                method: Method::Reflink,
                bytes: stat.size,
                why: "the filesystem shares extents",
            }))
        }
        Err(error) if always || error.is_cancelled() || error.is(Errno::NOSPC) => {
            Err(Verb::Clone.failed(error))
        }
        Err(error) => {
            abilities.note_refused_clone(&error);
            Ok(None)
        }
    }
}

/// Reads from `at` until the source ends, or until the size that it has grown to.
async fn read_to_end(run: &Run, source: &File, target: &Target<'_>, at: u64) -> Result<Moved, FailureKind> {
    let mut at = at;
    loop {
        let block = run.io.block().await.during(Verb::Read)?;
        let (block, count) = source.read_at(block, at).await;
        let count = count.during(Verb::Read)? as u64;
        if count == 0 {
            let method = if at == 0 { Method::Nothing } else { Method::Whole };
            return Ok(Moved { method, bytes: at, why: "it says that it is empty" });
        }
        let _in_flight = run.pay(count).await?;
        let (_block, written) = target.file.write_all_at(block, at).await;
        written.during(Verb::Write)?;
        at += count;
        run.progress.bytes_done.add(count);
        let size = source.stat().await.during(Verb::Read)?.size;
        if size > 0 && at >= size {
            return Ok(Moved { method: Method::Whole, bytes: at, why: "it was growing" });
        }
    }
}

/// Copies a stream, which has no offsets, until it ends.
async fn stream(run: &Run, source: &File, target: &Target<'_>) -> Result<Moved, FailureKind> {
    let mut bytes = 0;
    loop {
        let block = run.io.block().await.during(Verb::Read)?;
        let (block, count) = source.read_next(block).await;
        let count = count.during(Verb::Read)? as u64;
        if count == 0 {
            return Ok(Moved { method: Method::Whole, bytes, why: "it is a stream" });
        }
        let _in_flight = run.pay(count).await?;
        let (_block, written) = target.file.write_next(block).await;
        written.during(Verb::Write)?;
        bytes += count;
        run.progress.bytes_done.add(count);
    }
}

//! How a file's bytes get from source to target: shared, moved by the kernel, pipelined, or read whole.
//!
//! In this order: extents are shared where the filesystem can (FICLONE); what was read whole is written; else the kernel
//! copies (copy_file_range), as it does for cp, which touches the bytes once; docs/decisions/0014 has the figures. Long
//! ranges, and those that are not in memory, are copied by the pool, so that the worker's other files go on. A kernel
//! that refuses is answered by the next way down: blocks are read and written at once by two threads. That is also the
//! way where nothing may be shared or left out, because copy_file_range may do both, and where the ring is forced.

use std::sync::Arc;

use ferry_io::flow::{self, Flow};
use ferry_io::{Block, Content, Errno, Error, File, FileKind, Stat};

use crate::abilities::Abilities;
use crate::copier::Copier;
use crate::direct::{Sides, is_cold};
use crate::folder::Folder;
use crate::options::{Reflink, Sparse};
use crate::pace::Pace;
use crate::report::{FailureKind, Method, Verb};
use crate::sparse;
use crate::target::Target;
use crate::writeback::Pieces;

/// One copy_file_range call: short enough for progress and Ctrl-C, far below the 2 GiB where kernels differ.
const OFFLOAD_BYTES: usize = 64 << 20;
/// Blocks in flight of one file.
const DEPTH: usize = 8;
/// Bytes of a block that is written; two that follow one another may become one call. A larger write takes larger pages; where
/// the host has to supply them anew, they cost more than the calls that they save (docs/decisions/0014).
const WRITE_BYTES: usize = 64 << 10;
/// A range this long takes milliseconds: it leaves the worker. If it is not copied by the kernel, it is read and written
/// by two threads at once.
const LONG_BYTES: u64 = 8 << 20;

/// What a file's bytes are moved with.
pub(crate) struct Way<'a> {
    pub(crate) copier: &'a Arc<Copier>,
    pub(crate) abilities: &'a Abilities,
    pub(crate) source: &'a File,
    pub(crate) target: &'a File,
    pub(crate) sides: Sides,
    pub(crate) pieces: Pieces<'a>,
}

/// What was moved, how, and why so.
pub(crate) struct Moved {
    pub(crate) method: Method,
    pub(crate) bytes: u64,
    pub(crate) why: &'static str,
}

fn io(verb: Verb) -> impl Fn(Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// The flow's errors tell which side they are of.
pub(crate) fn either(error: Error) -> FailureKind {
    let verb = if error.operation == ferry_io::Operation::Read { Verb::Read } else { Verb::Write };
    FailureKind::Io { verb, error }
}

/// Moves all of a file's bytes.
pub(crate) async fn move_all(
    copier: &Arc<Copier>,
    folder: &Folder,
    stat: &Stat,
    content: Content,
    target: &Target<'_>,
) -> Result<Moved, FailureKind> {
    match content {
        Content::Whole(block) | Content::Begun(_, block) => write_whole(copier, block, target).await,
        Content::Stored(_, bytes) => Ok(stored(copier, bytes)),
        // Apart: its state would be a part of every small file's.
        Content::Open(file) => Box::pin(move_open(copier, folder, stat, file, target)).await,
    }
}

/// What was written at once.
fn stored(copier: &Copier, bytes: u64) -> Moved {
    copier.progress.bytes_done.add(bytes);
    if bytes == 0 {
        return Moved { method: Method::Nothing, bytes, why: "it is empty" };
    }
    Moved { method: Method::Whole, bytes, why: "it fits into a block" }
}

async fn move_open(
    copier: &Arc<Copier>,
    folder: &Folder,
    stat: &Stat,
    source: File,
    target: &Target<'_>,
) -> Result<Moved, FailureKind> {
    let are_files = stat.kind == FileKind::Regular && target.kind == FileKind::Regular;
    let abilities = copier.abilities(folder, stat.device, target.device());
    // As with cp, a stream is one more thing whose extents can't be shared.
    if (are_files || copier.options.reflink == Reflink::Always)
        && let Some(moved) = clone(copier, &abilities, stat, &source, target).await?
    {
        return Ok(moved);
    }
    if !are_files {
        return stream(copier, &source, target).await;
    }
    if stat.size == 0 {
        // Files in /proc say that they are empty.
        return read_to_end(copier, &source, target, 0).await;
    }
    let mut way = Way::of(copier, &abilities, stat, (&source, &target.file));
    match copier.options.sparse {
        Sparse::Always => return sparse::punch(&mut way, stat).await,
        Sparse::Auto if stat.may_have_holes() => return sparse::copy_data(&mut way, stat).await,
        Sparse::Auto | Sparse::Never => {}
    }
    if stat.size <= copier.io.block_size() as u64 {
        let block = copier.io.block().await.map_err(io(Verb::Read))?;
        let (block, count) = source.read_at(block, 0).await;
        if count.map_err(io(Verb::Read))? as u64 == stat.size {
            return write_whole(copier, block, target).await;
        }
        drop(block);
    }
    let (method, end, why) = way.move_range((0, stat.size)).await?;
    way.end(end).await?;
    if end < stat.size {
        target.file.truncate(end).await.map_err(io(Verb::Write))?;
    }
    Ok(Moved { method, bytes: end, why: way.sides.why.unwrap_or(why) })
}

async fn write_whole(copier: &Copier, block: Block, target: &Target<'_>) -> Result<Moved, FailureKind> {
    let bytes = block.as_slice().len() as u64;
    if bytes == 0 {
        return Ok(stored(copier, bytes));
    }
    copier.pay(bytes).await?;
    let (_block, written) = if target.kind == FileKind::Regular {
        target.file.write_all_at(block, 0).await
    } else {
        target.file.write_next(block).await
    };
    written.map_err(io(Verb::Write))?;
    Ok(stored(copier, bytes))
}

/// Shares the extents, if that may be and can be.
async fn clone(
    copier: &Copier,
    abilities: &Abilities,
    stat: &Stat,
    source: &File,
    target: &Target<'_>,
) -> Result<Option<Moved>, FailureKind> {
    let always = copier.options.reflink == Reflink::Always;
    let unwanted = copier.options.reflink == Reflink::Never || copier.options.sparse == Sparse::Never;
    // `--debug` tells the answer for each file.
    let is_promising = copier.options.debug || abilities.may_clone() && stat.size > 0;
    if !always && (unwanted || !is_promising) {
        return Ok(None);
    }
    match source.clone_to(&target.file).await {
        Ok(()) => {
            abilities.note_clone();
            copier.progress.bytes_done.add(stat.size);
            Ok(Some(Moved {
                method: Method::Reflink,
                bytes: stat.size,
                why: "the filesystem shares extents",
            }))
        }
        Err(error) if always || error.is_cancelled() || error.is(Errno::NOSPC) => Err(io(Verb::Clone)(error)),
        Err(error) => {
            abilities.note_refused_clone(&error);
            Ok(None)
        }
    }
}

impl<'a> Way<'a> {
    fn of(
        copier: &'a Arc<Copier>,
        abilities: &'a Abilities,
        stat: &Stat,
        (source, target): (&'a File, &'a File),
    ) -> Self {
        if stat.size >= LONG_BYTES {
            source.expect_sequential();
        }
        let sides = Sides::of(copier, stat, source, target);
        Self { copier, abilities, source, target, sides, pieces: Pieces::of(copier, stat, &sides) }
    }

    /// Moves a range that holds data, as fast as it may, and has it written back as it goes if there is much of it; gives
    /// back the way, and where the source really ended.
    pub(crate) async fn move_range(
        &mut self,
        (start, end): (u64, u64),
    ) -> Result<(Method, u64, &'static str), FailureKind> {
        let copier = self.copier;
        let mut at = start;
        loop {
            let paid = copier.pace.as_ref().map_or(u64::MAX, Pace::piece);
            let most = self.pieces.size().map_or(paid, |size| paid.min(size)).min(self.sides.piece());
            let stop = end.min(self.sides.end_of_piece(at, most));
            copier.pay(stop - at).await?;
            let moved = self.move_at_once((at, stop)).await?;
            self.sides.forget(self.source, (at, moved.1)).await?;
            at = moved.1;
            self.pieces.reach(self.target, at).await?;
            if at < stop || at >= end {
                return Ok(moved);
            }
        }
    }

    async fn move_at_once(
        &mut self,
        (start, end): (u64, u64),
    ) -> Result<(Method, u64, &'static str), FailureKind> {
        let (copier, source, target) = (self.copier, self.source, self.target);
        let mut reached = self.sides.copy(copier, source, target, (start, end)).await?;
        if !self.sides.is_any() {
            return move_buffered(self, (reached, end)).await;
        }
        if reached < end {
            reached = pipeline(copier, source, target, (reached, end)).await?;
        }
        Ok((Method::Direct, reached, "past the page cache"))
    }

    /// All is moved up to `end`.
    pub(crate) async fn end(&mut self, end: u64) -> Result<(), FailureKind> {
        self.pieces.end(self.target, end).await?;
        self.sides.end(self.target, end).await
    }
}

async fn move_buffered(
    way: &Way<'_>,
    (start, end): (u64, u64),
) -> Result<(Method, u64, &'static str), FailureKind> {
    let Way { copier, abilities, source, target, .. } = *way;
    let is_forced = !copier.io.may_offload();
    // The kernel may share extents where it is to copy them, and leave holes.
    let stays_apart = copier.options.reflink == Reflink::Never || copier.options.sparse == Sparse::Never;
    if is_forced || stays_apart {
        let why = if is_forced { "its route is forced" } else { "nothing may be shared or left out" };
        let reached = pipeline(copier, source, target, (start, end)).await?;
        return Ok((Method::Pipeline, reached, why));
    }
    let reached = offload(copier, abilities, source, target, (start, end)).await?;
    if reached == end {
        return Ok((Method::Offload, end, "the kernel copies it"));
    }
    let end = pipeline(copier, source, target, (reached, end)).await?;
    let method = if reached > start { Method::Offload } else { Method::Pipeline };
    Ok((method, end, "the kernel would not copy it, or not all of it"))
}

pub(crate) async fn pipeline(
    copier: &Copier,
    source: &File,
    target: &File,
    (start, end): (u64, u64),
) -> Result<u64, FailureKind> {
    let overlap = end - start >= LONG_BYTES;
    let cold = overlap && is_cold(source, start, end);
    // A forced ring is there to be measured, with blocks of any size.
    let most = if copier.io.may_offload() { WRITE_BYTES } else { usize::MAX };
    let block_bytes = copier.io.block_size().min(most);
    let flow = Flow { cold, overlap, ..Flow::buffered(DEPTH, block_bytes) };
    let progress = |bytes| copier.progress.bytes_done.add(bytes);
    flow::copy(&copier.io, source, target, (start, end), flow, progress).await.map_err(either)
}

/// Lets the kernel copy a range; gives back how far it got. Where it refuses, the caller goes on by other means.
async fn offload(
    copier: &Copier,
    abilities: &Abilities,
    source: &File,
    target: &File,
    (start, end): (u64, u64),
) -> Result<u64, FailureKind> {
    let leaves_worker = end - start >= LONG_BYTES || is_cold(source, start, end);
    let mut at = start;
    while at < end && abilities.may_offload() {
        let wanted = usize::try_from(end - at).unwrap_or(OFFLOAD_BYTES).min(OFFLOAD_BYTES);
        match source.copy_range(at, target, at, wanted, leaves_worker).await {
            // No proof of the end: the caller reads there.
            Ok(0) => break,
            Ok(count) => {
                at += count as u64;
                copier.progress.bytes_done.add(count as u64);
            }
            Err(error) if error.is_cancelled() || error.is(Errno::NOSPC) || error.is(Errno::DQUOT) => {
                return Err(io(Verb::Write)(error));
            }
            // Of the source or of the target: that shows when they are read and written.
            Err(error) if error.is(Errno::IO) => break,
            Err(error) => {
                abilities.note_refused_offload(&error);
                break;
            }
        }
    }
    Ok(at)
}

/// Reads from `at` until the source ends; a file that has got a size meanwhile ends there.
async fn read_to_end(
    copier: &Copier,
    source: &File,
    target: &Target<'_>,
    at: u64,
) -> Result<Moved, FailureKind> {
    let mut at = at;
    loop {
        let block = copier.io.block().await.map_err(io(Verb::Read))?;
        let (block, count) = source.read_at(block, at).await;
        let count = count.map_err(io(Verb::Read))? as u64;
        if count == 0 {
            let method = if at == 0 { Method::Nothing } else { Method::Whole };
            return Ok(Moved { method, bytes: at, why: "it says that it is empty" });
        }
        copier.pay(count).await?;
        let (_block, written) = target.file.write_all_at(block, at).await;
        written.map_err(io(Verb::Write))?;
        at += count;
        copier.progress.bytes_done.add(count);
        let size = source.stat().await.map_err(io(Verb::Read))?.size;
        if size > 0 && at >= size {
            return Ok(Moved { method: Method::Whole, bytes: at, why: "it was growing" });
        }
    }
}

/// Copies what can't be read or written at an offset, until it ends.
async fn stream(copier: &Copier, source: &File, target: &Target<'_>) -> Result<Moved, FailureKind> {
    let mut bytes = 0;
    loop {
        let block = copier.io.block().await.map_err(io(Verb::Read))?;
        let (block, count) = source.read_next(block).await;
        let count = count.map_err(io(Verb::Read))? as u64;
        if count == 0 {
            return Ok(Moved { method: Method::Whole, bytes, why: "it is a stream" });
        }
        copier.pay(count).await?;
        let (_block, written) = target.file.write_next(block).await;
        written.map_err(io(Verb::Write))?;
        bytes += count;
        copier.progress.bytes_done.add(count);
    }
}

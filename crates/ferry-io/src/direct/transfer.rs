//! One request of a direct file's cache, from its blocks' departure to their return.
//!
//! Only vectored requests are made: the ring takes other blocks to be those that it registered, which these are not.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use rustix::io::Errno;

use crate::buffers::Block;
use crate::descriptor::Fd;
use crate::error::{Error, Operation, Result};
use crate::file::blocks_of;
use crate::op::{Op, Outcome, expect_outcome};
use crate::vectored;
use crate::worker::submit_overlapping;

use super::behind::Run;

/// So often a transfer is begun again that was interrupted (EINTR), or that moved nothing.
const MOST_FRUITLESS: u32 = 64;

/// Where the result is told besides, if somebody waits for it: what he is told, nobody else is.
pub(super) type Answer = Rc<Cell<Option<Result<()>>>>;

/// A request in flight.
pub(super) type Flight = Pin<Box<dyn Future<Output = Landed>>>;

/// What came of a request.
pub(super) struct Landed {
    pub(super) first: u64,
    pub(super) blocks: Vec<Block>,
    pub(super) kind: Kind,
    pub(super) result: Result<()>,
    pub(super) answer: Option<Answer>,
}

/// Which way the bytes went.
pub(super) enum Kind {
    /// So many bytes were there, of so many that should be.
    Read { filled: usize, wanted: usize },
    /// All bytes up to `end` of the file, if any.
    Write { run: Run, end: u64 },
}

/// How the bytes go.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) file: Fd,
    /// The same file, through the page cache: for the odd bytes at its end.
    pub(super) buffered: Fd,
    /// What offsets and sizes are multiples of.
    pub(super) unit: usize,
    /// What they must be multiples of: where a transfer that was short goes on.
    pub(super) alignment: usize,
    /// Whether pages are to leave the page cache at once (RWF_DONTCACHE).
    pub(super) uncached: bool,
}

/// Fills `wanted` bytes of the blocks from `at` on, or as many as the file has.
pub(super) async fn read(
    path: Path,
    (first, at): (u64, u64),
    blocks: Vec<Block>,
    wanted: usize,
    answer: Option<Answer>,
) -> Landed {
    let mut blocks = blocks;
    let (mut filled, mut fruitless) = (0, 0);
    let mut result = Ok(());
    while filled < wanted {
        let skip = filled - filled % path.alignment;
        let op = Op::ReadVectored {
            file: Fd::clone(&path.file),
            blocks,
            skip,
            at: at + skip as u64,
            uncached: path.uncached,
        };
        let (op, count) = submit_overlapping(op).await;
        blocks = blocks_of(op);
        match expect_outcome!(count, Outcome::Count(count) => count) {
            // Somebody else made the file shorter.
            Ok(0) => break,
            Ok(count) if skip + count > filled => filled = skip + count,
            Ok(_) if fruitless < MOST_FRUITLESS => fruitless += 1,
            Ok(_) => break,
            Err(error) if error.is(Errno::INTR) && fruitless < MOST_FRUITLESS => fruitless += 1,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    Landed { first, blocks, kind: Kind::Read { filled: filled.min(wanted), wanted }, result, answer }
}

/// Writes a run's bytes; those behind the last whole unit, at the end of the file, through the page cache, because a direct
/// request would make the file longer than it is.
pub(super) async fn write(
    path: Path,
    at: u64,
    run: Run,
    blocks: Vec<Block>,
    answer: Option<Answer>,
) -> Landed {
    let within = |offset: u64| usize::try_from(offset - at).unwrap_or(usize::MAX);
    let (start, end) = (within(run.bytes.start), within(run.bytes.end));
    let straight = end - end % path.unit;
    let (blocks, mut done, mut result) =
        put(&path, (Fd::clone(&path.file), path.alignment), at, blocks, start..straight).await;
    let mut blocks = blocks;
    if result.is_ok() && straight < end {
        let file = Fd::clone(&path.buffered);
        let rest = straight.max(start)..end;
        (blocks, done, result) = put(&path, (file, 1), at, blocks, rest).await;
    }
    let end = at + done as u64;
    Landed { first: run.blocks.start, blocks, kind: Kind::Write { run, end }, result, answer }
}

/// Writes a range of the blocks' bytes; up to where it came.
async fn put(
    path: &Path,
    (file, alignment): (Fd, usize),
    at: u64,
    mut blocks: Vec<Block>,
    range: std::ops::Range<usize>,
) -> (Vec<Block>, usize, Result<()>) {
    let (mut done, mut fruitless) = (range.start, 0);
    while done < range.end {
        vectored::set_filled(&mut blocks, range.end);
        let op = Op::WriteVectored {
            file: Fd::clone(&file),
            blocks,
            skip: done,
            at: at + done as u64,
            uncached: path.uncached,
        };
        let (op, count) = submit_overlapping(op).await;
        blocks = blocks_of(op);
        match expect_outcome!(count, Outcome::Count(count) => count) {
            Ok(count) if count >= alignment => done += count - count % alignment,
            Ok(_) if fruitless < MOST_FRUITLESS => fruitless += 1,
            Ok(_) => return (blocks, done, Err(Error::errno(Operation::Write, Errno::IO))),
            Err(error) if error.is(Errno::INTR) && fruitless < MOST_FRUITLESS => fruitless += 1,
            Err(error) => return (blocks, done, Err(error)),
        }
    }
    (blocks, done, Ok(()))
}

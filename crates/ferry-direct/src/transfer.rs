//! One request of a direct file's cache, from the departure of its blocks to their return.

use std::cell::Cell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

use ferry_io::{Block, Errno, Error, File, Operation, Result};

use crate::behind::WriteRun;

/// Number of times that a transfer is repeated after EINTR or without progress.
const MOST_REPEATS: u32 = 64;

/// Place for a request's result where a fiber waits for it. An error that is stored here is not reported elsewhere.
pub(crate) type Answer = Rc<Cell<Option<Result<()>>>>;

/// A request in flight.
pub(crate) type Request = Pin<Box<dyn Future<Output = Completion>>>;

/// A completed request.
pub(crate) struct Completion {
    /// Index of the first block.
    pub(crate) first: u64,
    pub(crate) blocks: Vec<Block>,
    pub(crate) moved: Moved,
    pub(crate) result: Result<()>,
    pub(crate) answer: Option<Answer>,
}

/// Bytes that a request moved.
pub(crate) enum Moved {
    /// `filled` bytes were read of `wanted`.
    Read { filled: usize, wanted: usize },
    /// The run's bytes were written up to the offset `end`.
    Write { run: WriteRun, end: u64 },
}

/// Descriptors and alignment of a direct file's requests.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    pub(crate) file: File,
    /// `file` through the page cache, for the odd bytes at its end.
    pub(crate) buffered: File,
    /// Requests are made in multiples of this number of bytes.
    pub(crate) unit: usize,
    /// Smallest step in bytes by which a short transfer may go on.
    pub(crate) alignment: usize,
    /// Pages leave the page cache at once (RWF_DONTCACHE).
    pub(crate) uncached: bool,
}

/// Reads `wanted` bytes into blocks, from offset `at` on; fewer if the file ends.
pub(crate) struct Read {
    /// Index of the first block.
    pub(crate) first: u64,
    pub(crate) at: u64,
    pub(crate) blocks: Vec<Block>,
    pub(crate) wanted: usize,
    pub(crate) answer: Option<Answer>,
}

impl Read {
    pub(crate) async fn perform(self, channel: Channel) -> Completion {
        let Self { first, at, mut blocks, wanted, answer } = self;
        let (mut filled, mut repeats) = (0, 0);
        let mut result = Ok(());
        while filled < wanted {
            let skip = filled - filled % channel.alignment;
            let (back, count) =
                channel.file.read_blocks_at(blocks, skip, at + skip as u64, channel.uncached).await;
            blocks = back;
            match count {
                // Another process truncated the file.
                Ok(0) => break,
                Ok(count) if skip + count > filled => filled = skip + count,
                Ok(_) if repeats < MOST_REPEATS => repeats += 1,
                Ok(_) => break,
                Err(error) if error.is(Errno::INTR) && repeats < MOST_REPEATS => repeats += 1,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let moved = Moved::Read { filled: filled.min(wanted), wanted };
        Completion { first, blocks, moved, result, answer }
    }
}

/// Writes a run's bytes from blocks that begin at offset `at`.
pub(crate) struct Write {
    pub(crate) run: WriteRun,
    pub(crate) at: u64,
    pub(crate) blocks: Vec<Block>,
    pub(crate) answer: Option<Answer>,
}

impl Write {
    /// Bytes after the file's last whole unit go through the page cache, because a direct request would pad the file.
    pub(crate) async fn perform(self, channel: Channel) -> Completion {
        let Self { run, at, blocks, answer } = self;
        let within = |offset: u64| usize::try_from(offset - at).unwrap_or(usize::MAX);
        let (start, end) = (within(run.bytes.start), within(run.bytes.end));
        let odd = end - end % channel.unit;
        let direct = Sink { file: &channel.file, alignment: channel.alignment, uncached: channel.uncached };
        let (mut blocks, mut done, mut result) = direct.write(at, blocks, start..odd).await;
        if result.is_ok() && odd < end {
            let buffered = Sink { file: &channel.buffered, alignment: 1, uncached: channel.uncached };
            (blocks, done, result) = buffered.write(at, blocks, odd.max(start)..end).await;
        }
        let end = at + done as u64;
        Completion { first: run.blocks.start, blocks, moved: Moved::Write { run, end }, result, answer }
    }
}

/// One of the two descriptors that a write uses.
struct Sink<'a> {
    file: &'a File,
    alignment: usize,
    uncached: bool,
}

impl Sink<'_> {
    /// Writes a range of the blocks' bytes, which begin at offset `at`; returns the end of the part that was written.
    async fn write(
        &self,
        at: u64,
        mut blocks: Vec<Block>,
        range: Range<usize>,
    ) -> (Vec<Block>, usize, Result<()>) {
        let (mut done, mut repeats) = (range.start, 0);
        while done < range.end {
            let left = done..range.end;
            let (back, count) =
                self.file.write_blocks_at(blocks, left, at + done as u64, self.uncached).await;
            blocks = back;
            match count {
                Ok(count) if count >= self.alignment => done += count - count % self.alignment,
                Ok(_) if repeats < MOST_REPEATS => repeats += 1,
                Ok(_) => return (blocks, done, Err(Error::errno(Operation::Write, Errno::IO))),
                Err(error) if error.is(Errno::INTR) && repeats < MOST_REPEATS => repeats += 1,
                Err(error) => return (blocks, done, Err(error)),
            }
        }
        (blocks, done, Ok(()))
    }
}

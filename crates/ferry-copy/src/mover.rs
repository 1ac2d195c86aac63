//! Moving ranges of one file: by the kernel, through blocks, or past the page cache.
//!
//! The kernel copies (copy_file_range(2)) unless it refuses, or unless sharing extents or leaving holes is forbidden,
//! because it might do either. Long ranges and those that are not cached are copied on a helper thread, so that the
//! worker's other files go on. Where the kernel does not copy, a helper thread reads and writes long ranges of local
//! files. Long cached ranges move by the fastest of several ways (`choose.rs` of ferry-io). All other ranges move through
//! blocks.

use std::ops::Range;
use std::sync::Arc;

use ferry_io::flow::{self, Flow};
use ferry_io::{Errno, Error, File, Stat, both};

use crate::abilities::{Abilities, Buffered};
use crate::direct::{Sides, is_cached, is_cold};
use crate::load::InFlight;
use crate::options::{Reflink, Sparse};
use crate::report::{FailureKind, Method, Verb};
use crate::run::Run;
use crate::staging::Part;
use crate::target::Target;
use crate::trail::{self, Trail};
use crate::writeback::{Cached, Pieces};

/// Bytes of one copy_file_range call: few enough for progress and Ctrl-C, far below the 2 GiB where kernels differ.
const OFFLOAD_BYTES: usize = 64 << 20;
/// Blocks in flight of one file.
const DEPTH: usize = 8;
/// Bytes of one write; two adjacent ones may be joined. Larger writes take larger pages, and where the host has to
/// supply those anew they cost more than the calls saved (docs/decisions/0014).
const WRITE_BYTES: usize = 64 << 10;
/// Ranges of this length take milliseconds: they leave the worker's thread, and comparing ways of copying pays.
const LONG_BYTES: u64 = 8 << 20;

/// Means to move the bytes of one file.
pub(crate) struct Mover<'a> {
    pub(crate) run: &'a Arc<Run>,
    pub(crate) abilities: &'a Abilities,
    pub(crate) source: &'a File,
    pub(crate) target: &'a File,
    pub(crate) sides: Sides,
    pieces: Pieces<'a>,
    /// The part that the target is, if it is one.
    part: Option<&'a Part>,
    /// The target's hash, if it is asked for.
    trail: Option<&'a Trail>,
}

/// Result of moving one range: the method, the offset reached, and the reason for the method.
pub(crate) struct MovedRange {
    pub(crate) method: Method,
    pub(crate) end: u64,
    pub(crate) why: &'static str,
}

/// Result of moving a file's bytes: the method, their number, and the reason for the method.
pub(crate) struct Moved {
    pub(crate) method: Method,
    pub(crate) bytes: u64,
    pub(crate) why: &'static str,
}

impl<'a> Mover<'a> {
    pub(crate) fn of(
        run: &'a Arc<Run>,
        abilities: &'a Abilities,
        stat: &Stat,
        source: &'a File,
        target: &'a Target<'_>,
    ) -> Self {
        let (part, trail, target) = (target.part(), target.trail.as_ref(), &target.file);
        if stat.size >= LONG_BYTES {
            source.expect_sequential();
        }
        let sides = Sides::of(run, stat, source, target);
        let cached = Cached { forgets: sides.forgets, is_bypassed: sides.writes_directly() };
        Self { run, abilities, source, target, sides, pieces: Pieces::of(run, stat, cached), part, trail }
    }

    /// Moves a range that holds data, within the rate limit, and writes it back early if the run is large.
    pub(crate) async fn move_range(&mut self, range: Range<u64>) -> Result<MovedRange, FailureKind> {
        let run = self.run;
        let mut at = range.start;
        loop {
            let most = run.piece();
            let most = self.pieces.size().map_or(most, |size| most.min(size)).min(self.sides.piece());
            let most = self.part.map_or(most, |part| most.min(part.piece()));
            let most = self.trail.map_or(most, |_| most.min(self.hashed_piece(at..range.end)));
            let stop = range.end.min(self.sides.end_of_piece(at, most));
            let in_flight = run.pay(stop - at).await?;
            let (target, trail) = (self.target, self.trail);
            let moved = match trail {
                // Boxed: its state would be part of every file's.
                Some(trail) => {
                    let followed = trail.follow(run, target, at);
                    Box::pin(both(self.move_piece(at..stop, in_flight), followed)).await?.0
                }
                None => self.move_piece(at..stop, in_flight).await?,
            };
            self.sides.forget(self.source, at..moved.end).await?;
            at = moved.end;
            self.reach(at).await?;
            self.note(at);
            if at < stop || at >= range.end {
                return Ok(moved);
            }
        }
    }

    /// Returns the size of the next piece of a range that is hashed piece by piece.
    fn hashed_piece(&self, range: Range<u64>) -> u64 {
        let next = range.start..range.end.min(range.start + trail::COLD_PIECE);
        if is_cold(self.source, next) { trail::COLD_PIECE } else { trail::WARM_PIECE }
    }

    /// Moves a piece that has passed the gate. Hashing beside it waits for the gate, so the piece ends before.
    async fn move_piece(
        &mut self,
        range: Range<u64>,
        in_flight: Option<InFlight<'_>>,
    ) -> Result<MovedRange, FailureKind> {
        let moved = self.move_at_once(range).await;
        drop(in_flight);
        moved
    }

    async fn move_at_once(&mut self, range: Range<u64>) -> Result<MovedRange, FailureKind> {
        let (run, source, target) = (self.run, self.source, self.target);
        let mut reached = self.sides.copy(run, source, target, range.clone()).await?;
        if !self.sides.is_any() {
            return move_buffered(self, reached..range.end).await;
        }
        if reached < range.end {
            reached = pipeline(run, source, target, reached..range.end).await?;
        }
        Ok(MovedRange { method: Method::Direct, end: reached, why: "past the page cache" })
    }

    /// Writes back what is moved up to `at`, if the run is large. Bytes that are not hashed yet stay in the page cache.
    pub(crate) async fn reach(&mut self, at: u64) -> Result<(), FailureKind> {
        let hashed = self.trail.map_or(at, Trail::at);
        self.pieces.reach(self.target, hashed).await
    }

    /// Notes a hole of the target, whose zeros are hashed without reading them. The target is hashed up to the hole
    /// before: by [`Self::move_range`], or by [`Self::follow`].
    pub(crate) fn leave_out(&self, hole: Range<u64>) {
        if let Some(trail) = self.trail {
            trail.note_hole(hole);
        }
    }

    /// Hashes bytes that were just written at an offset, while they are in their block.
    pub(crate) async fn pass(&self, at: u64, bytes: &[u8]) {
        if let Some(trail) = self.trail {
            trail.pass(at, bytes).await;
        }
    }

    /// Returns true if [`Self::follow`] takes a block.
    pub(crate) fn has_to_read(&self, end: u64) -> bool {
        self.trail.is_some_and(|trail| trail.has_to_read(end))
    }

    /// Hashes the target up to `end`.
    pub(crate) async fn follow(&self, end: u64) -> Result<(), FailureKind> {
        match self.trail {
            Some(trail) => trail.follow(self.run, self.target, end).await,
            None => Ok(()),
        }
    }

    /// Notes for the journal that all is moved up to `at`.
    pub(crate) fn note(&self, at: u64) {
        if let Some(part) = self.part {
            part.reach(at);
        }
    }

    /// Notes that all is moved up to `end`.
    pub(crate) async fn end(&mut self, end: u64) -> Result<(), FailureKind> {
        self.follow(end).await?;
        self.pieces.end(self.target, end).await?;
        self.sides.end(self.target, end).await
    }
}

async fn move_buffered(mover: &Mover<'_>, range: Range<u64>) -> Result<MovedRange, FailureKind> {
    let Mover { run, abilities, source, target, .. } = *mover;
    let is_forced = !run.io.may_offload();
    // copy_file_range(2) may share extents and leave holes.
    let stays_apart = run.options.reflink == Reflink::Never || run.options.sparse == Sparse::Never;
    if is_forced || stays_apart {
        let why = if is_forced { "its route is forced" } else { "nothing may be shared or left out" };
        let reached = if is_forced { range.start } else { read_and_write(mover, range.clone()).await? };
        let end = pipeline(run, source, target, reached..range.end).await?;
        return Ok(MovedRange { method: Method::Pipeline, end, why });
    }
    let reached = offload(run, abilities, source, target, range.clone()).await?;
    if reached == range.end {
        return Ok(MovedRange { method: Method::Offload, end: reached, why: "the kernel copies it" });
    }
    let method = if reached > range.start { Method::Offload } else { Method::Pipeline };
    let reached = read_and_write(mover, reached..range.end).await?;
    let end = pipeline(run, source, target, reached..range.end).await?;
    Ok(MovedRange { method, end, why: "the kernel would not copy it, or not all of it" })
}

/// Lets a helper thread read and write a long range of local files. Returns the offset reached; the caller goes on by
/// other means.
async fn read_and_write(mover: &Mover<'_>, range: Range<u64>) -> Result<u64, FailureKind> {
    let Mover { run, abilities, source, target, .. } = *mover;
    let mut at = range.start;
    if range.end - at < LONG_BYTES || !abilities.may_choose(source) {
        return Ok(at);
    }
    while at < range.end {
        let wanted = usize::try_from(range.end - at).unwrap_or(OFFLOAD_BYTES).min(OFFLOAD_BYTES);
        let Buffered { cached, cold } = &abilities.buffered;
        let ways = if is_cached(source, at..at + wanted as u64) { cached } else { cold };
        match source.copy_pieces(at, target, wanted, ways).await {
            // Not a proof of the end: the caller reads there.
            Ok(0) => break,
            Ok(count) => {
                at += count as u64;
                run.progress.bytes_done.add(count as u64);
            }
            Err(error) if is_final(&error) => return Err(Verb::Write.failed(error)),
            // Going on block by block will show which side it is of.
            Err(_) => break,
        }
    }
    Ok(at)
}

/// Returns true for errors after which other means are of no use.
fn is_final(error: &Error) -> bool {
    error.is_cancelled() || error.is(Errno::NOSPC) || error.is(Errno::DQUOT)
}

async fn pipeline(run: &Run, source: &File, target: &File, range: Range<u64>) -> Result<u64, FailureKind> {
    let overlap = range.end - range.start >= LONG_BYTES;
    let cold = overlap && is_cold(source, range.clone());
    // A forced ring is measured with blocks of any size.
    let most = if run.io.may_offload() { WRITE_BYTES } else { usize::MAX };
    let block_bytes = run.io.block_size().min(most);
    let flow = Flow { cold, overlap, ..Flow::buffered(DEPTH, block_bytes) };
    let progress = |bytes| run.progress.bytes_done.add(bytes);
    flow::copy(&run.io, source, target, (range.start, range.end), flow, progress)
        .await
        .map_err(|error| Verb::of_flow(&error).failed(error))
}

/// Lets the kernel copy a range. Returns the offset reached; the caller goes on by other means.
async fn offload(
    run: &Run,
    abilities: &Abilities,
    source: &File,
    target: &File,
    range: Range<u64>,
) -> Result<u64, FailureKind> {
    let is_long = range.end - range.start >= LONG_BYTES;
    let leaves_worker = is_long || is_cold(source, range.clone());
    let mut chooses = is_long && abilities.may_choose(source);
    let mut at = range.start;
    while at < range.end && abilities.may_offload() {
        let wanted = usize::try_from(range.end - at).unwrap_or(OFFLOAD_BYTES).min(OFFLOAD_BYTES);
        // Reads of a device take as long for each way, and what is cached of such a range was read ahead.
        chooses = chooses && is_cached(source, at..at + wanted as u64);
        let copied = if chooses {
            source.copy_pieces(at, target, wanted, &abilities.ways).await
        } else {
            source.copy_range(at, target, at, wanted, leaves_worker).await
        };
        match copied {
            // Not a proof of the end: the caller reads there.
            Ok(0) => break,
            Ok(count) => {
                at += count as u64;
                run.progress.bytes_done.add(count as u64);
            }
            Err(error) if is_final(&error) => return Err(Verb::Write.failed(error)),
            // Reading and writing will show which side it is of.
            Err(error) if error.is(Errno::IO) => break,
            Err(error) => {
                abilities.note_refused_offload(&error);
                break;
            }
        }
    }
    Ok(at)
}

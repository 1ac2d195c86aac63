//! `--direct`: the sides of a file's copy, and the ranges of its bytes, that go past the page cache.
//!
//! Whole units go directly, several blocks in flight. The rest goes through the page cache: odd bytes at the end, the
//! start of a range up to the next unit, and data between holes that fits into a block. The target's part of that
//! leaves the page cache once all is moved. A target that should be written directly and can't be leaves it piece by
//! piece (`writeback.rs`).
//!
//! With [`Direct::Auto`] cold files go directly only once the run takes more memory than is available, and would evict
//! other programs' pages. Speed is no reason: on some devices direct reads take twice as long as the kernel's
//! read-ahead. Filesystems that do not report an alignment are left out, because a network's may have its own way of
//! copying. Figures: docs/decisions/0003 and 0014.

use std::cell::Cell;
use std::ops::Range;

use ferry_io::flow::{self, Flow};
use ferry_io::{DirectUnit, Errno, File, Stat, WhyBuffered};

use crate::options::{Direct, Sparse};
use crate::report::{FailureKind, Verb};
use crate::run::Run;
use crate::writeback;

/// Smaller files go through the page cache unless [`Direct::Always`] is asked for.
const LARGE: u64 = 8 << 20;
/// Most bytes of a source in the page cache, where its filesystem reads through the cache nevertheless.
const FORGOTTEN: u64 = 32 << 20;
/// Blocks in flight of one file.
const DEPTH: usize = 8;

/// Sides of one file's copy that go past the page cache.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sides {
    source: bool,
    target: bool,
    /// Alignment of requests, in bytes.
    unit: u64,
    /// Set if the filesystems reported the alignment, or a request has succeeded.
    is_sure: bool,
    /// Set if the target goes through the page cache and leaves it while it is written.
    pub(crate) forgets: bool,
    /// Set if the source leaves the page cache piece by piece, because its filesystem may read through it nevertheless,
    /// as btrfs does for bytes with checksums. Not set if some of the file was cached before.
    forgets_source: bool,
    /// Offset of the target's first bytes in the page cache, though it should have none there.
    odd: Option<u64>,
    /// Reason, for `--explain`.
    pub(crate) why: Option<&'static str>,
}

/// Wish to copy a file directly.
#[derive(Debug, Clone, Copy)]
struct Wish {
    /// Set if filesystems that do not report an alignment are tried.
    tries: bool,
}

impl Wish {
    fn of(run: &Run, stat: &Stat, source: &File) -> Option<Self> {
        match run.options.direct {
            Direct::Never => None,
            Direct::Always if stat.size <= run.io.block_size() as u64 => None,
            Direct::Always => Some(Self { tries: true }),
            Direct::Auto if stat.size < LARGE => None,
            Direct::Auto => {
                let is_wanted = writeback::fills_memory(run, stat) && is_cold(source, 0..stat.size);
                is_wanted.then_some(Self { tries: false })
            }
        }
    }

    /// Finds out how a file can be accessed directly.
    fn ask(self, run: &Run, file: &File) -> Result<DirectUnit, WhyBuffered> {
        let unit = file.set_direct()?;
        file.set_buffered();
        let fits = (run.io.block_size() as u64).is_multiple_of(unit.bytes);
        if fits && (unit.is_reported || self.tries) {
            Ok(unit)
        } else {
            Err(WhyBuffered::Alignment(unit.bytes))
        }
    }
}

impl Sides {
    /// Chooses the sides for a file that is about to be copied.
    pub(crate) fn of(run: &Run, stat: &Stat, source: &File, target: &File) -> Self {
        let Some(wish) = Wish::of(run, stat, source) else { return Self::default() };
        let read = wish.ask(run, source);
        if read.is_err() && !wish.tries {
            return Self::default();
        }
        let is_hashed = run.options.digest.is_some();
        // Its hash is that of what the page cache has of it.
        let written = wish.ask(run, target);
        let written = if is_hashed { written.and(Err(WhyBuffered::NotThisFile)) } else { written };
        if run.options.sparse == Sparse::Always {
            return Self::of_zeros(stat, source, written);
        }
        let units = || [read, written].into_iter().flatten();
        Self {
            source: read.is_ok(),
            target: written.is_ok(),
            unit: units().map(|unit| unit.bytes).max().unwrap_or(1),
            is_sure: units().all(|unit| unit.is_reported),
            forgets: matches!(written, Err(why) if why != WhyBuffered::InMemory),
            forgets_source: read.is_ok_and(|unit| !unit.is_reported)
                && source.cached_bytes(0, stat.size).is_some_and(|(cached, _)| cached == 0),
            // Such a filesystem also writes through the page cache now and then.
            odd: written.is_ok_and(|unit| !unit.is_reported).then_some(0),
            why: Some(match (read, written) {
                (Ok(_), Ok(_)) if !wish.tries => {
                    "past the page cache: the copy is larger than the available memory"
                }
                (Ok(_), Ok(_)) => "past the page cache",
                (Ok(_), Err(_)) if is_hashed => "read past the page cache; the target is hashed from there",
                (Ok(_), Err(_)) => "read past the page cache; the target has no direct I/O",
                (Err(_), Ok(_)) => "written past the page cache; the source has no direct I/O",
                (Err(_), Err(_)) => "through the page cache: there is no direct I/O",
            }),
        }
    }

    /// Chooses the sides where zeros become holes. Each block is examined, so both sides go through the page cache and
    /// leave it.
    fn of_zeros(stat: &Stat, source: &File, written: Result<DirectUnit, WhyBuffered>) -> Self {
        let is_new = source.cached_bytes(0, stat.size).is_some_and(|(cached, _)| cached == 0);
        Self {
            forgets: written != Err(WhyBuffered::InMemory),
            forgets_source: is_new,
            why: Some("through the page cache, which it leaves as it goes: zeros become holes"),
            ..Self::default()
        }
    }

    /// Returns true if a side goes past the page cache.
    pub(crate) fn is_any(&self) -> bool {
        self.source || self.target
    }

    /// Returns the number of bytes to move before their pages are dropped.
    pub(crate) fn piece(&self) -> u64 {
        if self.forgets_source { FORGOTTEN } else { u64::MAX }
    }

    /// Drops a range of the source from the page cache after it was read.
    pub(crate) async fn forget(&self, source: &File, range: Range<u64>) -> Result<(), FailureKind> {
        if !self.forgets_source {
            return Ok(());
        }
        let size = range.end.next_multiple_of(self.unit()) - range.start;
        match source.finish_write_back(range.start, size, true).await {
            Err(error) if error.is_cancelled() => Err(Verb::of_flow(&error).failed(error)),
            // This copy has written nothing to its source: other programs' write errors are reported to them.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns true if the target goes past the page cache, so that almost nothing of it is dirty.
    pub(crate) fn writes_directly(&self) -> bool {
        self.target
    }

    /// Returns the alignment of a range's pieces, in bytes.
    pub(crate) fn unit(&self) -> u64 {
        self.unit.max(1)
    }

    /// Notes that bytes from this offset on go to the target through the page cache.
    pub(crate) fn note_odd(&mut self, at: u64) {
        if self.target {
            self.odd = Some(self.odd.map_or(at, |odd| odd.min(at)));
        }
    }

    /// Returns the end of a piece of up to `most` bytes: a multiple of the unit, so that the next piece can go
    /// directly.
    pub(crate) fn end_of_piece(&self, at: u64, most: u64) -> u64 {
        let unit = self.unit();
        if at.is_multiple_of(unit) {
            at.saturating_add((most - most % unit).max(unit))
        } else {
            at.checked_next_multiple_of(unit).unwrap_or(u64::MAX)
        }
    }

    /// Moves the start of a range past the page cache, as far as possible. Returns the offset reached.
    pub(crate) async fn copy(
        &mut self,
        run: &Run,
        source: &File,
        target: &File,
        range: Range<u64>,
    ) -> Result<u64, FailureKind> {
        let (mut at, end) = (range.start, range.end);
        let end_of_units = if self.target { end - end % self.unit() } else { end };
        while self.is_any() && at.is_multiple_of(self.unit()) && at < end_of_units {
            // An unreported alignment is tried with one block.
            let most = if self.is_sure { u64::MAX } else { run.io.block_size() as u64 };
            let stop = end_of_units.min(at.saturating_add(most));
            match self.copy_units(run, source, target, at..stop).await {
                Ok(reached) => {
                    at = reached;
                    self.is_sure = true;
                    if reached < stop {
                        break;
                    }
                }
                // Perhaps not because of the alignment: a limit on a file's size may be no multiple of a unit. Writing
                // through the page cache succeeds, or shows the reason.
                Err(error) if error.is(Errno::INVAL) => self.give_up(at),
                Err(error) => return Err(Verb::of_flow(&error).failed(error)),
            }
        }
        if at == end {
            return Ok(at);
        }
        self.note_odd(at);
        if self.source && at.is_multiple_of(self.unit()) {
            // A read may end at any offset.
            let reading = Self { target: false, ..*self };
            match reading.copy_units(run, source, target, at..end).await {
                Ok(reached) => at = reached,
                Err(error) if error.is(Errno::INVAL) => self.give_up(at),
                Err(error) => return Err(Verb::of_flow(&error).failed(error)),
            }
        }
        Ok(at)
    }

    /// Sends all bytes from this offset on through the page cache.
    fn give_up(&mut self, at: u64) {
        self.note_odd(at);
        (self.source, self.target) = (false, false);
        self.why = Some("through the page cache: direct requests were refused");
    }

    async fn copy_units(
        self,
        run: &Run,
        source: &File,
        target: &File,
        range: Range<u64>,
    ) -> ferry_io::Result<u64> {
        let unit = if self.target { usize::try_from(self.unit).unwrap_or(usize::MAX) } else { 1 };
        let buffered = Flow::buffered(DEPTH, run.io.block_size());
        let flow = Flow { unit, cold: true, overlap: true, ..buffered };
        // If this fails now, the bytes go through the page cache.
        let sides = [self.source.then_some(source), self.target.then_some(target)];
        for file in sides.into_iter().flatten() {
            file.set_direct().ok();
        }
        let done = &run.progress.bytes_done;
        let moved = Cell::new(0);
        let progress = |bytes| {
            moved.set(moved.get() + bytes);
            done.add(bytes);
        };
        let reached = flow::copy(&run.io, source, target, (range.start, range.end), flow, progress).await;
        source.set_buffered();
        target.set_buffered();
        if reached.is_err() {
            // Unless the run ends, they are moved again.
            run.progress.bytes_found.add(moved.get());
        }
        reached
    }

    /// Drops the target's bytes from the page cache once all is moved up to `end`.
    pub(crate) async fn end(self, target: &File, end: u64) -> Result<(), FailureKind> {
        let Some(odd) = self.odd.filter(|&odd| odd < end) else { return Ok(()) };
        let range = odd - odd % self.unit()..end.next_multiple_of(self.unit());
        writeback::write_back(target, range, true).await
    }
}

/// Returns true if less than half of the range is cached. A range with dirty pages is not on the device, and not cold.
pub(crate) fn is_cold(source: &File, range: Range<u64>) -> bool {
    match source.cached_bytes(range.start, range.end - range.start) {
        Some((cached, dirty)) => dirty == 0 && cached < (range.end - range.start) / 2,
        None => false,
    }
}

/// Returns true if nearly all of a range is known to be in memory (cachestat(2), Linux 6.5).
pub(crate) fn is_cached(source: &File, range: Range<u64>) -> bool {
    let size = range.end - range.start;
    source.cached_bytes(range.start, size).is_some_and(|(cached, _)| cached >= size / 10 * 9)
}

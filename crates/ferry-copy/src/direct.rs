//! `--direct`: which sides of a file's copy go past the page cache, and what of its bytes does.
//!
//! Whole units go directly, several blocks in flight. What is left, the odd bytes at the end, ranges that do not begin
//! at a unit up to the next one, and data between holes that fits into a block, goes through the page cache as ever; what the target has
//! there leaves it when all is moved. So does, piece by piece, all of a target that should be written directly and can't
//! be (`writeback.rs`). By [`Direct::Auto`] cold files are read and written directly only once the run takes more memory than
//! can be had, and would push other programs' pages out. Speed is no reason: on some devices direct reads take twice as long as
//! the kernel's read-ahead. Not where the filesystem does not say how requests must be aligned: a network's may have its own
//! way of copying. Figures: docs/decisions/0003 and 0014.

use std::cell::Cell;

use ferry_io::flow::{self, Flow};
use ferry_io::{DirectUnit, Errno, File, Stat, WhyBuffered};

use crate::bytes::either;
use crate::copier::Copier;
use crate::options::{Direct, Sparse};
use crate::report::FailureKind;
use crate::writeback;

/// Smaller files go through the page cache unless [`Direct::Always`] is asked for.
const LARGE: u64 = 8 << 20;
/// What of a source is in memory at most where its filesystem reads through the page cache.
const FORGOTTEN: u64 = 32 << 20;
/// Blocks in flight of one file.
const DEPTH: usize = 8;

/// Which sides of one file's copy go past the page cache.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sides {
    source: bool,
    target: bool,
    /// What requests are multiples of.
    unit: u64,
    /// Whether the filesystems said so, or a request has shown it.
    is_sure: bool,
    /// Whether the target goes through the page cache and is to leave it as it is written.
    pub(crate) forgets: bool,
    /// Whether the filesystem may read through the page cache all the same, as btrfs does where bytes have checksums: then
    /// what it left there is forgotten, unless some of the file was there before.
    forgets_source: bool,
    /// Where the first bytes are that a target has in the page cache though it should have none there.
    odd: Option<u64>,
    /// What is told of it.
    pub(crate) why: Option<&'static str>,
}

/// What is wanted of a file.
#[derive(Debug, Clone, Copy)]
struct Wish {
    /// Whether filesystems that do not say how are asked by trying.
    tries: bool,
}

impl Wish {
    fn of(copier: &Copier, stat: &Stat, source: &File) -> Option<Self> {
        match copier.options.direct {
            Direct::Never => None,
            Direct::Always if stat.size <= copier.io.block_size() as u64 => None,
            Direct::Always => Some(Self { tries: true }),
            Direct::Auto if stat.size < LARGE => None,
            Direct::Auto => {
                let is_wanted = writeback::fills_memory(copier, stat) && is_cold(source, 0, stat.size);
                is_wanted.then_some(Self { tries: false })
            }
        }
    }

    /// How a file can be had directly.
    fn ask(self, copier: &Copier, file: &File) -> Result<DirectUnit, WhyBuffered> {
        let unit = file.set_direct()?;
        file.set_buffered();
        let fits = (copier.io.block_size() as u64).is_multiple_of(unit.bytes);
        if fits && (unit.is_reported || self.tries) {
            Ok(unit)
        } else {
            Err(WhyBuffered::Alignment(unit.bytes))
        }
    }
}

impl Sides {
    /// Those of a file that is about to be copied.
    pub(crate) fn of(copier: &Copier, stat: &Stat, source: &File, target: &File) -> Self {
        let Some(wish) = Wish::of(copier, stat, source) else { return Self::default() };
        let read = wish.ask(copier, source);
        if read.is_err() && !wish.tries {
            return Self::default();
        }
        let written = wish.ask(copier, target);
        if copier.options.sparse == Sparse::Always {
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
            // Such a filesystem writes so, too, and leaves a page now and then.
            odd: written.is_ok_and(|unit| !unit.is_reported).then_some(0),
            why: Some(match (read, written) {
                (Ok(_), Ok(_)) if !wish.tries => {
                    "past the page cache: the copy is larger than the available memory"
                }
                (Ok(_), Ok(_)) => "past the page cache",
                (Ok(_), Err(_)) => "read past the page cache; the target has no direct I/O",
                (Err(_), Ok(_)) => "written past the page cache; the source has no direct I/O",
                (Err(_), Err(_)) => "through the page cache: there is no direct I/O",
            }),
        }
    }

    /// Where zeros become holes, each block is looked through: both sides go through the page cache, and what should not
    /// be there leaves it.
    fn of_zeros(stat: &Stat, source: &File, written: Result<DirectUnit, WhyBuffered>) -> Self {
        let is_new = source.cached_bytes(0, stat.size).is_some_and(|(cached, _)| cached == 0);
        Self {
            forgets: written != Err(WhyBuffered::InMemory),
            forgets_source: is_new,
            why: Some("through the page cache, which it leaves as it goes: zeros become holes"),
            ..Self::default()
        }
    }

    /// Whether any side goes past the page cache.
    pub(crate) fn is_any(&self) -> bool {
        self.source || self.target
    }

    /// Bytes that are moved before it is looked after what they left in memory.
    pub(crate) fn piece(&self) -> u64 {
        if self.forgets_source { FORGOTTEN } else { u64::MAX }
    }

    /// A range has been read: it leaves the page cache.
    pub(crate) async fn forget(&self, source: &File, (start, end): (u64, u64)) -> Result<(), FailureKind> {
        if !self.forgets_source {
            return Ok(());
        }
        let size = end.next_multiple_of(self.unit()) - start;
        match source.finish_write_back(start, size, true).await {
            Err(error) if error.is_cancelled() => Err(either(error)),
            // This copy has written nothing to its source: what others could not write there is theirs to be told.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether the target does, so that next to nothing of it is dirty.
    pub(crate) fn writes_directly(&self) -> bool {
        self.target
    }

    /// What a range's pieces are multiples of.
    pub(crate) fn unit(&self) -> u64 {
        self.unit.max(1)
    }

    /// Bytes from here on go to the target through the page cache.
    pub(crate) fn note_odd(&mut self, at: u64) {
        if self.target {
            self.odd = Some(self.odd.map_or(at, |odd| odd.min(at)));
        }
    }

    /// Where a piece of at most so many bytes ends: at a unit, so that what comes next can go directly.
    pub(crate) fn end_of_piece(&self, at: u64, most: u64) -> u64 {
        let unit = self.unit();
        if at.is_multiple_of(unit) {
            at.saturating_add((most - most % unit).max(unit))
        } else {
            at.checked_next_multiple_of(unit).unwrap_or(u64::MAX)
        }
    }

    /// Moves what can be moved past the page cache from the start of a range on; where it stopped.
    pub(crate) async fn copy(
        &mut self,
        copier: &Copier,
        source: &File,
        target: &File,
        (start, end): (u64, u64),
    ) -> Result<u64, FailureKind> {
        let mut at = start;
        let end_of_units = if self.target { end - end % self.unit() } else { end };
        while self.is_any() && at.is_multiple_of(self.unit()) && at < end_of_units {
            // Whether it does is tried with one block.
            let most = if self.is_sure { u64::MAX } else { copier.io.block_size() as u64 };
            let stop = end_of_units.min(at.saturating_add(most));
            match self.copy_units(copier, source, target, (at, stop)).await {
                Ok(reached) => {
                    at = reached;
                    self.is_sure = true;
                    if reached < stop {
                        break;
                    }
                }
                // Not always of the alignment: at a limit of a file's size that is no multiple of a unit, too. The page
                // cache does not refuse it, or tells what is wrong.
                Err(error) if error.is(Errno::INVAL) => self.give_up(at),
                Err(error) => return Err(either(error)),
            }
        }
        if at == end {
            return Ok(at);
        }
        self.note_odd(at);
        if self.source && at.is_multiple_of(self.unit()) {
            // Reading may end anywhere.
            let reading = Self { target: false, ..*self };
            match reading.copy_units(copier, source, target, (at, end)).await {
                Ok(reached) => at = reached,
                Err(error) if error.is(Errno::INVAL) => self.give_up(at),
                Err(error) => return Err(either(error)),
            }
        }
        Ok(at)
    }

    /// Everything from here on goes through the page cache.
    fn give_up(&mut self, at: u64) {
        self.note_odd(at);
        (self.source, self.target) = (false, false);
        self.why = Some("through the page cache: direct requests were refused");
    }

    async fn copy_units(
        self,
        copier: &Copier,
        source: &File,
        target: &File,
        range: (u64, u64),
    ) -> ferry_io::Result<u64> {
        let unit = if self.target { usize::try_from(self.unit).unwrap_or(usize::MAX) } else { 1 };
        let buffered = Flow::buffered(DEPTH, copier.io.block_size());
        let flow = Flow { unit, cold: true, overlap: true, ..buffered };
        // It could be done before, and if it can't be any more, the bytes go through the page cache.
        for (_, file) in [(self.source, source), (self.target, target)].into_iter().filter(|(is, _)| *is) {
            file.set_direct().ok();
        }
        let done = &copier.progress.bytes_done;
        let moved = Cell::new(0);
        let progress = |bytes| {
            moved.set(moved.get() + bytes);
            done.add(bytes);
        };
        let reached = flow::copy(&copier.io, source, target, range, flow, progress).await;
        source.set_buffered();
        target.set_buffered();
        if reached.is_err() {
            // If it is not the end, they are moved again.
            copier.progress.bytes_found.add(moved.get());
        }
        reached
    }

    /// All is moved up to `end`: what is in the target's page cache leaves it.
    pub(crate) async fn end(self, target: &File, end: u64) -> Result<(), FailureKind> {
        let Some(odd) = self.odd.filter(|&odd| odd < end) else { return Ok(()) };
        let range = (odd - odd % self.unit(), end.next_multiple_of(self.unit()));
        writeback::write_back(target, range, true).await
    }
}

/// Whether less than half of the range is in memory. What is dirty there is not on the device, and not cold.
pub(crate) fn is_cold(source: &File, start: u64, end: u64) -> bool {
    match source.cached_bytes(start, end - start) {
        Some((cached, dirty)) => dirty == 0 && cached < (end - start) / 2,
        None => false,
    }
}

//! Early write-back: bounds the dirty pages of copies that are large for the memory.
//!
//! Dirty pages are cheap until there are too many. Then the kernel blocks every writer, and a control group without a
//! share of its own has to find clean pages first. So once a run writes more than the kernel lets pass without slowing
//! its writers (`dirty.rs`), each further large file is written back in pieces while it is written: one piece is
//! started when it is written, and the piece before it is awaited. Smaller copies pay nothing; figures in
//! docs/decisions/0011. With `--fsync` every file is written back early, but below that amount no piece is awaited
//! (docs/decisions/0014).
//!
//! An error of sync_file_range(2) is its file's error: the kernel reports a failed write once per descriptor, and the
//! call has taken it. Only the first call for a file may answer that early write-back is unsupported. That call waits
//! for nothing, so it can't have taken an error, and the file is left alone from then on.
//!
//! Limits: files that fit into a block are left to the kernel, and so are targets that are no files.

use std::ops::Range;

use ferry_io::{Errno, Error, File, Stat};

use crate::report::{During as _, FailureKind, Method, Verb};
use crate::run::Run;

/// Size of a piece that is started and not awaited: it gives the device work early, in large requests.
const DURABLE_PIECE: u64 = 8 << 20;

/// Use that a target makes of the page cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cached {
    /// Set if its bytes leave the page cache once they are written back.
    pub(crate) forgets: bool,
    /// Set if its bytes go past the page cache.
    pub(crate) is_bypassed: bool,
}

/// Pieces of one file.
pub(crate) struct Pieces<'a> {
    run: &'a Run,
    /// Offset up to which pieces are started; `None` if the file is left alone.
    begun: Option<u64>,
    waited: u64,
    /// Set once a call has succeeded for this file.
    works: bool,
    /// Set if the write-back of each piece is awaited after that of the next piece has started.
    waits: bool,
    /// Set if awaited pieces leave the page cache.
    forgets: bool,
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(run: &'a Run, stat: &Stat, cached: Cached) -> Self {
        let waits = cached.forgets || !cached.is_bypassed && is_much(run, stat);
        if waits {
            run.dirty.begin_file();
        }
        let is_begun = waits || run.options.fsync && !cached.is_bypassed;
        let begun = is_begun.then_some(0);
        Self { run, begun, waited: 0, works: false, waits, forgets: cached.forgets }
    }

    /// Returns the size of a piece in bytes, if there are pieces.
    pub(crate) fn size(&self) -> Option<u64> {
        self.begun.map(|_| self.piece())
    }

    fn piece(&self) -> u64 {
        if self.waits { self.run.dirty.piece() } else { DURABLE_PIECE }
    }

    /// Notes that the file is written up to `at`.
    pub(crate) async fn reach(&mut self, target: &File, at: u64) -> Result<(), FailureKind> {
        let Some(begun) = self.begun else { return Ok(()) };
        if at.saturating_sub(begun) < self.piece() {
            return Ok(());
        }
        if !self.start(target, begun..at).await? {
            return Ok(());
        }
        if self.waits && begun > self.waited {
            finish(target, self.waited..begun, self.forgets).await?;
        }
        self.waited = begun;
        self.begun = Some(at);
        Ok(())
    }

    /// Notes that the file is written up to `at`, its end.
    pub(crate) async fn end(&mut self, target: &File, at: u64) -> Result<(), FailureKind> {
        let Some(begun) = self.begun else { return Ok(()) };
        if at > begun && !self.start(target, begun..at).await? || !self.waits || at <= self.waited {
            return Ok(());
        }
        finish(target, self.waited..at, self.forgets).await
    }

    /// Starts a piece. Returns false if that is unsupported here: the file is left alone from then on.
    async fn start(&mut self, target: &File, range: Range<u64>) -> Result<bool, FailureKind> {
        let is_started = start(target, range, self.works).await?;
        self.works |= is_started;
        if !is_started {
            self.stop();
        }
        Ok(is_started)
    }

    fn stop(&mut self) {
        if self.begun.take().is_some() && self.waits {
            self.run.dirty.end_file();
        }
    }
}

impl Drop for Pieces<'_> {
    /// The pieces of the other files become larger.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns true if a run writes more, with this file's data, than the kernel lets pass.
fn is_much(run: &Run, stat: &Stat) -> bool {
    written_with(run, stat).is_some_and(|written| run.dirty.is_much(written))
}

/// Returns true if a run, with this file's data, takes all available memory.
pub(crate) fn fills_memory(run: &Run, stat: &Stat) -> bool {
    written_with(run, stat).is_some_and(|written| run.dirty.fills_memory(written))
}

/// Returns the bytes that a run has written with this file's; `None` for a file that fits into a block.
fn written_with(run: &Run, stat: &Stat) -> Option<u64> {
    let size = stat.size.min(stat.blocks.saturating_mul(512));
    let cloned = run.tally.bytes_by(Method::Reflink);
    let written = run.progress.bytes_done.get().saturating_sub(cloned).saturating_add(size);
    (size > run.io.block_size() as u64).then_some(written)
}

/// Writes a range back and waits for it; with `forgets` it leaves the page cache.
///
/// # Errors
/// The failure to write it. Does nothing where a range can't be written back by itself.
pub(crate) async fn write_back(file: &File, range: Range<u64>, forgets: bool) -> Result<(), FailureKind> {
    if start(file, range.clone(), false).await? { finish(file, range, forgets).await } else { Ok(()) }
}

/// Starts to write back a range. Returns false if that is unsupported here, which is impossible once it `works`.
async fn start(file: &File, range: Range<u64>, works: bool) -> Result<bool, FailureKind> {
    match file.start_write_back(range.start, range.end - range.start).await {
        Ok(()) => Ok(true),
        Err(error) if !works && is_unsupported(&error) => Ok(false),
        Err(error) => Err(Verb::Write.failed(error)),
    }
}

async fn finish(file: &File, range: Range<u64>, forgets: bool) -> Result<(), FailureKind> {
    file.finish_write_back(range.start, range.end - range.start, forgets).await.during(Verb::Write)
}

/// Returns true for the answers of a kernel without sync_file_range(2) (ENOSYS), of an emulation that does not know the
/// flags (EINVAL, EOPNOTSUPP), of a filter of system calls (EPERM), and for a target that is no file (ESPIPE). Every
/// other error is one of writing.
fn is_unsupported(error: &Error) -> bool {
    let unsupported = [Errno::NOSYS, Errno::INVAL, Errno::OPNOTSUPP, Errno::PERM, Errno::SPIPE];
    unsupported.iter().any(|&errno| error.is(errno))
}

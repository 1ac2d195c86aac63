//! Early write-back: what a copy that is large for the memory leaves dirty is bounded.
//!
//! Dirty pages are cheap until there are too many: then the kernel stops whoever writes, the copy and everybody else, and
//! in a control group without a share of its own it has to find clean pages first. So once a run has written, or is about
//! to write, more than the kernel lets pass without slowing its writers (half way between the two limits of
//! proc_sys_vm(5), of what memory is available, or of the control group's limit if that is less), each further large
//! file is written back as it goes, by pieces: one is begun when it is written, and the one before it is waited for. A
//! copy that stays below pays nothing; the figures are in docs/decisions/0011. With `--fsync` every file is written back as it
//! goes, but no piece is waited for below that amount (docs/decisions/0014).
//!
//! An answer of sync_file_range(2) that is an error is that file's error: the kernel reports what it could not write
//! once for a descriptor, and the call has taken it. Only the first call for a file may answer that the filesystem, or the
//! kernel, can't be told to write back a range. That call waits for nothing, so it can't have taken an error, and the file is left alone
//! from then on.
//!
//! Limits: files that fit into a block are left to the kernel, and so is a target that is no file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferry_io::{Errno, Error, File, Stat};

use crate::copier::Copier;
use crate::direct::Sides;
use crate::report::{FailureKind, Method, Verb};

/// Less than this is never much.
const SMALL: u64 = 64 << 20;
/// What all files together may have in pieces being written or written back, at least and at most.
const FEWEST: u64 = 8 << 20;
const MOST: u64 = 256 << 20;
/// The smallest and the largest piece of one file.
const SMALLEST_PIECE: u64 = 1 << 20;
const LARGEST_PIECE: u64 = 32 << 20;
/// A piece that is begun and not waited for: the device has work early, in large requests.
const DURABLE_PIECE: u64 = 8 << 20;

/// What one run knows of memory.
#[derive(Default)]
pub(crate) struct WriteBack {
    bounds: OnceLock<Bounds>,
    /// Files being written back as they go.
    files: AtomicUsize,
}

/// From when on, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    /// Bytes written by one run.
    begins: u64,
    /// Bytes in pieces of all files.
    pieces: u64,
    /// Bytes written by one run that take all memory, as each is in memory for its source and for its target.
    fills: u64,
}

/// One file's pieces.
pub(crate) struct Pieces<'a> {
    copier: &'a Copier,
    /// Where what was not yet begun starts, and before it what was not yet waited for; `None` if nothing is done.
    begun: Option<u64>,
    waited: u64,
    /// Set once a call has succeeded for this file.
    works: bool,
    /// Whether a piece is waited for once the next one is begun.
    waits: bool,
    /// Whether what was waited for leaves the page cache.
    forgets: bool,
}

impl<'a> Pieces<'a> {
    /// For a file.
    pub(crate) fn of(copier: &'a Copier, stat: &Stat, sides: &Sides) -> Self {
        let waits = sides.forgets || !sides.writes_directly() && is_much(copier, stat);
        if waits {
            copier.write_back.files.fetch_add(1, Ordering::Relaxed);
        }
        let is_begun = waits || copier.options.fsync && !sides.writes_directly();
        let begun = is_begun.then_some(0);
        Self { copier, begun, waited: 0, works: false, waits, forgets: sides.forgets }
    }

    /// Bytes of one piece, if there are pieces.
    pub(crate) fn size(&self) -> Option<u64> {
        self.begun.map(|_| self.piece())
    }

    fn piece(&self) -> u64 {
        if self.waits { self.copier.write_back.piece() } else { DURABLE_PIECE }
    }

    /// The file is written up to `at`.
    pub(crate) async fn reach(&mut self, target: &File, at: u64) -> Result<(), FailureKind> {
        let Some(begun) = self.begun else { return Ok(()) };
        if at.saturating_sub(begun) < self.piece() {
            return Ok(());
        }
        if !self.start(target, (begun, at)).await? {
            return Ok(());
        }
        if self.waits && begun > self.waited {
            finish(target, (self.waited, begun), self.forgets).await?;
        }
        self.waited = begun;
        self.begun = Some(at);
        Ok(())
    }

    /// The file is written up to `at`, its end.
    pub(crate) async fn end(&mut self, target: &File, at: u64) -> Result<(), FailureKind> {
        let Some(begun) = self.begun else { return Ok(()) };
        if at > begun && !self.start(target, (begun, at)).await? || !self.waits || at <= self.waited {
            return Ok(());
        }
        finish(target, (self.waited, at), self.forgets).await
    }

    /// Begins a piece; false if that is unsupported here, and the file is left alone from then on.
    async fn start(&mut self, target: &File, range: (u64, u64)) -> Result<bool, FailureKind> {
        let is_started = start(target, range, self.works).await?;
        self.works |= is_started;
        if !is_started {
            self.stop();
        }
        Ok(is_started)
    }

    fn stop(&mut self) {
        if self.begun.take().is_some() && self.waits {
            self.copier.write_back.files.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Pieces<'_> {
    /// The others' pieces become larger.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns true if a run writes more, with this file's data, than the kernel lets pass.
fn is_much(copier: &Copier, stat: &Stat) -> bool {
    exceeds(copier, stat, |bounds| bounds.begins)
}

/// Returns true if a run, with this file's data, takes more memory than can be had.
pub(crate) fn fills_memory(copier: &Copier, stat: &Stat) -> bool {
    exceeds(copier, stat, |bounds| bounds.fills)
}

fn exceeds(copier: &Copier, stat: &Stat, bound: impl Fn(&Bounds) -> u64) -> bool {
    let size = stat.size.min(stat.blocks.saturating_mul(512));
    let cloned = copier.bytes_by(Method::Reflink);
    let written = copier.progress.bytes_done.get().saturating_sub(cloned).saturating_add(size);
    size > copier.io.block_size() as u64
        && written > SMALL
        && written > bound(copier.write_back.bounds.get_or_init(Bounds::of_this_machine))
}

/// Has a range written back, and waits for it; a range whose pages `forget` leaves the page cache.
///
/// # Errors
/// What could not be written. Where a range can't be written back by itself, nothing is done.
pub(crate) async fn write_back(file: &File, range: (u64, u64), forgets: bool) -> Result<(), FailureKind> {
    if start(file, range, false).await? { finish(file, range, forgets).await } else { Ok(()) }
}

/// Begins to write back a range; false if that is unsupported here, which it can't be once it `works`.
async fn start(file: &File, (start, end): (u64, u64), works: bool) -> Result<bool, FailureKind> {
    match file.start_write_back(start, end - start).await {
        Ok(()) => Ok(true),
        Err(error) if !works && is_unsupported(&error) => Ok(false),
        Err(error) => Err(lost(error)),
    }
}

async fn finish(file: &File, (start, end): (u64, u64), forgets: bool) -> Result<(), FailureKind> {
    file.finish_write_back(start, end - start, forgets).await.map_err(lost)
}

fn lost(error: Error) -> FailureKind {
    FailureKind::Io { verb: Verb::Write, error }
}

/// Returns true for the answers of a kernel without sync_file_range(2) (ENOSYS), of one that emulates another and does
/// not know the flags (EINVAL, EOPNOTSUPP), of a filter of system calls (EPERM), and of what is no file (ESPIPE). Every
/// other error is one of writing.
fn is_unsupported(error: &Error) -> bool {
    let unsupported = [Errno::NOSYS, Errno::INVAL, Errno::OPNOTSUPP, Errno::PERM, Errno::SPIPE];
    unsupported.iter().any(|&errno| error.is(errno))
}

impl WriteBack {
    /// Each file has one being written and one being written back.
    fn piece(&self) -> u64 {
        let files = self.files.load(Ordering::Relaxed).max(1) as u64;
        let pieces = self.bounds.get().map_or(MOST, |bounds| bounds.pieces);
        (pieces / (2 * files)).clamp(SMALLEST_PIECE, LARGEST_PIECE)
    }
}

impl Bounds {
    fn of_this_machine() -> Self {
        let available = available(Path::new("/proc/meminfo")).unwrap_or(u64::MAX);
        let memory = available.min(group_limit().unwrap_or(u64::MAX));
        let part = |name: &str| {
            let fixed = number(&format!("/proc/sys/vm/{name}_bytes")).filter(|&bytes| bytes > 0);
            fixed.or_else(|| Some(memory / 100 * number(&format!("/proc/sys/vm/{name}_ratio"))?))
        };
        match (part("dirty_background"), part("dirty")) {
            (Some(background), Some(limit)) => Self::between(background, limit, memory),
            // It can't be told: the kernel sees to it.
            _ => Self { begins: u64::MAX, pieces: MOST, fills: memory / 2 },
        }
    }

    /// From the amounts of dirty memory at which the kernel begins to write back, and has writers wait, and from what can
    /// be had in all.
    fn between(background: u64, limit: u64, memory: u64) -> Self {
        // As the kernel takes them.
        let background = if background >= limit { limit / 2 } else { background };
        let begins = background.midpoint(limit);
        Self { begins, pieces: (begins / 2).clamp(FEWEST, MOST), fills: memory / 2 }
    }
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What could be had without swapping (proc_meminfo(5)).
fn available(path: &Path) -> Option<u64> {
    let said = fs::read_to_string(path).ok()?;
    let line = said.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The least limit of the control groups that this process is in (cgroups(7)), of either version.
fn group_limit() -> Option<u64> {
    let said = fs::read_to_string("/proc/self/cgroup").ok()?;
    said.lines().filter_map(limit_of_line).min()
}

/// The least limit of the group that a line of /proc/self/cgroup names, and of those above it.
fn limit_of_line(line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (controllers, group) = (parts.nth(1)?, parts.next()?);
    let (root, names): (_, &[&str]) = if controllers.is_empty() {
        ("/sys/fs/cgroup", &["memory.max", "memory.high"])
    } else if controllers.split(',').any(|controller| controller == "memory") {
        ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
    } else {
        return None;
    };
    let folder = PathBuf::from(format!("{root}{group}"));
    let groups = folder.ancestors().take_while(|folder| folder.starts_with(root));
    groups
        .flat_map(|group| names.iter().map(move |name| group.join(name)))
        .filter_map(|path| number(path.to_str()?))
        .min()
}

#[cfg(test)]
mod tests;

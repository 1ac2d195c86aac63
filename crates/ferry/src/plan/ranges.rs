//! Ranges of large files: begins them, copies them, and ends them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{
    Copier, Failure, FailureKind, Observer, Pair, Progress, Settings, Sides, Start, Verb, is_complete,
};
use ferry_io::{Errno, FileKind, Io, Name, Paths, Stat};

use super::lists::Range;
use crate::output::describe;
use crate::quote::quote;

/// What is done with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The hidden file is made.
    Begin,
    /// The bytes are copied to the hidden file.
    Copy,
    /// The hidden file gets attributes and name.
    End,
    /// The hidden file is removed, if it is there. The source takes no part.
    Drop,
}

/// Trees and options of a step.
pub(super) struct Job<'a> {
    pub(super) source: &'a Path,
    pub(super) target: &'a Path,
    pub(super) io: &'a ferry_io::Options,
    pub(super) fsync: bool,
    pub(super) observer: Arc<dyn Observer>,
}

impl Job<'_> {
    /// Takes a step with each range. Failures of single files go to the observer.
    pub(super) fn perform(
        &self,
        ranges: impl Iterator<Item = Result<(Range, Step), String>>,
    ) -> Result<Performed, String> {
        let mut ranges = ranges.peekable();
        if ranges.peek().is_none() {
            return Ok(Performed::default());
        }
        self.on_the_way(async |way, io| {
            let mut done = Performed::default();
            for range in ranges {
                let (range, step) = range?;
                if io.is_stopped() {
                    break;
                }
                if way.take(&range, step).await {
                    done.count += 1;
                    done.bytes += range.end - range.start;
                } else {
                    done.failed += 1;
                }
            }
            Ok(done)
        })
    }

    /// Lets the owner write to directories of the target, so that parts can. The closing step sets their modes.
    pub(super) fn lend(
        &self,
        directories: impl Iterator<Item = Result<PathBuf, String>>,
    ) -> Result<Performed, String> {
        self.on_the_way(async |way, io| {
            for directory in directories {
                let directory = directory?;
                if io.is_stopped() {
                    break;
                }
                way.lend(&directory).await;
            }
            Ok(Performed::default())
        })
    }

    fn on_the_way(
        &self,
        act: impl AsyncFnOnce(&mut Way<'_>, &Io) -> Result<Performed, String>,
    ) -> Result<Performed, String> {
        let ran = ferry_io::run(self.io, async |io: Io| {
            // Without handlers a signal kills the process.
            io.stop_on_signals().ok();
            self.go(&io, act).await
        });
        let (done, stats) = ran.map_err(|error| error.to_string())?;
        done.map(|done| Performed { signal: stats.signal, ..done })
    }

    async fn go(
        &self,
        io: &Io,
        act: impl AsyncFnOnce(&mut Way<'_>, &Io) -> Result<Performed, String>,
    ) -> Result<Performed, String> {
        let settings = Settings { fsync: self.fsync, ..Settings::default() };
        let copier =
            Copier::new(io.clone(), settings, Arc::new(Progress::default()), Arc::clone(&self.observer));
        let paths = Paths::new();
        let open = |path: &Path| {
            let cannot = |error: ferry_io::Error| format!("cannot open {}: {}", quote(path), error.cause);
            io.folder(&paths, path).map_err(cannot)
        };
        let start = Start {
            source: open(self.source)?,
            target: open(self.target)?,
            source_path: self.source.to_owned(),
            target_path: self.target.to_owned(),
            is_new: false,
        };
        let root = copier.start(start).await;
        let root = root.map_err(|_| format!("cannot examine {}", quote(self.target)))?;
        let mut way = Way { copier: &copier, root, open: Vec::new() };
        let done = act(&mut way, io).await;
        way.leave(0).await;
        let Way { root, .. } = way;
        copier.finish_bare(root).await;
        copier.end().await;
        done
    }
}

/// What was done with ranges.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Performed {
    /// Number of ranges, and their bytes.
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// Number of those that failed, which was reported.
    pub(super) failed: u64,
    /// Signal that has ended it.
    pub(super) signal: Option<i32>,
}

/// The open folders from the root to that of the last range.
struct Way<'a> {
    copier: &'a Copier,
    root: Pair,
    open: Vec<(Name, Pair)>,
}

impl Way<'_> {
    /// Takes a step with a range. Returns false after a failure, which is reported.
    async fn take(&mut self, range: &Range, step: Step) -> bool {
        let path: &Path = &range.path.0;
        let (Some(name), Some(hidden)) =
            (path.file_name().and_then(name_of), Name::new(range.hidden.as_bytes()))
        else {
            // Longer than a name may be.
            let kind = FailureKind::Changed;
            self.copier.fail_at(Failure { source: path.to_owned(), target: path.to_owned(), kind });
            return false;
        };
        let pair = match self.enter(path.parent().unwrap_or(Path::new(""))).await {
            Ok(pair) => pair,
            // The directory has gone, and what was in it.
            Err(missed) if matches!(step, Step::End | Step::Drop) && missed.is_gone() => return true,
            Err(missed) => return self.miss(missed),
        };
        let taken = step_in(self.copier, &pair, (&name, &hidden), range, step).await;
        taken.map_err(|kind| self.copier.fail(&pair, &name, kind)).is_ok()
    }

    /// Reports a folder that could not be entered.
    fn miss(&self, Missed { above, name, kind }: Missed) -> bool {
        self.copier.fail(&above, &name, kind);
        false
    }

    async fn lend(&mut self, directory: &Path) {
        let pair = match self.enter(directory).await {
            Ok(pair) => pair,
            Err(missed) => {
                self.miss(missed);
                return;
            }
        };
        let lent = async {
            let (_, target) = self.copier.folders(&pair).await?;
            let failed = |error| FailureKind::Io { verb: Verb::SetMode, error };
            let target = target.as_file();
            let mode = target.stat().await.map_err(failed)?.mode & 0o7777;
            if mode & 0o700 != 0o700 {
                target.set_mode(mode | 0o700).await.map_err(failed)?;
            }
            Ok(())
        };
        if let Err(kind) = lent.await {
            self.copier.fail_at(Failure { source: directory.to_owned(), target: directory.to_owned(), kind });
        }
    }

    /// Opens the folders on the way that are not open.
    async fn enter(&mut self, folder: &Path) -> Result<Pair, Missed> {
        let wanted: Vec<Name> = folder.iter().filter_map(name_of).collect();
        let known = self.open.iter().zip(&wanted).take_while(|((open, _), name)| open == *name).count();
        self.leave(known).await;
        for name in wanted.into_iter().skip(known) {
            let above = self.open.last().map_or(&self.root, |(_, pair)| pair);
            match self.copier.enter(above, &name).await {
                Ok(pair) => self.open.push((name, pair)),
                Err(kind) => return Err(Missed { above: above.clone(), name, kind }),
            }
        }
        Ok(self.open.last().map_or(&self.root, |(_, pair)| pair).clone())
    }

    /// Closes the folders beyond the first ones. Their attributes stay as they are: the closing step sets them.
    async fn leave(&mut self, kept: usize) {
        while self.open.len() > kept {
            if let Some((_, pair)) = self.open.pop() {
                self.copier.finish_bare(pair).await;
            }
        }
    }
}

/// A folder that could not be entered.
struct Missed {
    above: Pair,
    name: Name,
    kind: FailureKind,
}

impl Missed {
    fn is_gone(&self) -> bool {
        self.kind.error().is_some_and(|error| error.is(Errno::NOENT) || error.is(Errno::NOTDIR))
    }
}

fn name_of(name: &OsStr) -> Option<Name> {
    Name::new(name.as_bytes())
}

async fn step_in(
    copier: &Copier,
    pair: &Pair,
    (name, hidden): (&Name, &Name),
    range: &Range,
    step: Step,
) -> Result<(), FailureKind> {
    if step == Step::Drop {
        return copier.drop_ranges(pair, hidden).await;
    }
    let (source, target) = copier.look(pair, name).await?;
    let Some(source) = source.filter(|source| is_version(source, range)) else {
        // The closing step removes the ranges, and copies what is there now.
        return if step == Step::End { Ok(()) } else { Err(FailureKind::Changed) };
    };
    if target.as_ref().is_some_and(|target| is_complete(&source, target)) {
        // An earlier closing step has ended it.
        return Ok(());
    }
    if step == Step::End && copier.look(pair, hidden).await?.1.is_none() {
        // An earlier closing step has ended it, and the target was changed since: sync copies it.
        return Ok(());
    }
    match step {
        Step::Begin => copier.begin_ranges(pair, hidden).await,
        Step::Copy => copier.copy_range(pair, (name, hidden), &source, range.start..range.end).await,
        Step::End | Step::Drop => {
            let sides = Sides { source: &source, target: target.as_ref() };
            copier.end_ranges(pair, (name, hidden), sides).await
        }
    }
}

/// Returns true if a source is the file that was planned, and was not changed since. Other machines may have another
/// number for its device.
fn is_version(source: &Stat, range: &Range) -> bool {
    source.kind == FileKind::Regular
        && (source.inode, source.size) == (range.inode, range.size)
        && (source.changed.seconds, source.changed.nanoseconds) == range.changed
}

/// Returns an absolute path.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("cannot find {}: {}", quote(path), describe(&error)))
}

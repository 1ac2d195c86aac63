//! What is taken once a round: a cell and how to measure it.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use crate::error::Failure;
use crate::record::{Cell, Figures};
use crate::stop::Stop;

/// What is left free when removing is put off.
const ROOM_PERCENT: u64 = 25;

/// One subject of a comparison.
pub struct Subject<'a> {
    /// Where its runs go.
    pub cell: Cell,
    /// Programs that are to be in memory although the caches were dropped.
    pub programs: Vec<PathBuf>,
    pub(super) take: Box<Take<'a>>,
}

type Take<'a> = dyn FnMut(&mut Turn<'_>) -> Result<Figures, Failure> + 'a;

impl<'a> Subject<'a> {
    /// A subject that is measured by calling `take` for each run. It times what matters itself, so it may make ready
    /// before and check afterwards.
    pub fn new(cell: Cell, take: impl FnMut(&mut Turn<'_>) -> Result<Figures, Failure> + 'a) -> Self {
        Self { cell, programs: Vec::new(), take: Box::new(take) }
    }

    /// The same, with programs that are brought back into memory after the caches were dropped.
    #[must_use]
    pub fn with_programs(mut self, programs: &[&Path]) -> Self {
        self.programs = programs.iter().map(|program| (*program).to_owned()).collect();
        self
    }
}

/// One run, seen by the subject.
pub struct Turn<'t> {
    pub(super) work: &'t Path,
    pub(super) serial: u64,
    pub(super) round: u64,
    pub(super) stop: &'t Stop,
    pub(super) discards: bool,
    pub(super) later: &'t mut Vec<PathBuf>,
}

impl Turn<'_> {
    /// Ctrl-C.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        self.stop
    }

    /// In which round, from zero; before those that count, too.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// A path in the work folder that no other run has.
    #[must_use]
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}-{}", self.serial))
    }

    /// Removes what a run made. On a filesystem that discards, that would slow the next runs down: there it is put off
    /// to the end of the group, as long as there is room.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn remove(&mut self, path: PathBuf) -> Result<(), Failure> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        if self.discards && self.has_room() {
            self.later.push(path);
            return Ok(());
        }
        for path in self.later.drain(..).chain([path]) {
            ferry_tree::remove::remove(&path)?;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        statvfs(self.work).is_ok_and(|facts| {
            let is_free = |free: u64, all: u64| free >= all / 100 * ROOM_PERCENT;
            is_free(facts.f_bavail, facts.f_blocks)
                && (facts.f_files == 0 || is_free(facts.f_favail, facts.f_files))
        })
    }
}

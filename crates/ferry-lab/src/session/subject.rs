//! Subjects of a comparison: a cell and the code that measures it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::statvfs;

use crate::error::Failure;
use crate::machine::Filesystem;
use crate::record::{Cell, Figures};
use crate::stop::Stop;

/// Minimum free space, in percent, for deferring removals.
const ROOM_PERCENT: u64 = 10;
/// Fewest deferred removals after which ext4 without a journal is given `REST`.
const MANY: usize = 8;
/// Time for which ext4 without a journal passes over removed inodes, once their removal is on the device.
const REST: Duration = Duration::from_secs(61);

/// A subject of a comparison.
pub struct Subject<'a> {
    /// Cell of its runs.
    pub cell: Cell,
    /// Programs to load again after the caches were dropped.
    pub programs: Vec<PathBuf>,
    pub(super) before: Option<Box<Before<'a>>>,
    pub(super) take: Box<Take<'a>>,
}

type Before<'a> = dyn FnMut(&Stop) -> Result<(), Failure> + 'a;
type Take<'a> = dyn FnMut(&mut Turn<'_>) -> Result<Figures, Failure> + 'a;

impl<'a> Subject<'a> {
    /// A subject that is measured by calling `take` for each run. `take` times the relevant part itself, so it can
    /// prepare before and verify afterwards.
    pub fn new(cell: Cell, take: impl FnMut(&mut Turn<'_>) -> Result<Figures, Failure> + 'a) -> Self {
        Self { cell, programs: Vec::new(), before: None, take: Box::new(take) }
    }

    /// Adds a step before each run. The caches are brought into their state after it. Its failure ends the experiment.
    #[must_use]
    pub fn with_before(mut self, before: impl FnMut(&Stop) -> Result<(), Failure> + 'a) -> Self {
        self.before = Some(Box::new(before));
        self
    }

    /// Adds programs to load again after the caches were dropped.
    #[must_use]
    pub fn with_programs(mut self, programs: &[&Path]) -> Self {
        self.programs = programs.iter().map(|program| (*program).to_owned()).collect();
        self
    }
}

/// One run of a subject.
pub struct Turn<'t> {
    pub(super) work: &'t Path,
    pub(super) serial: u64,
    pub(super) round: u64,
    pub(super) stop: &'t Stop,
    pub(super) removals: Removals,
    pub(super) later: &'t mut Vec<PathBuf>,
}

/// What removing files costs the next runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Removals {
    discards: bool,
    avoids_removed_inodes: bool,
}

impl Removals {
    pub(super) fn on(place: &Filesystem) -> Self {
        Self { discards: place.discards(), avoids_removed_inodes: place.avoids_removed_inodes() }
    }
}

impl Turn<'_> {
    /// Returns the flag set by signals.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        self.stop
    }

    /// Returns the round, from zero; warm-ups have their own.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Returns a path in the work folder that no other run uses.
    #[must_use]
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}-{}", self.serial))
    }

    /// Removes the files of a run. Where that would slow down the next runs, removal is deferred to the end of the group
    /// while there is room.
    ///
    /// # Errors
    /// If a file cannot be removed, or the run was interrupted.
    pub fn remove(&mut self, path: PathBuf) -> Result<(), Failure> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let Removals { discards, avoids_removed_inodes } = self.removals;
        self.later.push(path);
        if (discards || avoids_removed_inodes) && self.has_room() {
            return Ok(());
        }
        let count = self.later.len();
        for path in self.later.drain(..) {
            ferry_tree::remove::remove(&path)?;
        }
        if avoids_removed_inodes && count >= MANY {
            rustix::fs::sync();
            self.stop.wait(REST)?;
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

//! The time until another thread sees a completion, while the submitting thread computes: the bad case of COOP_TASKRUN.
//!
//! The submitting thread makes no system call between a submission and the end of its computation. The plain ring
//! interrupts it for a completion. With COOP_TASKRUN the completion waits for the thread's next entry to the kernel, or for
//! the next tick of the clock; with DEFER_TASKRUN for the thread's next look.

use std::path::Path;
use std::time::{Duration, Instant};

use ferry_io::{Sighting, sightings};
use ferry_tree::fill::SplitMix64;
use rustix::fs::{Mode, OFlags};

use super::load::Computation;
use super::names::{SEEN_DURING, SEEN_P50, SEEN_P99};
use super::processors::pin;
use super::reads::{READ, RingSetup};
use crate::error::Failure;
use crate::record::Figures;
use crate::statistics::percentile;
use crate::stop::Stop;
use crate::units::real_count;

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch<'a> {
    /// The file.
    pub(super) path: &'a Path,
    /// Its size.
    pub(super) bytes: u64,
    pub(super) ring: RingSetup,
    /// Processor of the submitting thread.
    pub(super) processor: usize,
    /// Processor of the other thread.
    pub(super) beside: usize,
    /// Computation after each submission.
    pub(super) computation: Computation,
    /// For how long.
    pub(super) window: Duration,
    /// Seed of the offsets.
    pub(super) seed: u64,
    pub(super) stop: &'a Stop,
}

impl Watch<'_> {
    /// Measures in a thread of its own, which stays on its processor.
    ///
    /// # Errors
    /// [`Failure::Run`] if a ring can't be had or a read fails; [`Failure::Interrupted`].
    pub(super) fn take(&self) -> Result<Figures, Failure> {
        let seen = std::thread::scope(|scope| match scope.spawn(|| self.observe()).join() {
            Ok(seen) => seen,
            Err(panic) => std::panic::resume_unwind(panic),
        })?;
        self.stop.check()?;
        Ok(figures(&seen))
    }

    fn observe(&self) -> Result<Vec<Sighting>, Failure> {
        pin(self.processor)?;
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.path, flags, Mode::empty())
            .map_err(|errno| Failure::file("open", self.path, &errno.into()))?;
        let size = u64::try_from(READ).unwrap_or(u64::MAX);
        let (begun, mut numbers) = (Instant::now(), SplitMix64::new(self.seed));
        let mut is_first = true;
        let offsets = std::iter::from_fn(|| {
            let is_due = std::mem::take(&mut is_first) || begun.elapsed() < self.window;
            (is_due && !self.stop.is_set()).then(|| numbers.below(self.bytes / size) * size)
        });
        let options = self.ring.options();
        sightings(&options, &file, offsets, self.beside, || self.computation.run())
            .map_err(|unseen| Failure::Run(format!("completions could not be observed: {unseen}")))
    }
}

/// Returns the figures by the measures' names.
pub(super) fn figures(seen: &[Sighting]) -> Figures {
    let mut after: Vec<f64> = seen.iter().map(|one| one.after.as_secs_f64()).collect();
    after.sort_by(f64::total_cmp);
    let during = seen.iter().filter(|one| one.after < one.computed).count();
    let figures = [
        (SEEN_P50, percentile(&after, 500)),
        (SEEN_P99, percentile(&after, 990)),
        (SEEN_DURING, real_count(during) / real_count(seen.len().max(1))),
    ];
    figures.map(|(name, figure)| (name.to_owned(), figure)).into()
}

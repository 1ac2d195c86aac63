//! Progress of a measurement, its rounds of subjects in random order, and the resulting figures.

use std::time::{Duration, Instant};

use ferry_lab::Failure;
use ferry_lab::schedule::{Progress, left, order};
use ferry_lab::session::Observer;
use ferry_lab::stop::Stop;

use super::scale::{LEAST_ROUNDS, Scale, is_enough};
use crate::Figure;

/// Seed of all random choices, so that two measurements use the same offsets.
pub(super) const SEED: u64 = 7;

/// Maximum of median/minimum and of maximum/median before a figure is measured again.
const WIDE: f64 = 2.0;
/// Maximum number of retakes in a measurement. Where everything varies, more runs do not help.
const RETAKES: usize = 6;

pub(super) struct Steps<'a> {
    observer: &'a dyn Observer,
    stop: &'a Stop,
    begun: Instant,
    /// Time limit of the whole measurement.
    patience: Duration,
    /// Total duration of the runs so far.
    spent: Duration,
    rounds: u32,
    taken: u64,
    planned: u64,
    /// Subjects not yet measured.
    waiting: usize,
    retakes: usize,
    /// Number of sets of rounds so far. Each set uses other offsets, because a device caches those of earlier ones.
    sets: u64,
}

impl<'a> Steps<'a> {
    pub(super) fn new(scale: &Scale, subjects: usize, observer: &'a dyn Observer, stop: &'a Stop) -> Self {
        let mut steps = Self {
            observer,
            stop,
            begun: Instant::now(),
            patience: Duration::from_secs(scale.seconds),
            spent: Duration::ZERO,
            rounds: scale.rounds,
            taken: 0,
            planned: 0,
            waiting: subjects,
            retakes: RETAKES,
            sets: 0,
        };
        steps.planned = steps.runs_of(steps.waiting);
        steps
    }

    pub(super) fn begin(&self, what: &str) -> Result<(), Failure> {
        let elapsed = self.begun.elapsed();
        let left = left(elapsed, self.taken, self.planned.saturating_sub(self.taken));
        let (taken, planned) = (self.taken, self.planned);
        self.observer.progress(&Progress { what: what.to_owned(), taken, planned, elapsed, left });
        self.check()
    }

    /// Fails if the measurement was interrupted.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.stop.check()
    }

    /// Flag that ends a load early.
    pub(super) fn stop(&self) -> &'a Stop {
        self.stop
    }

    /// Removes subjects from the plan.
    pub(super) fn skip(&mut self, subjects: usize) {
        self.planned = self.planned.saturating_sub(self.runs_of(subjects));
        self.waiting = self.waiting.saturating_sub(subjects);
    }

    /// Returns true if `runs` more runs, and the minimum for all pending subjects, fit into the time limit at the
    /// current pace.
    fn has_time_for(&self, runs: u64) -> bool {
        let fewest = u64::from(LEAST_ROUNDS) * u64::try_from(self.waiting).unwrap_or(0);
        let left = left(self.spent, self.taken, runs + fewest);
        left.is_some_and(|left| self.begun.elapsed() + left <= self.patience)
    }

    fn runs_of(&self, subjects: usize) -> u64 {
        u64::from(self.rounds) * u64::try_from(subjects).unwrap_or(0)
    }

    /// Measures each subject once a round, and returns a figure for each. A figure wider than [`WIDE`] is measured
    /// again as far as [`RETAKES`] and the time allow; the narrower figure counts.
    pub(super) fn rounds<S>(
        &mut self,
        subjects: &[S],
        name: impl Fn(&S) -> String,
        mut take: impl FnMut(&S, u64) -> Result<f64, Failure>,
    ) -> Result<Vec<Figure>, Failure> {
        self.waiting = self.waiting.saturating_sub(subjects.len());
        let all: Vec<usize> = (0..subjects.len()).collect();
        let name = |index: usize| name(&subjects[index]);
        let mut take = |index: usize, round| take(&subjects[index], round);
        let mut figures = self.set(&all, &name, &mut take)?;
        loop {
            let mut wide = all.clone();
            wide.retain(|index| width(&figures[*index]) > WIDE);
            wide.truncate(self.retakes);
            if wide.is_empty() || !self.has_time_for(self.runs_of(wide.len())) {
                return Ok(figures);
            }
            self.retakes -= wide.len();
            self.planned += self.runs_of(wide.len());
            let again = self.set(&wide, &name, &mut take)?;
            for (index, figure) in wide.into_iter().zip(again) {
                // Fewer runs are narrower by chance.
                if figure.runs >= figures[index].runs && width(&figure) < width(&figures[index]) {
                    figures[index] = figure;
                }
            }
        }
    }

    /// Returns the figures of these subjects from one set of rounds.
    fn set(
        &mut self,
        subjects: &[usize],
        name: &impl Fn(usize) -> String,
        take: &mut impl FnMut(usize, u64) -> Result<f64, Failure>,
    ) -> Result<Vec<Figure>, Failure> {
        let mut taken = vec![Vec::new(); subjects.len()];
        let (rounds, a_round) = (u64::from(self.rounds), u64::try_from(subjects.len()).unwrap_or(0));
        let first = self.sets * rounds;
        self.sets += 1;
        for round in first..first + rounds {
            if round >= first + u64::from(LEAST_ROUNDS) && !self.has_time_for(a_round) {
                self.planned = self.planned.saturating_sub((first + rounds - round) * a_round);
                break;
            }
            for index in order(SEED, round, subjects.len()) {
                self.begin(&name(subjects[index]))?;
                let begun = Instant::now();
                taken[index].push(take(subjects[index], round)?);
                self.spent += begun.elapsed();
                self.taken += 1;
            }
        }
        // Figures of an interrupted set are worthless.
        self.check()?;
        let none = || Failure::Run("a measured value is not a number".to_owned());
        taken.iter().map(|samples| Figure::of(samples).ok_or_else(none)).collect()
    }
}

fn width(figure: &Figure) -> f64 {
    let Figure { median, low, high, .. } = *figure;
    if low > 0.0 { (median / low).max(high / median) } else { f64::INFINITY }
}

/// Returns the first item whose figure [is enough](is_enough); items are in ascending order.
pub(super) fn first_enough<T>(found: &[T], figure: impl Fn(&T) -> Figure) -> Option<&T> {
    let most = found.iter().map(|one| figure(one).median).fold(0.0, f64::max);
    found.iter().find(|one| is_enough(&figure(one), most))
}

//! How far a measurement is, rounds of subjects in an order of their own, and figures of what they gave.

use std::time::{Duration, Instant};

use ferry_lab::Failure;
use ferry_lab::schedule::{Progress, left, order};
use ferry_lab::session::Observer;
use ferry_lab::stop::Stop;

use super::{ENOUGH, LEAST_ROUNDS, NEARLY, Scale, calls, device};
use crate::Figure;

/// What chance follows from; two measurements ask for the same places.
pub(super) const SEED: u64 = 7;

/// A figure is narrow enough if its median is at most so many times its least, and its most so many times its median.
const WIDE: f64 = 2.0;
/// So many subjects are taken again, of all of a measurement: where everything varies, more runs would not help.
const RETAKES: usize = 6;

/// A measurement under way.
pub(super) struct Steps<'a> {
    observer: &'a dyn Observer,
    stop: &'a Stop,
    begun: Instant,
    /// How long all of it may take.
    patience: Duration,
    /// How long the runs so far took.
    spent: Duration,
    rounds: u32,
    taken: u64,
    planned: u64,
    /// Subjects whose turn has not come yet.
    waiting: usize,
    retakes: usize,
    /// Sets of rounds so far: none asks for the places of one before, which a device has in its own cache.
    sets: u64,
}

impl<'a> Steps<'a> {
    /// Nothing is taken yet.
    pub(super) fn new(scale: &Scale, observer: &'a dyn Observer, stop: &'a Stop) -> Self {
        let mut steps = Self {
            observer,
            stop,
            begun: Instant::now(),
            patience: Duration::from_secs(scale.seconds),
            spent: Duration::ZERO,
            rounds: scale.rounds,
            taken: 0,
            planned: 0,
            waiting: device::SUBJECTS + calls::SUBJECTS,
            retakes: RETAKES,
            sets: 0,
        };
        steps.planned = steps.runs_of(steps.waiting);
        steps
    }

    /// Tells what is done now, unless it was interrupted.
    pub(super) fn begin(&self, what: &str) -> Result<(), Failure> {
        let elapsed = self.begun.elapsed();
        let left = left(elapsed, self.taken, self.planned.saturating_sub(self.taken));
        let (taken, planned) = (self.taken, self.planned);
        self.observer.progress(&Progress { what: what.to_owned(), taken, planned, elapsed, left });
        self.check()
    }

    /// Goes on unless it was interrupted.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.stop.check()
    }

    /// What ends a load early.
    pub(super) fn stop(&self) -> &'a Stop {
        self.stop
    }

    /// So many subjects are not taken after all.
    pub(super) fn skip(&mut self, subjects: usize) {
        self.planned = self.planned.saturating_sub(self.runs_of(subjects));
        self.waiting = self.waiting.saturating_sub(subjects);
    }

    /// Whether so many runs more would end in time, and the fewest of all subjects that wait, if runs take as long as so far.
    fn has_time_for(&self, runs: u64) -> bool {
        let fewest = u64::from(LEAST_ROUNDS) * u64::try_from(self.waiting).unwrap_or(0);
        let left = left(self.spent, self.taken, runs + fewest);
        left.is_some_and(|left| self.begun.elapsed() + left <= self.patience)
    }

    fn runs_of(&self, subjects: usize) -> u64 {
        u64::from(self.rounds) * u64::try_from(subjects).unwrap_or(0)
    }

    /// Takes each subject once a round, and gives a figure of each. One that varies by more than [`WIDE`] is taken again,
    /// so often as [`RETAKES`] and the time allow, and the narrower figure counts.
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

    /// The figures of these subjects from one set of rounds.
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
        // What was cut short is no figure.
        self.check()?;
        let none = || Failure::Run("what was measured is no number".to_owned());
        taken.iter().map(|samples| Figure::of(samples).ok_or_else(none)).collect()
    }
}

/// How many times the least the median is, or the median the most.
fn width(figure: &Figure) -> f64 {
    let Figure { median, low, high, .. } = *figure;
    if low > 0.0 { (median / low).max(high / median) } else { f64::INFINITY }
}

/// The first that brings enough of the most; they are in rising order. What falls short by no more than its own runs
/// differ counts as enough: the most of several medians is above the true one by chance.
pub(super) fn first_enough<T>(found: &[T], figure: impl Fn(&T) -> Figure) -> Option<&T> {
    let most = found.iter().map(|one| figure(one).median).fold(0.0, f64::max);
    found.iter().map(|one| (one, figure(one))).find_map(|(one, Figure { median, high, .. })| {
        let is_enough = median >= most * ENOUGH || median >= most * NEARLY && high >= most;
        is_enough.then_some(one)
    })
}

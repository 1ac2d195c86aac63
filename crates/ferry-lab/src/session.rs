//! A running experiment: its settings, its record, and its runs.
//!
//! [`Session::interleave`] takes each subject once a round. Before each run it brings the caches into the wanted state
//! and proves it; after each run it writes the record.

mod dirty;
mod subject;

use std::path::{Path, PathBuf};
use std::time::Instant;

use ferry_tree::fill::derive;

use self::dirty::Dirty;
use self::subject::Removals;
pub use self::subject::{Subject, Turn};
use crate::cache::sample::Sample;
use crate::cache::{self, State};
use crate::clock::now;
use crate::command::version;
use crate::error::Failure;
use crate::machine::Machine;
use crate::record::store::Store;
use crate::record::warning::Warning;
use crate::record::{Cell, Failed, Measure, Record, Run, Value};
use crate::recording::tell_recordings;
use crate::schedule::{Progress, left, order};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::warnings;

/// Receives progress and notes.
pub trait Observer {
    /// Called often.
    fn progress(&self, progress: &Progress);
    /// Called rarely, with one line.
    fn note(&self, line: &str);
}

/// An experiment that is running.
pub struct Session<'a> {
    settings: Settings,
    store: Store,
    observer: &'a dyn Observer,
    stop: &'a Stop,
    work: PathBuf,
    ferry: PathBuf,
    started: Instant,
    serial: u64,
    planned: u64,
    taken_now: u64,
}

impl<'a> Session<'a> {
    /// A session that has measured nothing yet. `work` is the work folder, `ferry` the program whose commands are
    /// timed.
    pub(crate) fn new(
        settings: Settings,
        store: Store,
        observer: &'a dyn Observer,
        stop: &'a Stop,
        work: PathBuf,
        ferry: PathBuf,
    ) -> Self {
        let started = Instant::now();
        Self { settings, store, observer, stop, work, ferry, started, serial: 0, planned: 0, taken_now: 0 }
    }

    /// Ends the session and returns its record.
    pub(crate) fn into_store(self) -> Store {
        self.store
    }

    /// Returns the experiment's settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the record so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.store.record
    }

    /// Returns the machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.store.record.machine
    }

    /// Returns the seed of all random choices.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.store.record.seed
    }

    /// Returns the work folder, which is removed at the end.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the program whose commands are timed.
    #[must_use]
    pub fn ferry(&self) -> &Path {
        &self.ferry
    }

    /// Returns the flag set by signals.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        self.stop
    }

    /// Reports a step that takes a while.
    pub fn step(&self, what: &str) {
        self.observer.progress(&self.progress(what));
    }

    /// Reports one line.
    pub fn note(&self, line: &str) {
        self.observer.note(line);
    }

    /// Sets the number of cells, for the estimate of the remaining time.
    pub fn plan(&mut self, cells: usize) {
        self.planned = u64::try_from(cells).unwrap_or(0) * self.store.record.runs;
    }

    /// Records the version of a program in use.
    pub fn note_tool(&mut self, name: &str, program: &Path) {
        let said = version(program);
        let record = &mut self.store.record;
        let before = record.tools.entry(name.to_owned()).or_insert_with(|| said.clone()).clone();
        if before != said {
            record.warn(warnings::of_change(&format!("the version of {name}"), &before, &said));
        }
    }

    /// Returns a value that an earlier session determined.
    #[must_use]
    pub fn settled(&self, name: &str) -> Option<&Value> {
        self.store.record.settled.get(name)
    }

    /// Stores a value for this session and those that resume its record.
    pub fn settle(&mut self, name: &str, value: Value) {
        self.store.record.settled.insert(name.to_owned(), value);
    }

    /// Adds measures that only some runs of the experiment have.
    pub fn measure(&mut self, measures: Vec<Measure>) {
        let known = &mut self.store.record.measures;
        for measure in measures {
            if known.iter().all(|one| one.name != measure.name) {
                known.push(measure);
            }
        }
    }

    /// Adds a warning unless it is present.
    pub fn warn(&mut self, warning: Warning) {
        self.store.record.warn(warning);
    }

    /// Adds a cell that cannot be measured, with the reason. A cell that has all of its runs is not changed.
    pub fn leave_out(&mut self, cell: Cell, why: &str) {
        let cell = Cell { missing: Some(why.to_owned()), ..cell };
        if let Some(known) = self.store.record.cells.iter_mut().find(|known| known.name == cell.name) {
            if !known.has_all(self.store.record.runs) {
                known.missing = cell.missing;
            }
        } else {
            self.store.record.cells.push(cell);
        }
    }

    /// Returns true if earlier sessions took all runs of these cells.
    #[must_use]
    pub fn has_taken<'c>(&self, cells: impl IntoIterator<Item = &'c Cell>) -> bool {
        let record = &self.store.record;
        let is_complete =
            |cell: &Cell| record.cell(&cell.name).is_some_and(|cell| cell.is_complete(record.runs));
        cells.into_iter().all(is_complete)
    }

    /// Takes the missing runs of all subjects: each subject once a round, in a random order for each round. Before
    /// each run it brings the caches into the cell's state and proves that on `sample`.
    ///
    /// # Errors
    /// [`Failure::Interrupted`], or a failure that affects all subjects. [`Failure::Run`] and [`Failure::Differs`] end
    /// their own subject only.
    pub fn interleave(&mut self, subjects: &mut [Subject<'_>], sample: &Sample) -> Result<(), Failure> {
        for subject in subjects.iter() {
            let record = &mut self.store.record;
            if record.cell(&subject.cell.name).is_none() {
                record.cells.push(subject.cell.clone());
            }
        }
        let mut later = Vec::new();
        let outcome = self.rounds(subjects, sample, &mut later);
        for path in later {
            ferry_tree::remove::remove(&path)?;
        }
        outcome
    }

    fn rounds(
        &mut self,
        subjects: &mut [Subject<'_>],
        sample: &Sample,
        later: &mut Vec<PathBuf>,
    ) -> Result<(), Failure> {
        let (seed, runs, warm_ups) = (self.seed(), self.store.record.runs, self.store.record.warm_ups);
        let group = subjects
            .iter()
            .flat_map(|subject| subject.cell.name.bytes())
            .fold(seed, |seed, byte| derive(seed, byte.into()));
        for round in 0..warm_ups {
            for index in order(!group, round, subjects.len()) {
                let subject = &mut subjects[index];
                // Cold runs need no warm-up.
                if subject.cell.cache != State::Cold && !self.has_taken([&subject.cell]) {
                    self.take(subject, sample, None, later)?;
                }
            }
        }
        for round in 0..runs {
            for index in order(group, round, subjects.len()) {
                let subject = &mut subjects[index];
                let is_taken =
                    |cell: &Cell| cell.missing.is_some() || cell.runs.iter().any(|run| run.round == round);
                if !self.store.record.cell(&subject.cell.name).is_some_and(is_taken) {
                    self.take(subject, sample, Some(round), later)?;
                }
            }
        }
        Ok(())
    }

    /// Takes one run. It counts if it has a round.
    fn take(
        &mut self,
        subject: &mut Subject<'_>,
        sample: &Sample,
        round: Option<u64>,
        later: &mut Vec<PathBuf>,
    ) -> Result<(), Failure> {
        let name = subject.cell.name.clone();
        let what = if round.is_some() { name.clone() } else { format!("{name}, warming up") };
        self.step(&what);
        self.stop.check()?;
        if let Some(before) = &mut subject.before {
            before(self.stop)?;
        }
        let proof = cache::prepare(subject.cell.cache, sample, &subject.programs)?;
        self.serial += 1;
        let mut turn = Turn {
            work: &self.work,
            serial: self.serial,
            round: round.unwrap_or(0),
            stop: self.stop,
            removals: Removals::on(&self.store.record.machine.place),
            later,
        };
        let (started, dirty) = (now(), Dirty::now());
        let experiment = &self.store.record.experiment;
        let part = round.map_or("warming up".to_owned(), |round| format!("round {round}"));
        tell_recordings(experiment, &format!("{name}, {part}"));
        let outcome = (subject.take)(&mut turn);
        tell_recordings(experiment, "none of its runs");
        let Some(cell) = self.store.record.cells.iter_mut().find(|cell| cell.name == name) else {
            unreachable!("interleave adds every subject's cell");
        };
        match (outcome, round) {
            (Ok(figures), Some(round)) => {
                cell.runs.push(Run { round, started, figures, proof });
                self.taken_now += 1;
                if let Some(warning) = Dirty::now().warning_since(&dirty) {
                    self.warn(warning.about(&name));
                }
                self.store.save()
            }
            (Ok(_), None) => Ok(()),
            (Err(failure), _) => {
                let Some(failed) = failed(&failure) else { return Err(failure) };
                self.observer.note(&format!("{name}: {failure}"));
                cell.missing = Some(failure.to_string());
                cell.failed = Some(failed);
                Ok(())
            }
        }
    }

    fn progress(&self, what: &str) -> Progress {
        let record = &self.store.record;
        let missing = |cell: &Cell| match cell.missing {
            Some(_) => 0,
            None => record.runs.saturating_sub(u64::try_from(cell.runs.len()).unwrap_or(0)),
        };
        let taken = record.cells.iter().map(|cell| u64::try_from(cell.runs.len()).unwrap_or(0)).sum::<u64>();
        let known = u64::try_from(record.cells.len()).unwrap_or(0) * record.runs;
        let missing = record.cells.iter().map(missing).sum::<u64>() + self.planned.saturating_sub(known);
        let elapsed = self.started.elapsed();
        Progress {
            what: what.to_owned(),
            taken,
            planned: taken + missing,
            elapsed,
            left: left(elapsed, self.taken_now, missing),
        }
    }
}

/// Returns the kind of a failure that ends its own cell only.
fn failed(failure: &Failure) -> Option<Failed> {
    match failure {
        Failure::Run(_) => Some(Failed::Run),
        Failure::Differs(_) => Some(Failed::Copy),
        Failure::Misuse(_)
        | Failure::Unmet(_)
        | Failure::File { .. }
        | Failure::Tree(_)
        | Failure::Aborted(_)
        | Failure::Interrupted => None,
    }
}

//! One experiment from its request to its record: what is checked, taken, kept and removed, in which order.
//!
//! [`conduct`] checks first and writes afterwards. Everything an experiment makes is in the work folder, which goes when
//! it ends, however it ends. What it measures goes through [`Session::interleave`], which prepares and proves the cache,
//! takes each subject once a round, and has the record written after each run.

mod begin;
mod dirty;
mod end;
mod subject;

use std::path::{Path, PathBuf};
use std::time::Instant;

use ferry_tree::fill::derive;

use self::begin::{Prepared, prepared};
use self::dirty::Dirty;
use self::end::{failed, judge, nothing_measured};
pub use self::subject::{Subject, Turn};
use crate::cache::sample::Sample;
use crate::cache::{self, State};
use crate::clock::now;
use crate::command::version;
use crate::error::Failure;
use crate::experiments::Experiment;
use crate::machine::{Machine, Ticks};
use crate::needs;
use crate::record::store::Store;
use crate::record::{Cell, Measure, Record, Run, Scale, Value};
use crate::schedule::{Progress, left, order};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::warnings::{self, Warning};
use crate::work::WorkFolder;

#[cfg(test)]
mod tests;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The experiment's parameters, name and text.
    pub parameters: Vec<(String, String)>,
    /// How much is measured.
    pub scale: Scale,
    /// How many runs of each cell, if not as many as the scale says.
    pub runs: Option<u64>,
    /// What chance follows from, if it is to be repeated.
    pub seed: Option<u64>,
    /// Where the work folder is made.
    pub work_dir: PathBuf,
    /// Where the record is kept.
    pub record: Option<PathBuf>,
    /// The record to go on with.
    pub resume: Option<PathBuf>,
    /// The program whose commands are timed: this one.
    pub ferry: PathBuf,
}

/// Is told what goes on.
pub trait Observer {
    /// How far it is; often.
    fn progress(&self, progress: &Progress);
    /// Something to know, in a line; seldom.
    fn note(&self, line: &str);
}

/// How an experiment ended.
#[derive(Debug)]
pub struct Ended {
    /// What was taken.
    pub record: Record,
    /// Where it is kept, if it is: not if it could not be written.
    pub path: Option<PathBuf>,
    /// Why not all of it was taken.
    pub failure: Option<Failure>,
}

/// Runs an experiment.
///
/// # Errors
/// What can be found wrong before anything is measured; nothing has been written then. What goes wrong later is in
/// [`Ended`], with what was taken until then.
pub fn conduct(
    experiment: &dyn Experiment,
    request: &Request,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Ended, Failure> {
    let Prepared { settings, mut store, place, machine } = prepared(experiment, request)?;
    needs::check(&experiment.needs(&settings)?, &place)?;
    if experiment.is_measured() {
        observer.note(&format!("seed {}", store.record.seed));
        for warning in warnings::of_machine(&machine) {
            observer.note(&format!("note: {warning}"));
            store.record.warn(warning);
        }
        if is_recorded() {
            let warning = warnings::of_recording();
            observer.note(&format!("note: {warning}"));
            store.record.warn(warning);
        }
    }
    tell_recordings(experiment.name(), "none of its runs");
    let work = experiment.place(&settings).is_none().then(|| WorkFolder::make(&place)).transpose()?;
    let earlier = store.record.cells.iter().map(|cell| cell.runs.len()).sum::<usize>();
    let mut session = Session {
        settings,
        store,
        observer,
        stop,
        work: work.as_ref().map(|work| work.path().to_owned()).unwrap_or(place),
        ferry: request.ferry.clone(),
        started: Instant::now(),
        serial: 0,
        planned: 0,
        taken_now: 0,
    };
    let ticks = Ticks::now();
    let outcome = experiment.run(&mut session).and_then(|()| stop.check());
    let removed = work.map_or(Ok(()), WorkFolder::remove);
    let mut store = session.store;
    let failure = outcome.and(removed).err().or_else(|| nothing_measured(experiment, &store.record));
    judge(experiment, &mut store.record, ticks, failure.as_ref());
    let taken = store.record.cells.iter().map(|cell| cell.runs.len()).sum::<usize>();
    // A failure before the first run leaves no file.
    let saved = if taken > earlier || failure.is_none() { store.save_durably() } else { Ok(()) };
    let path = store.path().filter(|_| saved.is_ok()).map(Path::to_owned);
    Ok(Ended { record: store.record, path, failure: failure.or(saved.err()) })
}

/// Whether this process, and those that it starts, record what the runtime does.
fn is_recorded() -> bool {
    std::env::var_os("FERRY_TRACE").is_some_and(|file| !file.is_empty())
}

/// Says what recordings are of that are made from now on.
fn tell_recordings(experiment: &str, part: &str) {
    if is_recorded() {
        ferry_io::event::label::set(&format!("{experiment}: {part}"));
    }
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

impl Session<'_> {
    /// What the experiment was told.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What has been taken so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.store.record
    }

    /// What the experiment runs on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.store.record.machine
    }

    /// What all chance follows from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.store.record.seed
    }

    /// The work folder: all that is in it is removed at the end.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// The program whose commands are timed.
    #[must_use]
    pub fn ferry(&self) -> &Path {
        &self.ferry
    }

    /// Ctrl-C.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        self.stop
    }

    /// Tells what is being done, where that takes a while.
    pub fn step(&self, what: &str) {
        self.observer.progress(&self.progress(what));
    }

    /// Tells something to know, in a line.
    pub fn note(&self, line: &str) {
        self.observer.note(line);
    }

    /// Says how many cells there will be, so that the time left can be told.
    pub fn plan(&mut self, cells: usize) {
        self.planned = u64::try_from(cells).unwrap_or(0) * self.store.record.runs;
    }

    /// Notes the version of a program that takes part.
    pub fn note_tool(&mut self, name: &str, program: &Path) {
        let said = version(program);
        let record = &mut self.store.record;
        let before = record.tools.entry(name.to_owned()).or_insert_with(|| said.clone()).clone();
        if before != said {
            record.warn(warnings::of_change(&format!("the version of {name}"), &before, &said));
        }
    }

    /// What an earlier session settled, if it did.
    #[must_use]
    pub fn settled(&self, name: &str) -> Option<&Value> {
        self.store.record.settled.get(name)
    }

    /// Settles something for this session and all that go on with its record.
    pub fn settle(&mut self, name: &str, value: Value) {
        self.store.record.settled.insert(name.to_owned(), value);
    }

    /// Says what figures mean that not every run of the experiment has; each once.
    pub fn measure(&mut self, measures: Vec<Measure>) {
        let known = &mut self.store.record.measures;
        for measure in measures {
            if known.iter().all(|one| one.name != measure.name) {
                known.push(measure);
            }
        }
    }

    /// Adds a warning, once.
    pub fn warn(&mut self, warning: Warning) {
        self.store.record.warn(warning);
    }

    /// Adds a cell that can't be measured, with the reason; nothing changes for one that has all of its runs.
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

    /// Whether an earlier session took all runs of these cells: then nothing need be made for them.
    #[must_use]
    pub fn has_taken<'c>(&self, cells: impl IntoIterator<Item = &'c Cell>) -> bool {
        let record = &self.store.record;
        let is_complete =
            |cell: &Cell| record.cell(&cell.name).is_some_and(|cell| cell.is_complete(record.runs));
        cells.into_iter().all(is_complete)
    }

    /// Takes each subject once a round, in an order of each round's own, until each has its runs; those taken by an
    /// earlier session are not taken again. Before each run the cache is brought into the cell's state and that is
    /// proved on `sample`.
    ///
    /// # Errors
    /// [`Failure::Interrupted`]; whatever keeps all subjects from being run. A [`Failure::Run`] or
    /// [`Failure::Differs`] ends its own subject.
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
                // Every cold run is a first one.
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

    /// Takes one run; it counts if it has a round.
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
        let proof = cache::prepare(subject.cell.cache, sample, &subject.programs)?;
        self.serial += 1;
        let mut turn = Turn {
            work: &self.work,
            serial: self.serial,
            round: round.unwrap_or(0),
            stop: self.stop,
            discards: self.store.record.machine.place.discards(),
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

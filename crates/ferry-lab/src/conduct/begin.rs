//! What an experiment begins with: a new record, or one that is gone on with.

use std::path::{Path, PathBuf};

use ferry_tree::fill::derive;

use crate::clock::now;
use crate::error::Failure;
use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::record::store::{Store, check_replaced, place_of};
use crate::record::{Record, SCHEMA, Scale, Values, read};
use crate::settings::Settings;
use crate::warnings;

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

/// What a session begins with.
pub(super) struct Prepared {
    pub(super) settings: Settings,
    pub(super) store: Store,
    /// Where it works, or where its work folder is made.
    pub(super) place: PathBuf,
    /// What the machine is like now; the record has what it was like at first.
    pub(super) machine: Machine,
}

/// Settings and record, new or resumed.
pub(super) fn prepared(experiment: &dyn Experiment, request: &Request) -> Result<Prepared, Failure> {
    let Some(path) = &request.resume else {
        let settings = Settings::new(experiment.spec().parameters, &request.parameters, request.scale)?;
        let place = experiment.place(&settings).unwrap_or_else(|| request.work_dir.clone());
        let machine = Machine::look(&place);
        let mut record = new_record(experiment, request, &settings)?;
        record.machine = machine.clone();
        let path = request.record.as_deref().map(place_of).transpose()?;
        path.as_deref().map_or(Ok(()), |path| check_replaced(path, &record))?;
        return Ok(Prepared { settings, store: Store::new(path, record), place, machine });
    };
    let mut record = read::read(path)?;
    if record.experiment != experiment.spec().name {
        let (taken, wanted) = (&record.experiment, experiment.spec().name);
        return Err(Failure::Misuse(format!("the record is of 'lab {taken}', not of 'lab {wanted}'")));
    }
    if let Some((name, _)) = request.parameters.first() {
        return Err(Failure::Misuse(format!("'--{name}' can't be changed when a record is resumed")));
    }
    if request.scale != Scale::Default && request.scale != record.scale {
        return Err(Failure::Misuse("a record is resumed with the scale that it was begun with".to_owned()));
    }
    if request.seed.is_some_and(|seed| seed != record.seed) {
        return Err(Failure::Misuse("a record is resumed with the seed that it was begun with".to_owned()));
    }
    let settings = Settings::of_record(experiment.spec().parameters, &record.parameters)?;
    let place = experiment.place(&settings).unwrap_or_else(|| request.work_dir.clone());
    let machine = Machine::look(&place);
    check_same_machine(&record.machine, &machine)?;
    check_same_program(&record, &content_of(&request.ferry)?)?;
    record.runs = request.runs.unwrap_or(record.runs);
    // What the figures say is judged anew; what went on while they were taken is not to be forgotten.
    record.warnings.retain(|warning| !warning.kind.is_of_figures());
    for warning in warnings::of_changes(&record.machine, &machine) {
        record.warn(warning);
    }
    for cell in &mut record.cells {
        // What could not be measured then may be possible now; if not, it is said again.
        (cell.missing, cell.failed) = (None, None);
    }
    let from = place_of(path)?;
    let path = request.record.as_deref().map_or_else(|| Ok(from.clone()), place_of)?;
    if path != from {
        check_replaced(&path, &record)?;
    }
    Ok(Prepared { settings, store: Store::new(Some(path), record), place, machine })
}

/// Figures of different machines, disks or filesystems do not belong into one record.
fn check_same_machine(before: &Machine, now: &Machine) -> Result<(), Failure> {
    let facts = |machine: &Machine| {
        let processor = &machine.processor;
        [
            machine.kernel.clone(),
            processor.model.clone(),
            format!("{} processors, of which it may use {}", processor.count, processor.affinity),
            machine.place.source.clone(),
            machine.place.filesystem.clone(),
        ]
    };
    let differs = facts(before).into_iter().zip(facts(now)).find(|(before, now)| before != now);
    differs.map_or(Ok(()), |(before, now)| {
        Err(Failure::Misuse(format!(
            "the record was begun on another machine or disk ('{before}', here '{now}')"
        )))
    })
}

/// Versions do not tell builds apart, their bytes do.
fn check_same_program(record: &Record, program: &str) -> Result<(), Failure> {
    let (before, now) =
        (format!("{} {}", record.taken_by, record.program), format!("{} {program}", taken_by()));
    if before == now {
        return Ok(());
    }
    let before = before.trim_end();
    Err(Failure::Misuse(format!("the record was begun by another build of ferry ('{before}', here '{now}')")))
}

/// A program's content, told apart from others by a hash of it.
fn content_of(program: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(program).map_err(|error| Failure::file("read", program, &error))?;
    Ok(blake3::hash(&bytes).to_hex().chars().take(16).collect())
}

fn taken_by() -> String {
    format!("ferry {}", env!("CARGO_PKG_VERSION"))
}

fn new_record(
    experiment: &dyn Experiment,
    request: &Request,
    settings: &Settings,
) -> Result<Record, Failure> {
    Ok(Record {
        schema: SCHEMA,
        experiment: experiment.spec().name.to_owned(),
        taken_by: taken_by(),
        program: content_of(&request.ferry)?,
        started: now(),
        seed: request.seed.unwrap_or_else(any_seed),
        runs: request.runs.unwrap_or_else(|| experiment.spec().runs(request.scale)),
        warm_ups: experiment.spec().warm_ups(request.scale),
        scale: request.scale,
        complete: false,
        parameters: settings.values().clone(),
        machine: Machine::default(),
        settled: Values::new(),
        tools: std::collections::BTreeMap::new(),
        measures: experiment.measures(),
        cells: Vec::new(),
        warnings: Vec::new(),
    })
}

/// A seed that can be typed, different each time.
fn any_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| u64::from(since.subsec_nanos()) ^ since.as_secs());
    derive(nanoseconds, u64::from(std::process::id())) % 1_000_000
}

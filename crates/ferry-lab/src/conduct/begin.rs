//! Begins an experiment: makes a new record, or continues an earlier one.

use std::fs::File;
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

/// Request to run an experiment.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The experiment's parameters, name and text.
    pub parameters: Vec<(String, String)>,
    /// Scale of the measurement.
    pub scale: Scale,
    /// Runs of each cell; by default the scale's number.
    pub runs: Option<u64>,
    /// Seed of everything random; chosen anew by default.
    pub seed: Option<u64>,
    /// Folder in which the work folder is made.
    pub work_dir: PathBuf,
    /// Path of the record.
    pub record: Option<PathBuf>,
    /// The record to go on with.
    pub resume: Option<PathBuf>,
    /// The program whose commands are timed: this one.
    pub ferry: PathBuf,
}

/// Inputs of a session.
pub(super) struct Prepared {
    pub(super) settings: Settings,
    pub(super) store: Store,
    /// Work folder, or the folder in which it is made.
    pub(super) place: PathBuf,
    /// The machine's present state; the record has its state at the first session.
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
        return Err(Failure::Misuse(format!("the record was taken by 'lab {taken}', not by 'lab {wanted}'")));
    }
    if let Some((name, _)) = request.parameters.first() {
        return Err(Failure::Misuse(format!("'--{name}' can't be changed when a record is resumed")));
    }
    if request.scale != Scale::Default && request.scale != record.scale {
        return Err(Failure::Misuse("the scale cannot be changed when a record is resumed".to_owned()));
    }
    if request.seed.is_some_and(|seed| seed != record.seed) {
        return Err(Failure::Misuse("the seed cannot be changed when a record is resumed".to_owned()));
    }
    let settings = Settings::of_record(experiment.spec().parameters, &record.parameters)?;
    let place = experiment.place(&settings).unwrap_or_else(|| request.work_dir.clone());
    let machine = Machine::look(&place);
    check_same_machine(&record.machine, &machine)?;
    check_same_program(&record, &content_of(&request.ferry)?)?;
    record.runs = request.runs.unwrap_or(record.runs);
    record.complete = false;
    // Warnings about figures are found anew; those about the time of measuring are kept.
    record.warnings.retain(|warning| !warning.kind.is_of_figures());
    for warning in warnings::of_changes(&record.machine, &machine) {
        record.warn(warning);
    }
    for cell in &mut record.cells {
        // A cell that was impossible or failed in an earlier session is tried again.
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
            "the record was started on another machine or disk ('{before}', here '{now}')"
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
    Err(Failure::Misuse(format!(
        "the record was started by another build of ferry ('{before}', here '{now}')"
    )))
}

/// Returns a hash of a program's content. It is not read into memory at once, because this process's peak of memory is
/// the least that `lab run` can tell of a command.
fn content_of(program: &Path) -> Result<String, Failure> {
    let mut hasher = blake3::Hasher::new();
    let hashed = File::open(program).and_then(|file| hasher.update_reader(file).map(|_| ()));
    hashed.map_err(|error| Failure::file("read", program, &error))?;
    Ok(hasher.finalize().to_hex().chars().take(16).collect())
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
        warm_ups: experiment.warm_ups(request.scale),
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

//! One experiment from its request to its record: what is checked, measured, kept and removed, in which order.
//!
//! [`conduct`] checks first and writes afterwards. Everything that an experiment makes is in the work folder, which is
//! removed when it ends, however it ends.

mod begin;
mod end;

use std::path::{Path, PathBuf};

pub use self::begin::Request;
use self::begin::{Prepared, prepared};
use self::end::{judge, nothing_measured};
use crate::error::Failure;
use crate::experiment::Experiment;
use crate::machine::Ticks;
use crate::needs;
use crate::record::Record;
use crate::record::warning::Warning;
use crate::recording::{is_recorded, tell_recordings};
use crate::session::{Observer, Session};
use crate::stop::Stop;
use crate::warnings;
use crate::work::WorkFolder;

#[cfg(test)]
mod tests;

/// Result of an experiment.
#[derive(Debug)]
pub struct Ended {
    /// The record, possibly incomplete.
    pub record: Record,
    /// Path of the record, if it was written.
    pub path: Option<PathBuf>,
    /// Reason why runs are missing.
    pub failure: Option<Failure>,
}

/// Runs an experiment.
///
/// # Errors
/// Errors found before anything is measured or written. Later errors are in [`Ended`], with the runs taken until then.
pub fn conduct(
    experiment: &dyn Experiment,
    request: &Request,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Ended, Failure> {
    let Prepared { settings, mut store, place, machine } = prepared(experiment, request)?;
    let needs = experiment.needs(&settings)?;
    let met = if experiment.makes_files() { needs::check } else { needs::met };
    met(&needs, &place)?;
    if experiment.spec().is_measured {
        observer.note(&format!("seed {}", store.record.seed));
        let concerns_it = |warning: &Warning| experiment.makes_files() || !warning.kind.is_of_place();
        for warning in warnings::of_machine(&machine).into_iter().filter(concerns_it) {
            observer.note(&format!("note: {warning}"));
            store.record.warn(warning);
        }
        if is_recorded() {
            let warning = warnings::of_recording();
            observer.note(&format!("note: {warning}"));
            store.record.warn(warning);
        }
    }
    tell_recordings(experiment.spec().name, "none of its runs");
    let work = experiment.place(&settings).is_none().then(|| WorkFolder::make(&place)).transpose()?;
    let earlier = store.record.cells.iter().map(|cell| cell.runs.len()).sum::<usize>();
    let folder = work.as_ref().map(|work| work.path().to_owned()).unwrap_or(place);
    let mut session = Session::new(settings, store, observer, stop, folder, request.ferry.clone());
    let ticks = Ticks::now();
    let outcome = experiment.run(&mut session).and_then(|()| stop.check());
    let removed = work.map_or(Ok(()), WorkFolder::remove);
    let mut store = session.into_store();
    let failure = outcome.and(removed).err().or_else(|| nothing_measured(experiment, &store.record));
    judge(experiment, &mut store.record, ticks, failure.as_ref());
    let taken = store.record.cells.iter().map(|cell| cell.runs.len()).sum::<usize>();
    // A failure before the first run leaves no file.
    let saved = if taken > earlier || failure.is_none() { store.save_durably() } else { Ok(()) };
    let path = store.path().filter(|_| saved.is_ok()).map(Path::to_owned);
    Ok(Ended { record: store.record, path, failure: failure.or(saved.err()) })
}

//! Reasons to refuse a record: it is not finished, its figures are not those of its rows, or it does not fit the others.

use crate::error::Failure;
use crate::experiments::copy::groups;
use crate::machine::{Filesystem, Machine};
use crate::message::quoted;
use crate::record::Record;
use crate::record::warning::WarningKind;

/// A record's name and content.
type Named = (String, Record);

/// Reports the reason with the record's name.
pub(super) fn refused(name: &str, why: &str) -> Failure {
    Failure::Run(format!("cannot use {}: {why}", quoted(name.as_ref())))
}

/// Checks a record by itself.
pub(super) fn usable(record: &Record) -> Result<(), String> {
    if record.experiment != "copy" {
        return Err(format!("it is a record of 'lab {}', not of 'lab copy'", record.experiment));
    }
    if !record.is_finished() {
        return Err("it is not finished; continue with --resume".to_owned());
    }
    if groups::of(record).iter().all(|group| group == "dd") {
        return Err("it has no copies".to_owned());
    }
    let is_wrong =
        |kind| matches!(kind, WarningKind::CacheState | WarningKind::Changed | WarningKind::Recorded);
    let found = record.warnings.iter().find(|warning| warning.distrust && is_wrong(warning.kind));
    found.map_or(Ok(()), |warning| Err(warning.to_string()))
}

/// Checks that a record's rows can stand beside those of the first one.
pub(super) fn together(first: &Named, other: &Named) -> Result<(), String> {
    let ((name, first), (_, other)) = (first, other);
    let name = quoted(name.as_ref());
    if machine(first) != machine(other) {
        return Err(format!("it is of another machine than {name}"));
    }
    if (&first.taken_by, &first.program) != (&other.taken_by, &other.program) {
        return Err(format!("it is of another build of ferry than {name}"));
    }
    if first.tools.get("cp") != other.tools.get("cp") {
        return Err(format!("it is of another cp than {name}"));
    }
    Ok(())
}

/// Returns the machine without its filesystem, which differs between rows.
fn machine(record: &Record) -> Machine {
    Machine { place: Filesystem::default(), ..record.machine.lasting() }
}

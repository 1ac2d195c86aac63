//! `ferry trace`: records programs, and shows, compares and exports recordings.

mod diff;
mod export;
mod figures;
mod json;
mod open;
pub(crate) mod options;
mod reasons;
mod record;
mod show;
mod target;
mod text;
mod tui;

use std::process::ExitCode;

use self::diff::Comparison;
use self::export::Export;
pub(crate) use self::export::OPTIONS as EXPORT_OPTIONS;
use self::record::Record;
use self::show::Show;

pub(crate) enum Trace {
    Record(Record),
    Show(Show),
    Diff(Comparison),
    Export(Export),
}

pub(crate) fn run(trace: &Trace) -> ExitCode {
    match trace {
        Trace::Record(record) => record.run(),
        Trace::Show(show) => show.run(),
        Trace::Diff(comparison) => comparison.run(),
        Trace::Export(export) => export.run(),
    }
}

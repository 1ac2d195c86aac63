//! `ferry trace`: records programs, and shows and exports recordings.

mod export;
mod figures;
mod json;
mod open;
pub(crate) mod options;
mod record;
mod show;
mod text;
mod tui;

use std::process::ExitCode;

use self::export::Export;
pub(crate) use self::export::OPTIONS as EXPORT_OPTIONS;
use self::record::Record;
use self::show::Show;

pub(crate) enum Trace {
    Record(Record),
    Show(Show),
    Export(Export),
}

pub(crate) fn run(trace: &Trace) -> ExitCode {
    match trace {
        Trace::Record(record) => record.run(),
        Trace::Show(show) => show.run(),
        Trace::Export(export) => export.run(),
    }
}

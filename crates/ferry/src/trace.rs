//! `ferry trace`: what a recording of a program, its rings and the kernel shows.

mod export;
mod figures;
mod json;
mod options;
mod record;
mod show;
mod text;
mod tui;

use std::path::Path;
use std::process::ExitCode;

use self::export::Export;
pub(crate) use self::export::OPTIONS as EXPORT_OPTIONS;
pub(crate) use self::options::{overview, parse, program};
use self::record::Record;
use self::show::Show;
use crate::quote::quote;

/// The name messages begin with.
pub(crate) const NAME: &str = "ferry trace";

/// What is to be done.
pub(crate) enum Trace {
    /// Make a recording of what a program's rings do.
    Record(Record),
    /// Tell what a recording comes to.
    Show(Show),
    /// Make it into what other programs show.
    Export(Export),
}

/// Does it.
pub(crate) fn run(trace: &Trace) -> ExitCode {
    match trace {
        Trace::Record(record) => record.run(),
        Trace::Show(show) => show.run(),
        Trace::Export(export) => export.run(),
    }
}

/// A recording, or in a line why there is none.
fn open(file: &Path) -> Result<ferry_trace::Trace, String> {
    ferry_trace::read::open(file).map_err(|broken| format!("cannot read {}: {broken}", quote(file)))
}

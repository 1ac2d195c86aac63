//! `ferry trace`: records programs, and shows and exports recordings.

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

pub(crate) const NAME: &str = "ferry trace";

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

fn open(file: &Path) -> Result<ferry_trace::Trace, String> {
    ferry_trace::read::open(file).map_err(|broken| format!("cannot read {}: {broken}", quote(file)))
}

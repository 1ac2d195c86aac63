//! `ferry lab report`: records in, one page out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_lab::Failure;
use ferry_lab::record::store::write_atomically;
use ferry_lab::report::{Source, page};

use crate::arguments::Effect::{Print, Value};
use crate::arguments::{self, Definition, Manual, Read, Text, Usage};
use crate::cli::Parsed;
use crate::quote::quote;

/// The command's name.
pub(super) const NAME: &str = "report";

const MANUAL: Manual = Manual {
    name: "ferry lab report",
    about: "Makes one HTML page of records",
    usage: "ferry lab report RECORD... --output FILE",
    after: "\
The page holds every figure of the records, and needs no network. FILE is replaced if it exists.

Exit status:
  0  the page was written
  1  a record can't be read, or is of a version or an experiment that this program does not know, or FILE can't be \
written; FILE is as it was
  2  the command line is wrong",
};

const OPTIONS: &[Definition<Option<PathBuf>>] = &[
    Definition {
        letters: "",
        long: "output",
        help: "Write the page here",
        effect: Value("FILE", |output, text| {
            *output = Some(text.into());
            Ok(())
        }),
        own: false,
    },
    Definition { letters: "", long: "help", help: "Print this help", effect: Print(Text::Help), own: false },
];

/// What a page is made of, and where it goes.
pub(crate) struct Report {
    records: Vec<OsString>,
    output: PathBuf,
}

/// The options, as clap has them.
pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

/// Reads the arguments after `report`.
pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Report>, Usage> {
    let mut output = None;
    let records = match arguments::read(OPTIONS, rest, &mut output)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command()))),
        Read::Operands(records) if records.is_empty() => {
            return Err(Usage::with_hint("missing record"));
        }
        Read::Operands(records) => records,
    };
    let output = output.ok_or_else(|| Usage::with_hint("missing '--output FILE'"))?;
    Ok(Parsed::Run(Box::new(Report { records, output })))
}

impl Report {
    /// Writes the page, or nothing if any record can't be used.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let sources = self.records.iter().map(|path| Source::read(Path::new(path)));
        let sources = sources.collect::<Result<Vec<Source>, Failure>>()?;
        write_atomically(&self.place()?, page(&sources).as_bytes(), true)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The file to replace: what a link leads to, and neither a record nor what is no regular file.
    fn place(&self) -> Result<PathBuf, Failure> {
        let Ok(place) = self.output.canonicalize() else { return Ok(self.output.clone()) };
        let refuse = |why: &str| Failure::Misuse(format!("cannot write {}: {why}", quote(&self.output)));
        if !place.is_file() {
            return Err(refuse("it exists and is not a regular file"));
        }
        let is_it = |record: &OsString| Path::new(record).canonicalize().is_ok_and(|path| path == place);
        if self.records.iter().any(is_it) {
            return Err(refuse("it is one of the records"));
        }
        Ok(place)
    }
}

//! `ferry lab report`: writes an HTML page of records.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_lab::Failure;
use ferry_lab::record::store::write_atomically;
use ferry_lab::report::{Source, page};

use crate::arguments::Effect::{Print, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::quote::quote;

pub(super) const NAME: &str = "report";

const MANUAL: Manual = Manual {
    name: "ferry lab report",
    about: "Write records as one HTML page",
    usage: "ferry lab report RECORD... --output FILE",
    examples: &[
        ("ferry lab report copy.json -o report.html", "Make a page of one record"),
        ("ferry lab report before.json after.json -o report.html", "Put two records on one page"),
        ("ferry lab report *.json -o report.html", "Make a page of all records in this directory"),
    ],
    usual: &[],
    after: "\
The page contains every figure of the records and needs no network. An existing FILE is replaced.

Exit status:
  0  the page was written
  1  a record can't be read or has an unknown version or experiment, or FILE can't be written; FILE is \
unchanged
  2  the command line is wrong",
};

const OPTIONS: &[Definition<Option<PathBuf>>] = &[
    Definition {
        letters: "o",
        ..option(
            "output",
            "Write the page to FILE",
            Value("FILE", |output, text| {
                *output = Some(text.into());
                Ok(())
            }),
        )
    },
    option("help", "Print this help", Print(Text::Help)),
];

pub(crate) struct Report {
    records: Vec<OsString>,
    output: PathBuf,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

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
    /// Writes the page, unless a record can't be used.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let sources = self.records.iter().map(|path| Source::read(Path::new(path)));
        let sources = sources.collect::<Result<Vec<Source>, Failure>>()?;
        write_atomically(&self.place()?, page(&sources).as_bytes(), true)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Resolves links in the output's path. Refuses a record, and anything but a regular file.
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

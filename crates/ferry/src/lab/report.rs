//! `ferry lab report`: writes an HTML page of records, or draws a plot of one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_lab::Failure;
use ferry_lab::plot::Plot;
use ferry_lab::record::store::write_atomically;
use ferry_lab::report::{Source, page};

use crate::arguments::Effect::{Print, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::quote::quote;
use crate::values::by_extension;

pub(super) const NAME: &str = "report";

const MANUAL: Manual = Manual {
    name: "ferry lab report",
    about: "Write records as one HTML page, or draw a plot of one record",
    usage: "ferry lab report RECORD... --output FILE",
    examples: &[
        ("ferry lab report copy.json -o report.html", "Make a page of one record"),
        ("ferry lab report before.json after.json -o report.html", "Put two records on one page"),
        ("ferry lab report *.json -o report.html", "Make a page of all records in this directory"),
        ("ferry lab report copy.json -o copy.svg", "Draw the plot of the record's answer"),
    ],
    usual: &[],
    after: "\
The extension of FILE selects the format. The page contains every figure of the records and needs no network. The plot \
shows one RECORD, with colours for light and dark backgrounds. An existing FILE is replaced.

Exit status:
  0  the page or the plot was written
  1  a record can't be read or has an unknown version or experiment, or FILE can't be written; FILE is unchanged
  2  the command line is wrong, or the record has no such plot",
};

#[derive(Default)]
struct Draft {
    output: Option<PathBuf>,
    plot: Option<OsString>,
}

const OPTIONS: &[Definition<Draft>] = &[
    Definition {
        letters: "o",
        ..option(
            "output",
            "Write to FILE: .html (a page) or .svg (a plot)",
            Value("FILE", |draft, text| {
                draft.output = Some(text.into());
                Ok(())
            }),
        )
    },
    option(
        "plot",
        "Draw the plot with this title [default: that of the answer]",
        Value("TITLE", |draft, text| {
            draft.plot = Some(text.into());
            Ok(())
        }),
    ),
    option("help", "Print this help", Print(Text::Help)),
];

/// Format of the file.
#[derive(Clone, Copy)]
enum Format {
    Page,
    Plot,
}

/// Extensions, and the formats that they select.
const EXTENSIONS: [(&str, Format); 2] = [("html", Format::Page), ("svg", Format::Plot)];

/// Contents of the file.
enum Content {
    Page,
    /// One plot; without a title, that of the answer.
    Plot(Option<OsString>),
}

pub(crate) struct Report {
    records: Vec<OsString>,
    output: PathBuf,
    content: Content,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Report>, Usage> {
    let mut draft = Draft::default();
    let records = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command()))),
        Read::Operands(records) if records.is_empty() => {
            return Err(Usage::with_hint("missing record"));
        }
        Read::Operands(records) => records,
    };
    let output = draft.output.ok_or_else(|| Usage::with_hint("missing '--output FILE'"))?;
    let content = match (by_extension(&output, &EXTENSIONS)?, draft.plot, records.get(1)) {
        (Format::Plot, _, Some(more)) => {
            return Err(Usage::with_hint(format!("a plot shows one record: extra operand {}", quote(more))));
        }
        (Format::Plot, title, None) => Content::Plot(title),
        (Format::Page, Some(_), _) => {
            return Err(Usage::with_hint("'--plot' needs an output whose name ends in .svg"));
        }
        (Format::Page, None, _) => Content::Page,
    };
    Ok(Parsed::Run(Box::new(Report { records, output, content })))
}

impl Report {
    /// Writes the page or the plot, unless a record can't be used.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let sources = self.records.iter().map(|path| Source::read(Path::new(path)));
        let sources = sources.collect::<Result<Vec<Source>, Failure>>()?;
        let text = match &self.content {
            Content::Page => page(&sources),
            Content::Plot(title) => plot(&sources, title.as_deref())?,
        };
        write_atomically(&self.place()?, text.as_bytes(), true)?;
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

/// Draws the plot with this title, or without one that of the answer.
fn plot(sources: &[Source], title: Option<&OsStr>) -> Result<String, Failure> {
    let plots: Vec<Plot> = sources.iter().flat_map(Source::plots).collect();
    let is_it = |plot: &&Plot| title.is_none_or(|title| title == OsStr::new(&plot.title));
    plots.iter().find(is_it).map(Plot::file).ok_or_else(|| {
        let titles: Vec<String> = plots.iter().map(|plot| quote(&plot.title)).collect();
        Failure::Misuse(match title {
            Some(title) if !plots.is_empty() => {
                format!("the record has no plot {}; choose one of {}", quote(title), titles.join(", "))
            }
            Some(_) | None => "the record has no plot".to_owned(),
        })
    })
}

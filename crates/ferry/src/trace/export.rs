//! `ferry trace export`: a recording as what other programs show.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_lab::record::store::{place_of, write_atomically};
use ferry_trace::{Trace, export};

use super::open;
use crate::arguments::Effect::{Print, Value};
use crate::arguments::{self, Definition, Manual, Read, Text, Usage};
use crate::cli::Parsed;
use crate::output::Output;
use crate::quote::quote;
use crate::values::choice;

/// The command's name.
pub(super) const NAME: &str = "export";

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace export",
    about: "Make a recording into what other programs show",
    usage: "ferry trace export --format FORMAT [--output FILE] RECORDING",
    after: "\
FORMAT is one of these:
  html      one page for a browser, with everything in it: it zooms, searches, and loads nothing
  svg       a picture for a document
  perfetto  for ui.perfetto.dev and the tools around it
Without --output it goes to standard output, unless that is a terminal. FILE is replaced if it exists, in one step.

Exit status:
  0  it was written
  1  RECORDING can't be read, or is not a whole recording of a version that this program knows, or FILE can't be \
written; then FILE is as it was
  2  the command line is wrong",
};

/// What a recording can be made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Svg,
    Perfetto,
}

const FORMATS: [(&str, Format); 3] =
    [("html", Format::Html), ("svg", Format::Svg), ("perfetto", Format::Perfetto)];

impl Format {
    fn write(self, trace: &Trace, out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Self::Html => export::html(trace, out),
            Self::Svg => export::svg(trace, out),
            Self::Perfetto => export::perfetto(trace, out),
        }
    }
}

/// An order without its recording.
#[derive(Default)]
pub(crate) struct Draft {
    format: Option<Format>,
    output: Option<PathBuf>,
}

/// Every option.
pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    Definition {
        letters: "f",
        long: "format",
        help: "What it is to be made into: html, svg or perfetto",
        effect: Value("FORMAT", |draft, text| {
            draft.format = Some(choice("--format", text, &FORMATS)?);
            Ok(())
        }),
        own: false,
    },
    Definition {
        letters: "o",
        long: "output",
        help: "Write it here",
        effect: Value("FILE", |draft, text| {
            draft.output = Some(text.into());
            Ok(())
        }),
        own: false,
    },
    Definition { letters: "", long: "help", help: "Print this help", effect: Print(Text::Help), own: false },
];

/// Which recording, into what, and where to.
pub(crate) struct Export {
    file: PathBuf,
    format: Format,
    output: Option<PathBuf>,
}

/// The options, as clap has them.
pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

/// Reads the arguments after `export`.
pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Export>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command()))),
        Read::Operands(operands) => operands,
    };
    let Draft { format, output } = draft;
    let file = match operands.as_slice() {
        [file] => PathBuf::from(file),
        [] => return Err(Usage::with_hint("missing operand")),
        [_, more, ..] => return Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
    };
    let format = format.ok_or_else(|| Usage::with_hint("missing '--format FORMAT'"))?;
    if output.is_none() && std::io::stdout().is_terminal() {
        return Err(Usage::with_hint("nothing is written to a terminal: add '--output FILE', or redirect"));
    }
    Ok(Parsed::Run(Box::new(Export { file, format, output })))
}

impl Export {
    /// Makes it, and writes it.
    pub(super) fn run(&self) -> ExitCode {
        match self.write() {
            Ok(()) => ExitCode::SUCCESS,
            Err((why, code)) => {
                Output::new().error(&format!("{}: {why}", MANUAL.name));
                ExitCode::from(code)
            }
        }
    }

    fn write(&self) -> Result<(), (String, u8)> {
        // What can't be written is told before a long recording is read.
        let place = self.output.as_deref().map(|output| self.place(output)).transpose()?;
        let trace = open(&self.file).map_err(|why| (why, 1))?;
        let mut bytes = Vec::new();
        let unwritten = |error: std::io::Error| (format!("write error: {error}"), 1);
        self.format.write(&trace, &mut bytes).map_err(unwritten)?;
        match place {
            Some(place) => write_atomically(&place, &bytes, false)
                .map_err(|failure| (failure.to_string(), failure.exit_code())),
            None => std::io::stdout().lock().write_all(&bytes).map_err(unwritten),
        }
    }

    /// The file to replace, which the recording is not.
    fn place(&self, output: &Path) -> Result<PathBuf, (String, u8)> {
        let place = place_of(output).map_err(|failure| (failure.to_string(), failure.exit_code()))?;
        let recording = self.file.canonicalize();
        if recording.is_ok_and(|recording| place.canonicalize().is_ok_and(|place| place == recording)) {
            return Err((format!("cannot write {}: it is the recording", quote(output)), 2));
        }
        Ok(place)
    }
}

//! `ferry trace export`: converts a recording for other programs.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_trace::{Trace, export};

use super::open::open;
use super::target::{self, Refusal};
use crate::arguments::Effect::{Print, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::output::Output;
use crate::quote::quote;
use crate::values::{by_extension, choice};

#[cfg(test)]
mod tests;

pub(super) const NAME: &str = "export";

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace export",
    about: "Convert a recording for other programs",
    usage: "ferry trace export [--format FORMAT] [--output FILE] RECORDING",
    examples: &[
        ("ferry trace export -o copy.html copy.trace", "Make a page for a browser"),
        ("ferry trace export -o copy.svg copy.trace", "Draw a picture for a document"),
        ("ferry trace export -o copy.perfetto-trace copy.trace", "Make a trace for ui.perfetto.dev"),
    ],
    usual: &[],
    after: "\
FORMAT is one of:
  html      a page for a browser that zooms and searches, and loads no other files
  svg       a picture for a document
  perfetto  a trace for ui.perfetto.dev and related tools
Without --format, the extension of FILE selects the format: .html, .svg, .perfetto-trace or .pftrace. Without \
--output, the result goes to standard output, unless that is a terminal. An existing FILE is replaced in one step.

Exit status:
  0  the recording was exported
  1  RECORDING can't be read, is incomplete or has an unknown version, or FILE can't be written; FILE is \
unchanged
  2  the command line is wrong",
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Html,
    Svg,
    Perfetto,
}

const FORMATS: [(&str, ExportFormat); 3] =
    [("html", ExportFormat::Html), ("svg", ExportFormat::Svg), ("perfetto", ExportFormat::Perfetto)];

const EXTENSIONS: [(&str, ExportFormat); 4] = [
    ("html", ExportFormat::Html),
    ("svg", ExportFormat::Svg),
    ("perfetto-trace", ExportFormat::Perfetto),
    ("pftrace", ExportFormat::Perfetto),
];

impl ExportFormat {
    fn write(self, trace: &Trace, out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Self::Html => export::html(trace, out),
            Self::Svg => export::svg(trace, out),
            Self::Perfetto => export::perfetto(trace, out),
        }
    }
}

#[derive(Default)]
pub(crate) struct Draft {
    format: Option<ExportFormat>,
    output: Option<PathBuf>,
}

pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    Definition {
        letters: "f",
        ..option(
            "format",
            "Select the format: html, svg or perfetto [default: by the extension of FILE]",
            Value("FORMAT", |draft, text| {
                draft.format = Some(choice("--format", text, &FORMATS)?);
                Ok(())
            }),
        )
    },
    Definition {
        letters: "o",
        ..option(
            "output",
            "Write to FILE [default: standard output]",
            Value("FILE", |draft, text| {
                draft.output = Some(text.into());
                Ok(())
            }),
        )
    },
    option("help", "Print this help", Print(Text::Help)),
];

pub(crate) struct Export {
    file: PathBuf,
    format: ExportFormat,
    output: Option<PathBuf>,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

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
    let format = format.map_or_else(|| format_of(output.as_deref()), Ok)?;
    if output.is_none() && std::io::stdout().is_terminal() {
        return Err(Usage::with_hint(
            "cannot write to a terminal: add '--output FILE', or redirect standard output",
        ));
    }
    Ok(Parsed::Run(Box::new(Export { file, format, output })))
}

/// Returns the format that the name of the output selects.
fn format_of(output: Option<&Path>) -> Result<ExportFormat, Usage> {
    let missing = || Usage::with_hint("missing '--format FORMAT' or '--output FILE'");
    by_extension(output.ok_or_else(missing)?, &EXTENSIONS)
        .map_err(|usage| Usage::with_hint(format!("{}; or add '--format FORMAT'", usage.message)))
}

impl Export {
    pub(super) fn run(&self) -> ExitCode {
        match self.write() {
            Ok(()) => ExitCode::SUCCESS,
            Err((why, code)) => {
                Output::new().error(&format!("{}: {why}", MANUAL.name));
                ExitCode::from(code)
            }
        }
    }

    fn write(&self) -> Result<(), Refusal> {
        // Check the output before reading a long recording.
        let recording = std::slice::from_ref(&self.file);
        let place = self.output.as_deref().map(|output| target::place(output, recording)).transpose()?;
        let trace = open(&self.file).map_err(|why| (why, 1))?;
        let mut bytes = Vec::new();
        let unwritten = |error: std::io::Error| (format!("write error: {error}"), 1);
        self.format.write(&trace, &mut bytes).map_err(unwritten)?;
        match place {
            Some(place) => target::write(&place, &bytes),
            None => std::io::stdout().lock().write_all(&bytes).map_err(unwritten),
        }
    }
}

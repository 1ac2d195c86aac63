//! `ferry trace show`: what a recording comes to.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_trace::Summary;

use super::{json, open, text, tui};
use crate::arguments::Effect::{Print, Switch};
use crate::arguments::{self, Definition, Effect, Manual, Read, Text, Usage};
use crate::cli::Parsed;
use crate::output::Output;
use crate::quote::quote;

/// The command's name.
pub(super) const NAME: &str = "show";

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace show",
    about: "Tell what a recording comes to",
    usage: "ferry trace show [OPTION]... FILE",
    after: "\
Operations are told from when a fiber asked for them to when its worker took the answer: by route, with the time that \
they were queued, running, and there but not yet taken; by kind; and the ten longest. Then come the batches given to \
rings and why they were submitted when they were, what was in flight over time, what threads did, why the kernel ran \
task work, and how completions were met: there when the completion queue was looked at, found at once by GETEVENTS, or \
slept for. Of a program that is not ferry's there are the ring's requests instead of operations. Times are in all, so \
that of things done side by side more may be told than the recording took. Of --json and --tui the last one counts.

Exit status:
  0  it was told
  1  FILE can't be read, or is not a whole recording of a version that this program knows, or there is \
no terminal for --tui
  2  the command line is wrong

Environment:
  NO_COLOR  if it is set and not empty, the timeline has no colours",
};

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Format {
    #[default]
    Text,
    Json,
    Timeline,
}

const OPTIONS: &[Definition<Format>] = &[
    option(
        "json",
        "Print one JSON object; times are in nanoseconds",
        Switch(|format| *format = Format::Json),
    ),
    option(
        "tui",
        "Show a timeline on the terminal; ? tells its keys",
        Switch(|format| *format = Format::Timeline),
    ),
    option("help", "Print this help", Print(Text::Help)),
];

const fn option(long: &'static str, help: &'static str, effect: Effect<Format>) -> Definition<Format> {
    Definition { letters: "", long, help, effect, own: false }
}

/// Which recording, and how.
pub(crate) struct Show {
    file: PathBuf,
    format: Format,
}

/// The options, as clap has them.
pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

/// Reads the arguments after `show`.
pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Show>, Usage> {
    let mut format = Format::default();
    let operands = match arguments::read(OPTIONS, rest, &mut format)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command()))),
        Read::Operands(operands) => operands,
    };
    match operands.as_slice() {
        [file] => Ok(Parsed::Run(Box::new(Show { file: file.into(), format }))),
        [] => Err(Usage::with_hint("missing operand")),
        [_, more, ..] => Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
    }
}

impl Show {
    /// Tells it.
    pub(super) fn run(&self) -> ExitCode {
        let output = Output::new();
        let fail = |why: &str| {
            output.error(&format!("{}: {why}", MANUAL.name));
            ExitCode::FAILURE
        };
        if self.format == Format::Timeline
            && let Err(why) = tui::check()
        {
            return fail(why);
        }
        let trace = match open(&self.file) {
            Ok(trace) => trace,
            Err(why) => return fail(&why),
        };
        let summary = || Summary::of(&trace, text::SLOTS);
        match self.format {
            Format::Text => output.line(text::of(&trace, &summary()).trim_end()),
            Format::Json => output.line(&json::of(&trace, &summary())),
            Format::Timeline => return tui::run(&trace).unwrap_or_else(|error| fail(&error.to_string())),
        }
        match output.finish() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("write error: {error}")),
        }
    }
}

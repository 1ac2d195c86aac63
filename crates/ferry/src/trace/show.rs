//! `ferry trace show`: summarizes a recording.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_trace::Summary;

use super::open::open;
use super::{json, text, tui};
use crate::arguments::Effect::{Print, Switch};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::output::Output;
use crate::quote::quote;

pub(super) const NAME: &str = "show";

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace show",
    about: "Summarize a recording",
    usage: "ferry trace show [OPTION]... FILE",
    after: "\
Shows operations from the request of a fiber to the moment when the worker took the result. Operations are \
listed by route, with the time queued, running and completed but not taken; by kind; and the ten longest one \
by one. Then follow batches and why they were submitted, requests in flight over time, threads, and the \
causes of task work. The last table shows how completions were met: seen in the completion queue at once, \
found by GETEVENTS at once, or slept for. For programs other than ferry, requests of rings take the place of \
operations. Times of concurrent operations add up, so a sum may exceed the length of the recording. Of \
--json and --tui, the last one counts.

Exit status:
  0  the recording was shown
  1  FILE can't be read, is incomplete or has an unknown version, or there is no terminal for --tui
  2  the command line is wrong

Environment:
  NO_COLOR  if set and not empty, the timeline has no colours",
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ShowFormat {
    #[default]
    Text,
    Json,
    Timeline,
}

const OPTIONS: &[Definition<ShowFormat>] = &[
    option(
        "json",
        "Print one JSON object; times are in nanoseconds",
        Switch(|format| *format = ShowFormat::Json),
    ),
    option(
        "tui",
        "Show a timeline on the terminal; press ? for its keys",
        Switch(|format| *format = ShowFormat::Timeline),
    ),
    option("help", "Print this help", Print(Text::Help)),
];

pub(crate) struct Show {
    file: PathBuf,
    format: ShowFormat,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Show>, Usage> {
    let mut format = ShowFormat::default();
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
    pub(super) fn run(&self) -> ExitCode {
        let output = Output::new();
        let fail = |why: &str| {
            output.error(&format!("{}: {why}", MANUAL.name));
            ExitCode::FAILURE
        };
        if self.format == ShowFormat::Timeline
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
            ShowFormat::Text => output.line(text::of(&trace, &summary()).trim_end()),
            ShowFormat::Json => output.line(&json::of(&trace, &summary())),
            ShowFormat::Timeline => return tui::run(&trace).unwrap_or_else(|error| fail(&error.to_string())),
        }
        match output.finish() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("write error: {error}")),
        }
    }
}

//! `ferry trace show`: summarizes a recording.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

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
    examples: &[
        ("ferry trace show copy.trace", "Show where the time went"),
        ("ferry trace show --tui copy.trace", "Move about in the timeline"),
        ("ferry trace show --json copy.trace", "Print all figures for a program"),
    ],
    usual: &[],
    after: "\
The first lines answer what took the time. An operation is in flight from its submission to its \
completion. It is submitted when an inline call begins, when it enters the pool's queue, or with its batch \
on a ring. If the completion was not recorded, the time of the result counts. The share of reads (read, \
load, chain) is the part of the recording in which at least one of them was in flight. Writes (write, \
store), copies in the kernel (copy_file_range, clone), syncs and metadata operations (all others, such as \
open and stat) count alike. Workers are busy unless they are idle, also during calls that block. Threads \
of other programs are busy while they do not sleep. The longest wait is the longest time from a request to \
its result. A line of blocks shows the largest number in flight in each part of the recording. It is ASCII \
unless the locale uses UTF-8.

Tables list operations by route, with the time queued, running and completed but not taken; by kind; and \
the ten longest one by one, with file, size, offset, route and reason. The name of a file's folder stands \
before it if the recording shows it. Other tables show batches, requests in flight over time, threads, and \
the causes of task work. Requests of block devices are those of every program, because threads of the kernel \
write back what a program has written; own ones were given to the device by a thread of this program. The last table shows how completions were met: already in the completion queue, found \
by GETEVENTS at once, or slept for. For programs other than ferry, requests of rings take the place of \
operations. On a narrow terminal, tables have fewer columns.

With --json, the object \"answer\" has the first figures. Shares are numbers from 0 to 1, and times are in \
nanoseconds. Of --json and --tui, the last one counts.

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
        match self.format {
            ShowFormat::Text => {
                output.line(text::of(&trace, text::Page::of_standard_output()).trim_end());
            }
            ShowFormat::Json => output.line(&json::of(&trace)),
            ShowFormat::Timeline => return tui::run(&trace).unwrap_or_else(|error| fail(&error.to_string())),
        }
        match output.finish() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("write error: {error}")),
        }
    }
}

//! `ferry trace show`: summarizes a recording.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::open::open;
use super::target::{self, Refusal};
use super::{json, text, tui};
use crate::arguments::Effect::{Print, Switch, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::output::Output;
use crate::quote::quote;
use crate::values::is_json;

pub(super) const NAME: &str = "show";

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace show",
    about: "Summarize a recording",
    usage: "ferry trace show [OPTION]... RECORDING",
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
nanoseconds. Of --json and --tui, the last one counts. With --output, the extension .json selects --json, and an \
existing FILE is replaced in one step.

Exit status:
  0  the recording was shown
  1  RECORDING can't be read, is incomplete or has an unknown version, FILE can't be written, or there is no \
terminal for --tui
  2  the command line is wrong

Environment:
  NO_COLOR  if set and not empty, the timeline has no colours",
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShowFormat {
    Text,
    Json,
    Timeline,
}

#[derive(Default)]
struct Draft {
    format: Option<ShowFormat>,
    output: Option<PathBuf>,
}

const OPTIONS: &[Definition<Draft>] = &[
    option(
        "json",
        "Print one JSON object; times are in nanoseconds",
        Switch(|draft| draft.format = Some(ShowFormat::Json)),
    ),
    option(
        "tui",
        "Show a timeline on the terminal; press ? for its keys",
        Switch(|draft| draft.format = Some(ShowFormat::Timeline)),
    ),
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

pub(crate) struct Show {
    file: PathBuf,
    format: ShowFormat,
    output: Option<PathBuf>,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Show>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command()))),
        Read::Operands(operands) => operands,
    };
    let Draft { format, output } = draft;
    if format == Some(ShowFormat::Timeline) && output.is_some() {
        return Err(Usage::with_hint("--tui can't be combined with --output"));
    }
    let format = format.unwrap_or_else(|| format_of(output.as_deref()));
    match operands.as_slice() {
        [file] => Ok(Parsed::Run(Box::new(Show { file: file.into(), format, output }))),
        [] => Err(Usage::with_hint("missing operand")),
        [_, more, ..] => Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
    }
}

/// Returns the format that the name of the output selects.
fn format_of(output: Option<&Path>) -> ShowFormat {
    if is_json(output) { ShowFormat::Json } else { ShowFormat::Text }
}

impl Show {
    pub(super) fn run(&self) -> ExitCode {
        let output = Output::new();
        self.tell(&output).unwrap_or_else(|(why, code)| {
            output.error(&format!("{}: {why}", MANUAL.name));
            ExitCode::from(code)
        })
    }

    fn tell(&self, output: &Output) -> Result<ExitCode, Refusal> {
        if self.format == ShowFormat::Timeline {
            tui::check().map_err(|why| (why.to_owned(), 1))?;
        }
        let recording = std::slice::from_ref(&self.file);
        let place = self.output.as_deref().map(|output| target::place(output, recording)).transpose()?;
        let trace = open(&self.file).map_err(|why| (why, 1))?;
        let text = match self.format {
            ShowFormat::Text => text::of(&trace, text::Page::of_standard_output()).trim_end().to_owned(),
            ShowFormat::Json => json::of(&trace),
            ShowFormat::Timeline => return tui::run(&trace).map_err(|error| (error.to_string(), 1)),
        };
        target::tell(&text, place.as_deref(), output).map(|()| ExitCode::SUCCESS)
    }
}

//! `ferry trace diff`: compares two recordings, and names the causes of their difference.

mod json;
#[cfg(test)]
mod tests;
mod text;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_trace::diff::Diff;

use super::open::open;
use super::target::{self, Refusal};
use crate::arguments::Effect::{Print, Switch, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::layout::Screen;
use crate::output::Output;
use crate::quote::quote;
use crate::values::is_json as is_json_file;

pub(super) const NAME: &str = "diff";

pub(super) const MANUAL: Manual = Manual {
    name: "ferry trace diff",
    about: "Find out why one recorded run took longer than another",
    usage: "ferry trace diff [OPTION]... A B",
    examples: &[
        ("ferry trace diff fast.trace slow.trace", "Find out why the second copy took longer"),
        ("ferry cp -r --route=ring --trace ring.trace photos backup", "Record a copy with other options"),
        ("ferry trace diff --json copy.trace ring.trace", "Print all figures for a program"),
    ],
    usual: &[],
    after: "\
A and B are recordings of runs that do the same work. The wall time of each run is divided into states, so \
that each moment counts once. It belongs to the processor while a thread of the program runs or is ready to \
run, else to the device while an operation is performed, else to a hand-over while an operation or its \
result waits, else to nothing. Operations in the same state share it. So the times of concurrent operations \
add up to the wall time.

The causes of the difference are:
  route             operations ran on another route, and one of them costs more
  hand-overs        operations waited longer until the pool or the ring began them, or results until \
they were taken
  device wait       operations on the same route slept longer, or data was not in memory
  processor time    threads ran longer, or waited longer for a processor
  other operations  one run performed more operations, or others
  unexplained       neither threads nor operations account for it

A difference below 3 % is no evidence, because two runs of one command differ as much. Without the kernel's \
side of both recordings (see `ferry trace record`), it is unknown which calls slept. Then calls of more than \
50 µs, plus 1 ns for each byte, count as device wait, even if another program had the processor.

With --json, times are in nanoseconds, and shares are numbers of which 1 is the whole difference. With --output, the \
extension .json selects --json, and an existing FILE is replaced in one step.

Exit status:
  0  the recordings were compared
  1  A or B can't be read, is incomplete or has an unknown version, they can't be compared, or FILE can't be written
  2  the command line is wrong",
};

#[derive(Default)]
struct Draft {
    is_json: bool,
    output: Option<PathBuf>,
}

const OPTIONS: &[Definition<Draft>] = &[
    option("json", "Print one JSON object", Switch(|draft| draft.is_json = true)),
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

pub(crate) struct Comparison {
    files: [PathBuf; 2],
    is_json: bool,
    output: Option<PathBuf>,
}

pub(super) fn command() -> clap::Command {
    arguments::command(&MANUAL, OPTIONS)
}

pub(super) fn parse(rest: &[OsString]) -> Result<Parsed<Comparison>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command()))),
        Read::Operands(operands) => operands,
    };
    match operands.as_slice() {
        [a, b] => {
            let Draft { is_json, output } = draft;
            let is_json = is_json || is_json_file(output.as_deref());
            Ok(Parsed::Run(Box::new(Comparison { files: [a.into(), b.into()], is_json, output })))
        }
        [] => Err(Usage::with_hint("missing operands")),
        [only] => Err(Usage::with_hint(format!("missing operand after {}", quote(only)))),
        [_, _, more, ..] => Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
    }
}

impl Comparison {
    pub(super) fn run(&self) -> ExitCode {
        let output = Output::new();
        match self.tell(&output) {
            Ok(()) => ExitCode::SUCCESS,
            Err((why, code)) => {
                output.error(&format!("{}: {why}", MANUAL.name));
                ExitCode::from(code)
            }
        }
    }

    fn tell(&self, output: &Output) -> Result<(), Refusal> {
        let place = self.output.as_deref().map(|output| target::place(output, &self.files)).transpose()?;
        let told = self.told().map_err(|why| (why, 1))?;
        target::tell(&told, place.as_deref(), output)
    }

    fn told(&self) -> Result<String, String> {
        let [file_a, file_b] = &self.files;
        let (a, b) = (open(file_a)?, open(file_b)?);
        let Some(diff) = Diff::of(&a, &b) else {
            let which = if a.operations.is_empty() { file_b } else { file_a };
            return Err(format!(
                "cannot compare {} with {}: only {} has operations of ferry's runtime",
                quote(file_a),
                quote(file_b),
                quote(which)
            ));
        };
        Ok(if self.is_json {
            json::of(&diff, [&a, &b])
        } else {
            let columns = Screen::of(std::io::stdout()).unwrap_or(Screen::USUAL).columns;
            text::of(&diff, [&a, &b], columns).trim_end().to_owned()
        })
    }
}

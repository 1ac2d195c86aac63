//! Options of `ferry plan`.

use std::ffi::OsString;
use std::path::PathBuf;

use ferry_io::Backend;

use super::lists::ALIGNMENT;
use super::manual::MANUAL;
use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{self, Definition, Parsed, Read, Text, Usage, command, option};
use crate::cp::BACKENDS;
use crate::progress::When;
use crate::quote::quote;
use crate::sync;
use crate::values::{choice, file_size, number};

#[cfg(test)]
mod tests;

/// Most parts of a plan.
pub(super) const MOST_PARTS: u32 = 4_096;

/// A step of the work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The lists are made.
    Split {
        parts: u32,
        /// Size of ranges, if it was asked for.
        range: Option<u64>,
        source: PathBuf,
        target: PathBuf,
    },
    /// What all parts need is made.
    Open,
    /// One part is copied.
    Part(u32),
    /// What is left is done; with true, also what parts have not copied.
    Close(bool),
}

/// A request of the user.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) step: Step,
    /// Directory of the lists.
    pub(crate) lists: PathBuf,
    pub(crate) fsync: bool,
    /// Options for `ferry sync`.
    pub(crate) passed: Vec<OsString>,
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    steps: Vec<&'static str>,
    split: Option<u32>,
    part: Option<u32>,
    range: Option<u64>,
    rest: bool,
    fsync: bool,
    passed: Vec<OsString>,
}

pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    option(
        "split",
        "Write lists of what TARGET lacks for N parts (1 to 4096) to the new directory LISTS; change nothing in TARGET",
        Value("N", |d, text| {
            d.steps.push("--split");
            d.split = Some(within("--split", number("--split", text)?)?);
            Ok(())
        }),
    ),
    option(
        "open",
        "Make the directories and the large files, so that no two parts make the same",
        Switch(|d| d.steps.push("--open")),
    ),
    option(
        "part",
        "Copy the names and the ranges of part K",
        Value("K", |d, text| {
            d.steps.push("--part");
            d.part = Some(within("--part", number("--part", text)?)?);
            Ok(())
        }),
    ),
    option(
        "close",
        "Complete the copy: give large files their names, then make TARGET equal to SOURCE as `ferry sync` does",
        Switch(|d| d.steps.push("--close")),
    ),
    option(
        "rest",
        "Copy here what parts have not copied (with --close), instead of refusing to close",
        Switch(|d| d.rest = true),
    ),
    option(
        "range",
        "Copy large files in ranges of SIZE bytes (with --split): files of at least twice SIZE, a multiple of 1M that may \
         end in K, M or G [default: a quarter of a part's share of the file, but 64 to 256 MiB]",
        Value("SIZE", |d, text| {
            let size = file_size("--range", text)?;
            if size == 0 || !size.is_multiple_of(ALIGNMENT) {
                return Err(Usage::with_hint(format!(
                    "invalid size {} for '--range': not a multiple of 1M",
                    quote(text)
                )));
            }
            d.range = Some(size);
            Ok(())
        }),
    ),
    option("fsync", "Return only when what the step has copied is durable", Switch(|d| d.fsync = true)),
    Definition {
        letters: "v",
        long: "verbose",
        help: "Print each action when it is done",
        effect: Switch(|d| d.passed.push("--verbose".into())),
        own: false,
    },
    option(
        "progress",
        "Show progress: auto (on a terminal, after half a second), always or never",
        Optional("WHEN", "always", |d, text| {
            choice("--progress", text, &When::NAMES)?;
            pass(d, "--progress=", text);
            Ok(())
        }),
    ),
    option(
        "backend",
        "Use io_uring, or only plain system calls: auto, uring or posix",
        Value("BACKEND", |d, text| {
            choice::<Backend>("--backend", text, &BACKENDS)?;
            pass(d, "--backend=", text);
            Ok(())
        }),
    ),
    option(
        "workers",
        "Limit the number of workers [default: the available processors]",
        Value("N", |d, text| {
            number::<std::num::NonZeroUsize>("--workers", text)?;
            pass(d, "--workers=", text);
            Ok(())
        }),
    ),
    option("help", "Print this help", Print(Text::Help)),
    option("version", "Print the version", Print(Text::Version)),
];

fn pass(draft: &mut Draft, option: &str, value: &std::ffi::OsStr) {
    let mut word = OsString::from(option);
    word.push(value);
    draft.passed.push(word);
}

fn within(option: &str, parts: u32) -> Result<u32, Usage> {
    if (1..=MOST_PARTS).contains(&parts) {
        return Ok(parts);
    }
    Err(Usage::with_hint(format!("invalid number '{parts}' for '{option}': from 1 to {MOST_PARTS}")))
}

pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => operands,
    };
    if operands.iter().any(|operand| operand.is_empty()) {
        return Err(Usage::with_hint("an operand is empty"));
    }
    draft.finish(operands).map(|request| Parsed::Run(Box::new(request)))
}

impl Draft {
    fn finish(mut self, operands: Vec<OsString>) -> Result<Request, Usage> {
        let step = match self.steps[..] {
            [step] => step,
            [] => return Err(Usage::with_hint("name a step: --split, --open, --part or --close")),
            [first, second, ..] => {
                return Err(Usage::with_hint(format!("{first} and {second} exclude each other")));
            }
        };
        for (is_given, option, needed) in
            [(self.range.is_some(), "--range", "--split"), (self.rest, "--rest", "--close")]
        {
            if is_given && step != needed {
                return Err(Usage::with_hint(format!("{option} needs {needed}")));
            }
        }
        if self.fsync && step == "--split" {
            return Err(Usage::with_hint("--split copies nothing; --fsync is for the other steps"));
        }
        if self.fsync {
            self.passed.push("--fsync".into());
        }
        let mut paths = operands.into_iter().map(PathBuf::from);
        let mut operand =
            |name: &str| paths.next().ok_or_else(|| Usage::with_hint(format!("missing {name}")));
        let step = match (step, self.split, self.part) {
            ("--split", Some(parts), _) => {
                let (source, target) = (operand("SOURCE")?, operand("TARGET")?);
                Step::Split { parts, range: self.range, source, target }
            }
            ("--part", _, Some(part)) => Step::Part(part),
            ("--open", ..) => Step::Open,
            _ => Step::Close(self.rest),
        };
        let lists = operand("LISTS")?;
        if let Some(more) = paths.next() {
            return Err(Usage::with_hint(format!("extra operand {}", quote(more))));
        }
        Ok(Request { step, lists, fsync: self.fsync, passed: self.passed })
    }
}

impl Request {
    /// Returns a request of `ferry sync` with the options that are passed on.
    pub(super) fn sync(&self, words: Vec<OsString>) -> Result<sync::Request, Usage> {
        let arguments: Vec<OsString> = self.passed.iter().cloned().chain(words).collect();
        match sync::parse(&arguments)? {
            Parsed::Run(request) => Ok(*request),
            Parsed::Print(..) => Err(Usage::plain("only the help was asked for")),
        }
    }
}

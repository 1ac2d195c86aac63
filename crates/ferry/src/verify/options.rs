//! The options of `ferry verify`, and what they come to.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ferry_tree::compare::{Holes, Options};

use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{self, Definition, Effect, Manual, Read, Text, Usage, command};
use crate::cli::Parsed;
use crate::progress::When;
use crate::quote::quote;
use crate::values::{choice, number};

#[cfg(test)]
mod tests;

/// What stands around the options in the help.
pub(crate) const MANUAL: Manual = Manual {
    name: "ferry verify",
    about: "Compare two trees: content, every kind of metadata, holes and hard links",
    usage: "ferry verify [OPTION]... SOURCE TARGET",
    after: "\
PARTS are separated by commas: content, mode, owner, times, xattrs, acls, links, holes. Missing and additional \
entries, types, link targets and device numbers are always compared; access times never. Holes differ if the source \
has some that the target has filled, 8 whole blocks of a file or more in all (32 KiB, or more where blocks are larger \
than 4 KiB); holes that only the target has are no difference. Entries that are one file on \
both sides (hard links, or one tree named twice) are the same, and a warning says how many there are.

Exit status:
  0    the trees are the same
  1    they differ, or something can't be read
  2    the command line is wrong
  130  interrupted (ends as by the signal); what was found until then is told

Differences go to standard output, a line each, in no particular order; with --json as objects, and a summary as \
the last line. In their paths, `\\` and bytes that are not UTF-8 stand as `\\\\` and `\\xNN`.",
};

/// Every option.
pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    option("json", "Print JSON", Switch(|d| d.json = true)),
    option(
        "progress",
        "Show progress: auto, on a terminal after half a second; always; or never",
        Optional("WHEN", "always", |d, text| {
            d.progress = choice("--progress", text, &When::NAMES)?;
            Ok(())
        }),
    ),
    option("ignore", "Don't compare these", Value("PARTS", ignore)),
    option(
        "threads",
        "How many threads work at most",
        Value("N", |d, text| {
            d.options.threads = number::<NonZeroUsize>("--threads", text)?.get();
            Ok(())
        }),
    ),
    option("help", "Print this help", Print(Text::Help)),
    option("version", "Print the version", Print(Text::Version)),
];

const fn option(long: &'static str, help: &'static str, effect: Effect<Draft>) -> Definition<Draft> {
    Definition { letters: "", long, help, effect, own: false }
}

/// A request without its operands.
#[derive(Debug)]
pub(crate) struct Draft {
    options: Options,
    json: bool,
    progress: When,
}

impl Default for Draft {
    fn default() -> Self {
        Self { options: Options::all(), json: false, progress: When::default() }
    }
}

/// What is to be compared, and how it is told.
#[derive(Debug)]
pub(crate) struct Request {
    /// The one that was copied.
    pub(crate) source: PathBuf,
    /// The copy.
    pub(crate) target: PathBuf,
    /// What is compared.
    pub(crate) options: Options,
    /// Whether the output is JSON.
    pub(crate) json: bool,
    /// Whether progress is shown.
    pub(crate) progress: When,
}

/// Reads the arguments after the command's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => operands,
    };
    let mut operands = operands.into_iter().map(PathBuf::from);
    let (source, target) = match (operands.next(), operands.next(), operands.next()) {
        (Some(source), Some(target), None) => (source, target),
        (None, ..) => return Err(Usage::with_hint("missing operand")),
        (Some(source), None, _) => {
            return Err(Usage::with_hint(format!("missing operand after {}", quote(source))));
        }
        (_, _, Some(more)) => return Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
    };
    let Draft { options, json, progress } = draft;
    Ok(Parsed::Run(Box::new(Request { source, target, options, json, progress })))
}

/// What may be left out of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Content,
    Mode,
    Owner,
    Times,
    Xattrs,
    Acls,
    Links,
    Holes,
}

const PARTS: [(&str, Part); 8] = [
    ("content", Part::Content),
    ("mode", Part::Mode),
    ("owner", Part::Owner),
    ("times", Part::Times),
    ("xattrs", Part::Xattrs),
    ("acls", Part::Acls),
    ("links", Part::Links),
    ("holes", Part::Holes),
];

fn ignore(draft: &mut Draft, list: &OsStr) -> Result<(), Usage> {
    for word in list.to_string_lossy().split(',') {
        choice("--ignore", word.as_ref(), &PARTS)?.leave_out(&mut draft.options);
    }
    Ok(())
}

impl Part {
    fn leave_out(self, options: &mut Options) {
        match self {
            Self::Content => options.content = false,
            Self::Mode => options.mode = false,
            Self::Owner => options.owner = false,
            Self::Times => options.mtime = false,
            Self::Xattrs => options.xattrs = false,
            Self::Acls => options.acls = false,
            Self::Links => options.links = false,
            Self::Holes => options.holes = Holes::Ignore,
        }
    }
}

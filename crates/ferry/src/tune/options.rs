//! The options of `ferry tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::NAME;
use crate::arguments::Effect::{Print, Switch};
use crate::arguments::{self, Definition, Effect, Manual, Read, Text, Usage, command};
use crate::cli::Parsed;

/// What stands around the options in the help.
pub(crate) const MANUAL: Manual = Manual {
    name: NAME,
    about: "Measure what a mount can do, for copies to begin with",
    usage: "ferry tune [OPTION]... PATH...\n       ferry tune --check [--quick] PATH...\n       \
            ferry tune --show [PATH]...",
    after: "\
Measures the mount that each PATH is on, past the page cache: reads and writes in sequence and at random, how many \
random reads in flight are enough, and which blocks; what making a file costs, and handing a request over to a ring \
or to a thread; which operations the kernel hands to its own workers (where they may be traced: as root); \
whether files can share blocks (reflink), and how direct requests are aligned. PATH is a folder that may be written \
to, or a file in one.

It works in a file without a name, of 1 GiB (256 MiB with --quick) or a quarter of what is free, and in a hidden \
folder; both are gone when it ends. It takes about two minutes a mount, with --quick less than 30 seconds: on a \
slow device each figure is of fewer runs, but of two at least, so it takes longer on devices of less than 8 MB/s or 60 \
requests a second. What else uses the device meanwhile is measured, too.

The figures are kept as a profile, a TOML file for each filesystem, in $FERRY_PROFILES; else in /etc/ferry/profiles for \
root, and for others in $XDG_CONFIG_HOME/ferry/profiles or ~/.config/ferry/profiles. One that was measured with another \
kernel or on another device is not in force.

--check makes a tree of 2,920 files on the mount and copies it there with the profile and without, in pairs; as root \
it drops the kernel's caches before each copy. It needs about half a gigabyte, and leaves nothing.

Exit status:
  0    everything was measured and kept; with --check, the profile does no harm
  1    something could not be measured, or not kept; there is no profile to be shown, or none in force to be checked
  2    the command line is wrong
  3    it was measured, but the figures contradict each other or vary too much: they are not kept; with --check, \
       copies with the profile have less than 0.95 of the speed of those without
  130  interrupted; nothing is left behind",
};

/// Every option.
pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    option("quick", "Measure less: under 30 seconds a mount", Switch(|d| d.quick = true)),
    option(
        "show",
        "Show the profiles that are kept, or those of each PATH's filesystem",
        Switch(|d| d.show = true),
    ),
    option(
        "check",
        "Copy a tree on each PATH's mount with its profile and without, and compare",
        Switch(|d| d.check = true),
    ),
    option("json", "Print each profile as JSON", Switch(|d| d.json = true)),
    option("help", "Print this help", Print(Text::Help)),
    option("version", "Print the version", Print(Text::Version)),
];

const fn option(long: &'static str, help: &'static str, effect: Effect<Draft>) -> Definition<Draft> {
    Definition { letters: "", long, help, effect, own: false }
}

/// A request without its operands.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent switch")]
pub(crate) struct Draft {
    quick: bool,
    json: bool,
    show: bool,
    check: bool,
}

/// What is to be measured, and how it is told.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent switch")]
pub(crate) struct Request {
    /// Where.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether less is measured.
    pub(crate) quick: bool,
    /// Whether the output is JSON.
    pub(crate) json: bool,
    /// Whether profiles are shown instead.
    pub(crate) show: bool,
    /// Whether profiles are checked instead.
    pub(crate) check: bool,
}

/// Reads the arguments after the command's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => operands,
    };
    let Draft { quick, json, show, check } = draft;
    if operands.is_empty() && !show {
        return Err(Usage::with_hint("missing operand"));
    }
    if show && (check || quick) || json && (show || check) {
        return Err(Usage::with_hint("--show goes with no other option, and --check with --quick alone"));
    }
    let paths = operands.into_iter().map(PathBuf::from).collect();
    Ok(Parsed::Run(Box::new(Request { paths, quick, json, show, check })))
}

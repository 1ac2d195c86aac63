//! Options of `ferry tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::arguments::Effect::{Print, Switch, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, command, option};
use crate::names::TUNE as NAME;
use crate::values::is_json;

pub(crate) const MANUAL: Manual = Manual {
    name: NAME,
    about: "Measure mounts, and keep the figures for copies",
    usage: "ferry tune [OPTION]... PATH...\n       ferry tune --check [--quick] PATH...\n       \
            ferry tune --show [PATH]...",
    examples: &[
        ("ferry tune /mnt/photos", "Measure a mount, and keep the figures for copies from it"),
        ("ferry tune --show", "Show the figures that are kept"),
        ("ferry tune --check /mnt/photos", "Measure whether the figures make copies faster"),
        ("ferry tune -o photos.json /mnt/photos", "Write the figures to a file, in the format of its extension"),
    ],
    usual: &[],
    after: "\
Measures the mount of each PATH without the page cache: sequential and random reads and writes, the best \
block size, and the number of random reads in flight that is enough. Also measures the cost of creating a \
file and of handing a request to a ring or a thread. Reports which operations the kernel hands to its own \
workers (needs permission to trace, as root has), support of reflinks, and the alignment of direct requests. \
PATH is a writable directory, or a file in one.

Works in an unnamed file of 1 GiB (256 MiB with --quick) or a quarter of the free space, and in a hidden \
directory; both are removed. A mount takes about two minutes, with --quick less than 30 seconds. On a slow \
device each figure has fewer runs, but at least two, so devices below 8 MB/s or 60 requests per second take \
longer. Other load on the device affects the figures.

The figures are kept as a profile, a TOML file for each filesystem, in $FERRY_PROFILES if set. Otherwise \
root's profiles are in /etc/ferry/profiles, and other users' in $XDG_CONFIG_HOME/ferry/profiles or \
~/.config/ferry/profiles. A profile measured with another kernel or on another device is not in force.

Of the depths and block sizes, the smallest is chosen that reaches 95 % of the best rate, or 90 % if one of \
its runs was as fast as the best. Others that reach as much, and those above the chosen one, are marked as \
close. The last line says what the profile changes in copies from this filesystem. With --output, the extension .json \
selects --json, and an existing FILE is replaced in one step after each mount.

--check copies a tree of 2,920 files on the mount with the profile and without, in pairs. As root, it drops \
the kernel's caches before each copy. It needs about half a gigabyte, and leaves nothing behind. Its last \
line is the verdict: the profile helps, does no harm, changes nothing, or harms; or it is not decided, if the \
interval reaches below 0.95.

Exit status:
  0    everything was measured and kept; with --check, no harm is proved
  1    something could not be measured or kept; with --show, there is no profile; with --check, none is in \
force
  2    the command line is wrong
  3    the figures contradict each other or vary too much, and were not kept; with --check, the profile harms: \
copies with it have less than 0.95 of the speed of those without
  130  interrupted by SIGINT; nothing is left behind",
};

pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    option("quick", "Measure less, in under 30 seconds per mount", Switch(|d| d.quick = true)),
    option("show", "Show all profiles, or those of each PATH's filesystem", Switch(|d| d.show = true)),
    option("check", "Compare copies with each PATH's profile and without it", Switch(|d| d.check = true)),
    option("json", "Print each profile as JSON", Switch(|d| d.json = true)),
    Definition {
        letters: "o",
        ..option(
            "output",
            "Write the figures to FILE [default: standard output]",
            Value("FILE", |d, text| {
                d.output = Some(text.into());
                Ok(())
            }),
        )
    },
    option("help", "Print this help", Print(Text::Help)),
    option("version", "Print the version", Print(Text::Version)),
];

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent switch")]
pub(crate) struct Draft {
    quick: bool,
    json: bool,
    show: bool,
    check: bool,
    output: Option<PathBuf>,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent switch")]
pub(crate) struct Request {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) quick: bool,
    pub(crate) json: bool,
    pub(crate) show: bool,
    pub(crate) check: bool,
    /// File for the figures; `None` for standard output.
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => operands,
    };
    let Draft { quick, json, show, check, output } = draft;
    if operands.is_empty() && !show {
        return Err(Usage::with_hint("missing operand"));
    }
    let prints = json || output.is_some();
    if show && (check || quick) || prints && (show || check) {
        return Err(Usage::with_hint(
            "--show can't be combined with other options, and --check only with --quick",
        ));
    }
    let json = json || is_json(output.as_deref());
    let paths = operands.into_iter().map(PathBuf::from).collect();
    Ok(Parsed::Run(Box::new(Request { paths, quick, json, show, check, output })))
}

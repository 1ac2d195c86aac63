//! Options of `ferry verify`.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ferry_copy::Algorithm;
use ferry_tree::compare::{Holes, Options};

use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, command, option};
use crate::manifest::{self, ALGORITHMS};
use crate::progress::When;
use crate::quote::quote;
use crate::values::{choice, is_json, number};

#[cfg(test)]
mod tests;

pub(crate) const MANUAL: Manual = Manual {
    name: "ferry verify",
    about: "Compare two trees: content, metadata, holes and hard links; or a tree with a manifest",
    usage: "ferry verify [OPTION]... SOURCE TARGET\n       ferry verify [OPTION]... --manifest FILE TREE",
    examples: &[
        ("ferry verify photos backup", "Compare two directories: content, attributes, links and holes"),
        ("ferry verify --ignore=owner,times photos backup", "Compare without owners and times"),
        ("ferry verify --manifest photos.b3 backup", "Compare with the hashes of an earlier copy"),
        ("ferry verify --json photos backup", "Report to a program"),
        ("ferry verify -o report.json photos backup", "Keep the report, in the format of the extension"),
    ],
    usual: &[],
    after: "\
PARTS is a comma-separated list of content, mode, owner, times, xattrs, acls, links and holes. Missing and \
additional entries, types, link targets and device numbers are always compared; access times never are. \
Holes differ if the target has filled 8 or more blocks in holes of a file (32 KiB, or more if blocks are \
larger than 4 KiB). Additional holes in the target are no difference. Entries that are the same file on both \
sides (hard links, or one tree named twice) count as equal; a warning reports their number.

With --manifest, the regular files of TREE are compared with those of a manifest: of `ferry sync`, `ferry cp`, b3sum or \
sha256sum. Their hashes are compared, and if the manifest is JSON, also sizes, modes and modification times. Missing and \
extra files are reported. Symbolic links beneath TREE are not followed, and a trash of `ferry sync` is passed over and counted. \
With --allow-extra, a manifest that lists no file is wrong, unless it is JSON: nothing would be compared.

Exit status:
  0    the trees are equal
  1    the trees differ, or something can't be read
  2    the command line is wrong, or the manifest
  130  interrupted by SIGINT (ferry ends by the signal)

Standard output has the number of differences of each kind and the first 20 of them by path, and ends with the verdict: \
equal, different, undecided (something can't be read, and nothing else differs) or interrupted. With --all, there is a line \
for each difference instead, in no particular order.

With --json, each line is an object, in no particular order, with path, kind and message. Most have the values of both \
sides, as source and target, or as manifest and tree: sizes in bytes, modes in octal digits, times as seconds and nanoseconds \
since 1970. If something can't be read, errno and error are number and name of the error. The last line has the verdict, the \
number of differences of each kind, and a summary. In paths and other names, `\\` and bytes that are not UTF-8 become \
`\\\\` and `\\xNN`.

With --output, the extension .json selects --json. FILE is emptied first, and is written as differences are found.",
};

pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    option("all", "Print each difference, not only some of each kind", Switch(|d| d.all = true)),
    option("json", "Print each difference and the verdict as JSON objects", Switch(|d| d.json = true)),
    Definition {
        letters: "o",
        ..option(
            "output",
            "Write the report to FILE [default: standard output]",
            Value("FILE", |d, text| {
                d.output = Some(text.into());
                Ok(())
            }),
        )
    },
    Definition {
        letters: "q",
        long: "quiet",
        help: "Print nothing but errors; only the exit status tells the verdict",
        effect: Switch(|d| d.quiet = true),
        own: false,
    },
    option(
        "progress",
        "Show progress: auto (on a terminal, after half a second), always or never",
        Optional("WHEN", "always", |d, text| {
            d.progress = Some(choice("--progress", text, &When::NAMES)?);
            Ok(())
        }),
    ),
    option("ignore", "Do not compare these parts", Value("PARTS", ignore)),
    option(
        "manifest",
        "Compare TREE with the manifest in FILE",
        Value("FILE", |d, text| {
            d.manifest = Some(manifest::path(text)?);
            Ok(())
        }),
    ),
    option(
        "hash",
        "Take the hashes of --manifest for blake3 or sha256 [default: what the manifest tells, or else what is right]",
        Value("ALGORITHM", |d, text| {
            d.hash = Some(choice("--hash", text, &ALGORITHMS)?);
            Ok(())
        }),
    ),
    option(
        "allow-extra",
        "Do not report files that the manifest does not have, nor look for them",
        Switch(|d| d.allows_extra = true),
    ),
    option(
        "threads",
        "Limit the number of threads",
        Value("N", |d, text| {
            d.options.threads = number::<NonZeroUsize>("--threads", text)?.get();
            Ok(())
        }),
    ),
    option("help", "Print this help", Print(Text::Help)),
    option("version", "Print the version", Print(Text::Version)),
];

#[derive(Debug)]
pub(crate) struct Draft {
    options: Options,
    all: bool,
    json: bool,
    quiet: bool,
    output: Option<PathBuf>,
    progress: Option<When>,
    manifest: Option<PathBuf>,
    hash: Option<Algorithm>,
    allows_extra: bool,
}

impl Default for Draft {
    fn default() -> Self {
        let (all, json, quiet, allows_extra) = (false, false, false, false);
        let (output, progress, manifest, hash) = (None, None, None, None);
        Self { options: Options::all(), all, json, quiet, output, progress, manifest, hash, allows_extra }
    }
}

impl Draft {
    /// Returns what is printed, and when progress is shown.
    fn shown(&self) -> Result<(Shown, When), Usage> {
        let shows_progress = self.progress.is_some_and(|when| when != When::Never);
        let prints = [
            (self.all, "--all"),
            (self.json, "--json"),
            (self.output.is_some(), "--output"),
            (shows_progress, "--progress"),
        ];
        let progress = self.progress.unwrap_or_default();
        match (self.quiet, prints.iter().find(|(is_given, _)| *is_given)) {
            (true, Some((_, name))) => {
                Err(Usage::with_hint(format!("--quiet and {name} exclude each other")))
            }
            (true, None) => Ok((Shown::Quiet, When::Never)),
            (false, _) if self.json || is_json(self.output.as_deref()) => Ok((Shown::Json, progress)),
            (false, _) if self.all => Ok((Shown::All, progress)),
            (false, _) => Ok((Shown::Sample, progress)),
        }
    }
}

/// Output of the differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Their number and some of each kind, at the end.
    Sample,
    /// A line for each of them when it is found.
    All,
    /// A JSON object for each of them when it is found.
    Json,
    /// Nothing but errors.
    Quiet,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) task: Task,
    pub(crate) options: Options,
    pub(crate) shown: Shown,
    /// File for the report; `None` for standard output.
    pub(crate) output: Option<PathBuf>,
    pub(crate) progress: When,
}

/// The two things that are compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A source and a target.
    Trees(PathBuf, PathBuf),
    /// A tree with a manifest.
    Manifest(Listed),
}

/// A tree and its manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) manifest: PathBuf,
    /// `None` if the manifest tells.
    pub(crate) hash: Option<Algorithm>,
    pub(crate) allows_extra: bool,
    pub(crate) tree: PathBuf,
}

pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    let operands = match arguments::read(OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => operands,
    };
    let mut operands = operands.into_iter().map(PathBuf::from);
    let (shown, progress) = draft.shown()?;
    let Draft { options, output, manifest, hash, allows_extra, .. } = draft;
    if manifest.is_none() {
        let needs = [(hash.is_some(), "--hash"), (allows_extra, "--allow-extra")];
        if let Some((_, name)) = needs.iter().find(|(is_given, _)| *is_given) {
            return Err(Usage::with_hint(format!("{name} needs --manifest")));
        }
    }
    let task = match (manifest, operands.next(), operands.next(), operands.next()) {
        (Some(manifest), Some(tree), None, _) => {
            Task::Manifest(Listed { manifest, hash, allows_extra, tree })
        }
        (Some(_), Some(_), Some(more), _) => {
            return Err(Usage::with_hint(format!("extra operand {}", quote(more))));
        }
        (None, Some(source), Some(target), None) => Task::Trees(source, target),
        (_, None, ..) => return Err(Usage::with_hint("missing operand")),
        (None, Some(source), None, _) => {
            return Err(Usage::with_hint(format!("missing operand after {}", quote(source))));
        }
        (None, _, _, Some(more)) => return Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
    };
    Ok(Parsed::Run(Box::new(Request { task, options, shown, output, progress })))
}

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

//! Options of `ferry cp`: names, help and effect.

mod manual;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ferry_copy::{Dereference, Direct, Reflink, Sparse};
use ferry_io::{Backend, RingMode, RouteChoice};

use super::attributes::{self, Attribute};
use super::profile::ProfileUse;
use super::request::{Draft, Request, Update};
use super::stats::StatsFormat;
use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{self, Definition, Dialect, Effect, Parsed, Read, Text, Usage, command};
use crate::events::Place;
use crate::manifest::{self, ALGORITHMS};
use crate::progress::When;
use crate::values::{choice, number, rate, size};

pub(crate) use manual::MANUAL;

const SPARSE: [(&str, Sparse); 3] =
    [("never", Sparse::Never), ("auto", Sparse::Auto), ("always", Sparse::Always)];
const UPDATES: [(&str, Update); 4] =
    [("all", Update::All), ("none", Update::None), ("none-fail", Update::NoneFail), ("older", Update::Older)];
const REFLINK: [(&str, Reflink); 3] =
    [("auto", Reflink::Auto), ("always", Reflink::Always), ("never", Reflink::Never)];
const DIRECT: [(&str, Direct); 3] =
    [("auto", Direct::Auto), ("always", Direct::Always), ("never", Direct::Never)];
pub(crate) const BACKENDS: [(&str, Backend); 3] =
    [("auto", Backend::Auto), ("uring", Backend::Uring), ("posix", Backend::Posix)];
const ROUTES: [(&str, RouteChoice); 4] = [
    ("auto", RouteChoice::Auto),
    ("inline", RouteChoice::Inline),
    ("ring", RouteChoice::Ring),
    ("pool", RouteChoice::Pool),
];
const RING_MODES: [(&str, RingMode); 5] = [
    ("defer", RingMode::Defer),
    ("coop", RingMode::Coop),
    ("plain", RingMode::Plain),
    ("sqpoll", RingMode::SqPoll),
    ("iopoll", RingMode::IoPoll),
];

/// GNU's options in alphabetical order, then ferry's own.
pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    gnu("a", "archive", "Same as -dR --preserve=all", Switch(archive)),
    gnu(
        "",
        "attributes-only",
        "Copy the attributes of files, but not their content",
        Switch(|d| d.options.attributes_only = true),
    ),
    gnu("b", "", "Same as --backup without CONTROL", Switch(|d| d.backups.is_made = true)),
    gnu(
        "",
        "backup",
        "Back up each existing target before replacing it [default: $VERSION_CONTROL, or existing]",
        Optional("CONTROL", "", backup),
    ),
    gnu(
        "",
        "copy-contents",
        "Copy the contents of special files when recursive",
        Switch(|d| d.contents = true),
    ),
    gnu(
        "",
        "debug",
        "Show how GNU cp would have copied each file; implies -v",
        Switch(|d| {
            d.options.debug = true;
            d.options.verbose = true;
        }),
    ),
    gnu("d", "", "Same as --no-dereference --preserve=links", Switch(links_as_links)),
    gnu(
        "f",
        "force",
        "Remove a target that can't be opened, and try again",
        Switch(|d| d.options.force = true),
    ),
    gnu("H", "", "Follow symbolic links given as SOURCE", Switch(|d| d.follow(Dereference::CommandLine))),
    gnu("i", "interactive", "Ask before replacing an existing target", Switch(|d| d.asks = Some(true))),
    gnu(
        "",
        "keep-directory-symlink",
        "Follow existing symbolic links to directories in the target; use only with trusted targets",
        Switch(|d| d.options.keep_directory_symlink = true),
    ),
    gnu("l", "link", "Create hard links instead of copies", Switch(|d| d.hard_links = true)),
    gnu(
        "L",
        "dereference",
        "Follow all symbolic links in the source",
        Switch(|d| d.follow(Dereference::Always)),
    ),
    gnu("n", "no-clobber", "Do not replace existing targets", Switch(|d| d.asks = Some(false))),
    gnu(
        "P",
        "no-dereference",
        "Never follow symbolic links in the source",
        Switch(|d| d.follow(Dereference::Never)),
    ),
    gnu("p", "", "Same as --preserve=mode,ownership,timestamps", Switch(|d| d.keep(&USUAL))),
    gnu(
        "",
        "parents",
        "Keep the full path of each SOURCE below DIRECTORY",
        Switch(|d| d.operands.parents = true),
    ),
    gnu(
        "",
        "preserve",
        "Preserve these attributes [default: mode,ownership,timestamps]",
        Optional("LIST", "mode,ownership,timestamps", preserve),
    ),
    gnu("", "no-preserve", "Do not preserve these attributes", Value("LIST", no_preserve)),
    gnu("rR", "recursive", "Copy directories and their content", Switch(|d| d.options.recursive = true)),
    gnu(
        "",
        "remove-destination",
        "Remove each existing target before opening it",
        Switch(|d| d.options.remove_destination = true),
    ),
    gnu(
        "",
        "sparse",
        "Create holes: auto (where the source has them), always (also for zeros) or never",
        Value("WHEN", |d, text| set(&mut d.options.sparse, choice("--sparse", text, &SPARSE))),
    ),
    gnu(
        "",
        "reflink",
        "Share extents with the source: auto (if possible), always (or fail; the default WHEN) or never",
        Optional("WHEN", "always", |d, text| {
            set(&mut d.options.reflink, choice("--reflink", text, &REFLINK))
        }),
    ),
    gnu(
        "",
        "strip-trailing-slashes",
        "Remove trailing slashes from each SOURCE",
        Switch(|d| d.operands.strip_trailing_slashes = true),
    ),
    gnu(
        "S",
        "suffix",
        "Back up with this suffix [default: $SIMPLE_BACKUP_SUFFIX, or ~]",
        Value("SUFFIX", |d, text| {
            d.backups.is_made = true;
            set(&mut d.backups.suffix, Ok(Some(text.into())))
        }),
    ),
    gnu("s", "symbolic-link", "Create symbolic links instead of copies", Switch(|d| d.symbolic_links = true)),
    gnu("t", "target-directory", "Copy all SOURCEs into DIRECTORY", Value("DIRECTORY", target_directory)),
    gnu(
        "T",
        "no-target-directory",
        "Treat DEST as the target itself, never as a directory to copy into",
        Switch(|d| d.operands.no_target_directory = true),
    ),
    gnu("u", "", "Same as --update", Switch(|d| d.update = Update::Older)),
    gnu(
        "",
        "update",
        "Select which existing targets to replace: all, none, none-fail (each is a failure) or older (than the \
         source; the default WHICH)",
        Optional("WHICH", "older", |d, text| set(&mut d.update, choice("--update", text, &UPDATES))),
    ),
    gnu("v", "verbose", "Print each entry when it is copied", Switch(|d| d.options.verbose = true)),
    gnu(
        "x",
        "one-file-system",
        "Stay on the filesystem of each SOURCE",
        Switch(|d| d.options.one_file_system = true),
    ),
    gnu(
        "Z",
        "",
        "Set the default security context of each copy; without SELinux, has no effect",
        Switch(|d| d.labels = true),
    ),
    gnu(
        "",
        "context",
        "Same as -Z, or set this security context; without SELinux, only warns",
        Optional("CTX", "", |d, text| {
            d.labels = true;
            d.label_is_given |= !text.is_empty();
            Ok(())
        }),
    ),
    gnu("", "help", "Print this help", Print(Text::Help)),
    gnu("", "version", "Print the version", Print(Text::Version)),
    own(
        "progress",
        "Show progress: auto (on a terminal, after half a second), always or never (the default as cp)",
        Optional("WHEN", "always", |d, text| {
            set(&mut d.progress, choice("--progress", text, &When::NAMES).map(Some))
        }),
    ),
    own(
        "stats",
        "Print a summary and statistics at the end: text (to standard error) or json (to standard output)",
        Optional("FORMAT", "text", |d, text| {
            set(&mut d.stats, choice("--stats", text, &StatsFormat::NAMES).map(Some))
        }),
    ),
    own(
        "explain",
        "Count files and bytes by how they were copied and why; explain where operations ran and which backend was used; \
         with -v, explain each file, too",
        Switch(|d| d.options.explain = true),
    ),
    own(
        "errors",
        "Write each failure to FILE as a JSON object, with number and name of the system call's error; `\\` becomes `\\\\`, \
         and bytes that are not UTF-8 become `\\xNN`",
        Value("FILE", |d, text| set(&mut d.errors, Ok(Some(text.into())))),
    ),
    own(
        "events",
        "Write what happens as lines of JSON to FILE [default: -, standard output]",
        Optional("FILE", "", |d, text| set(&mut d.events, Ok(Some(Place::parse(text))))),
    ),
    own(
        "trace",
        "Record the run for `ferry trace`. FILE is created when the copy ends, and replaces an older recording. If \
         another file has the name, the recording is FILE.2 and so on. A final `%n` stands for the first free \
         number [default: $FERRY_TRACE]",
        Value("FILE", |d, text| set(&mut d.trace, Ok(Some(text.into())))),
    ),
    own(
        "atomic",
        "Give each file its name only when it is complete; replace existing targets instead of writing to them",
        Switch(|d| d.options.atomic = true),
    ),
    own(
        "verify",
        "Compare each file, read back from its device, with the source before it gets its name; implies --atomic",
        Switch(|d| d.options.verify = true),
    ),
    own(
        "manifest",
        "Write a hash of each copied regular file to FILE, sorted by path, as lines for `b3sum -c`, or as JSON if \
         FILE ends in .json, .jsonl or .ndjson",
        Value("FILE", |d, text| set(&mut d.manifest, manifest::path(text).map(Some))),
    ),
    own(
        "hash",
        "Hash for --manifest with blake3, or with sha256 for `sha256sum -c` [default: blake3]",
        Value("ALGORITHM", |d, text| set(&mut d.hash, choice("--hash", text, &ALGORITHMS).map(Some))),
    ),
    own(
        "bwlimit",
        "Limit the rate to RATE bytes per second; the suffixes K, M and G are powers of 1,024",
        Value("RATE", |d, text| set(&mut d.options.bandwidth, rate("--bwlimit", text).map(Some))),
    ),
    own(
        "direct",
        "Bypass the page cache: auto (for files that are not cached, once the copy exceeds the available memory), \
         always (for files larger than a block; the default WHEN) or never. With --sparse=always, data goes \
         through the cache and is evicted",
        Optional("WHEN", "always", |d, text| set(&mut d.options.direct, choice("--direct", text, &DIRECT))),
    ),
    own("fsync", "Sync everything to storage before returning", Switch(|d| d.options.fsync = true)),
    own(
        "backend",
        "Select the backend: auto, uring or posix",
        Value("NAME", |d, text| set(&mut d.backend, choice("--backend", text, &BACKENDS))),
    ),
    own(
        "route",
        "Select where operations run: auto, inline, ring or pool",
        Value("NAME", |d, text| set(&mut d.route, choice("--route", text, &ROUTES))),
    ),
    own(
        "profile",
        "Use the profile of the first SOURCE's filesystem (see `ferry tune`): auto (if there is one) or none \
         [default: auto]",
        Value("WHICH", |d, text| set(&mut d.profile, choice("--profile", text, &ProfileUse::NAMES))),
    ),
    own(
        "ring-mode",
        "Select how rings deliver completions: defer, coop, plain, sqpoll or iopoll",
        Value("MODE", |d, text| set(&mut d.ring_mode, choice("--ring-mode", text, &RING_MODES))),
    ),
    own(
        "workers",
        "Limit the number of workers [default: the available processors]",
        Value("N", |d, text| set(&mut d.workers, number::<NonZeroUsize>("--workers", text).map(Some))),
    ),
    own(
        "queue-depth",
        "Set the number of entries of each worker's ring, a power of two [default: 256]",
        Value("N", |d, text| set(&mut d.queue_depth, number("--queue-depth", text).map(Some))),
    ),
    own(
        "block-size",
        "Set the size of a block in bytes; the suffixes K and M are powers of 1,024 [default: 256K]",
        Value("SIZE", |d, text| set(&mut d.block_size, size("--block-size", text).map(Some))),
    ),
];

pub(crate) fn parse(dialect: Dialect, arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    match arguments::read_in(dialect, OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => Ok(Parsed::Print(text, Box::new(help(dialect)))),
        Read::Operands(operands) => {
            draft.operands.paths = operands.into_iter().map(PathBuf::from).collect();
            draft.finish().map(|request| Parsed::Run(Box::new(request)))
        }
    }
}

/// Builds the clap command, with the name under which the program was called.
fn help(dialect: Dialect) -> clap::Command {
    let command = command(&MANUAL, OPTIONS);
    match dialect {
        Dialect::Ferry => command,
        Dialect::Gnu => {
            let own_name = |text: &str| text.replace(MANUAL.name, "cp");
            let examples = command.get_before_help().map(|text| own_name(&text.ansi().to_string()));
            command
                .override_usage(own_name(MANUAL.usage))
                .before_help(examples.unwrap_or_default())
                .mut_arg("help", |option| option.short(None::<char>))
        }
    }
}

const fn gnu(
    letters: &'static str,
    long: &'static str,
    help: &'static str,
    effect: Effect<Draft>,
) -> Definition<Draft> {
    Definition { letters, long, help, effect, own: false }
}

const fn own(long: &'static str, help: &'static str, effect: Effect<Draft>) -> Definition<Draft> {
    Definition { letters: "", long, help, effect, own: true }
}

fn set<T>(place: &mut T, value: Result<T, Usage>) -> Result<(), Usage> {
    value.map(|value| *place = value)
}

const USUAL: [Attribute; 3] = [Attribute::Mode, Attribute::Ownership, Attribute::Timestamps];

fn archive(draft: &mut Draft) {
    draft.options.recursive = true;
    draft.follow(Dereference::Never);
    draft.keep(&[Attribute::All]);
}

fn links_as_links(draft: &mut Draft) {
    draft.follow(Dereference::Never);
    draft.keep(&[Attribute::Links]);
}

fn preserve(draft: &mut Draft, list: &OsStr) -> Result<(), Usage> {
    let attributes = attributes::parse("--preserve", list)?;
    draft.context |= attributes.contains(&Attribute::Context);
    draft.keep(&attributes);
    Ok(())
}

fn no_preserve(draft: &mut Draft, list: &OsStr) -> Result<(), Usage> {
    for attribute in attributes::parse("--no-preserve", list)? {
        attribute.set(&mut draft.options.preserve, false);
    }
    Ok(())
}

fn backup(draft: &mut Draft, control: &OsStr) -> Result<(), Usage> {
    draft.backups.is_made = true;
    if !control.is_empty() {
        draft.backups.control = Some(control.into());
    }
    Ok(())
}

fn target_directory(draft: &mut Draft, text: &OsStr) -> Result<(), Usage> {
    match draft.operands.target_directory.replace(text.into()) {
        Some(_) => Err(Usage::plain("multiple target directories specified")),
        None => Ok(()),
    }
}

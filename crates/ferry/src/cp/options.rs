//! The options of `ferry cp`: names, help, and what each does to the request.

use std::ffi::OsStr;
use std::num::NonZeroUsize;

use ferry_copy::{Dereference, Direct, Reflink, Sparse};
use ferry_io::{Backend, RingMode, RouteChoice};

use super::attributes::{self, Attribute};
use super::profile::Use;
use super::request::{Draft, Update};
use super::stats::Format;
use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{Definition, Effect, Manual, Text, Usage};
use crate::progress::When;
use crate::values::{choice, number, rate, size};

/// What stands around the options in the help.
pub(crate) const MANUAL: Manual = Manual {
    name: "ferry cp",
    about: "Copy SOURCE to DEST, or several SOURCEs into the folder DIRECTORY",
    usage: "cp [OPTION]... [-T] SOURCE DEST\n       cp [OPTION]... SOURCE... DIRECTORY\n       \
            cp [OPTION]... -t DIRECTORY SOURCE...",
    after: "\
Options mean what they mean to GNU cp. LIST is a comma-separated list of mode, ownership, timestamps, links, \
xattr and all; WHEN is auto, always or never; values may be shortened, and so may long options.

CONTROL is how backups are named:
  none, off       none are made, also with --backup
  simple, never   FILE~, or what the suffix is
  numbered, t     FILE.~1~, FILE.~2~ and so on
  existing, nil   numbered where there is such a backup already, else simple

Exit status:
  0    everything was copied
  1    something was not copied, or the command line is wrong
  130  interrupted (as by SIGINT)

A copy that fails or is interrupted (SIGINT, SIGTERM, SIGHUP) removes each new target that is not complete. An existing \
target that is not complete keeps its name, gets the oldest time that its filesystem can store, and is reported, so that \
`cp -u` copies it again.

Environment:
  VERSION_CONTROL         CONTROL of backups, unless --backup gives it
  SIMPLE_BACKUP_SUFFIX    the suffix of simple backups, unless -S gives it
  FERRY_TRACE             where the run is recorded, unless --trace says so
  FERRY_PROFILES          the folder with the profiles that `ferry tune` keeps, in the place of the usual ones
  POSIXLY_CORRECT         if set, options end at the first operand, and files may be made through dangling links
  LC_ALL, LC_CTYPE, LANG  the first that is not empty says whether words are quoted with UTF-8's quotation marks

The lines of -v and --explain and the object of --stats=json (the last line) go to standard output, \
everything else to standard error.",
};

const SPARSE: [(&str, Sparse); 3] =
    [("never", Sparse::Never), ("auto", Sparse::Auto), ("always", Sparse::Always)];
const UPDATES: [(&str, Update); 4] =
    [("all", Update::All), ("none", Update::None), ("none-fail", Update::NoneFail), ("older", Update::Older)];
const REFLINK: [(&str, Reflink); 3] =
    [("auto", Reflink::Auto), ("always", Reflink::Always), ("never", Reflink::Never)];
const DIRECT: [(&str, Direct); 3] =
    [("auto", Direct::Auto), ("always", Direct::Always), ("never", Direct::Never)];
const BACKENDS: [(&str, Backend); 3] =
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

/// Every option. GNU's stand first, by their letters.
pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    gnu("a", "archive", "Same as -dR --preserve=all", Switch(archive)),
    gnu(
        "",
        "attributes-only",
        "Make files and keep their attributes, but copy no content",
        Switch(|d| d.options.attributes_only = true),
    ),
    gnu("b", "", "Same as --backup without CONTROL", Switch(|d| d.backups.is_made = true)),
    gnu(
        "",
        "backup",
        "Keep what is replaced by another name: none, simple, numbered, or existing, numbered where there is such \
         a backup already [default: $VERSION_CONTROL, or existing]",
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
        "Tell how GNU cp would have copied each file; implies -v",
        Switch(|d| {
            d.options.debug = true;
            d.options.verbose = true;
        }),
    ),
    gnu("d", "", "Same as --no-dereference --preserve=links", Switch(links_as_links)),
    gnu(
        "f",
        "force",
        "Remove and try again a target that can't be opened",
        Switch(|d| d.options.force = true),
    ),
    gnu(
        "H",
        "",
        "Follow the symbolic links among the SOURCEs",
        Switch(|d| d.follow(Dereference::CommandLine)),
    ),
    gnu("i", "interactive", "Ask before an existing target is replaced", Switch(|d| d.asks = Some(true))),
    gnu(
        "",
        "keep-directory-symlink",
        "Follow links of the target that lead to folders where folders are copied to; only for targets that are trusted",
        Switch(|d| d.options.keep_directory_symlink = true),
    ),
    gnu("l", "link", "Make hard links instead of copies", Switch(|d| d.hard_links = true)),
    gnu(
        "L",
        "dereference",
        "Follow all symbolic links of the source",
        Switch(|d| d.follow(Dereference::Always)),
    ),
    gnu("n", "no-clobber", "Leave existing targets as they are", Switch(|d| d.asks = Some(false))),
    gnu(
        "P",
        "no-dereference",
        "Never follow symbolic links of the source",
        Switch(|d| d.follow(Dereference::Never)),
    ),
    gnu("p", "", "Same as --preserve=mode,ownership,timestamps", Switch(|d| d.keep(&USUAL))),
    gnu(
        "",
        "parents",
        "Use the full name of each SOURCE beneath DIRECTORY",
        Switch(|d| d.operands.parents = true),
    ),
    gnu(
        "",
        "preserve",
        "Keep these attributes (without LIST: mode, ownership and timestamps)",
        Optional("LIST", "mode,ownership,timestamps", preserve),
    ),
    gnu("", "no-preserve", "Don't keep these attributes", Value("LIST", no_preserve)),
    gnu("rR", "recursive", "Copy folders with what they hold", Switch(|d| d.options.recursive = true)),
    gnu(
        "",
        "remove-destination",
        "Remove each existing target before it is opened",
        Switch(|d| d.options.remove_destination = true),
    ),
    gnu(
        "",
        "sparse",
        "Make holes: auto, where the source has them; always, also for zeros; or never",
        Value("WHEN", |d, text| set(&mut d.options.sparse, choice("--sparse", text, &SPARSE))),
    ),
    gnu(
        "",
        "reflink",
        "Share extents with the source; `always` (if WHEN is left out) fails where that is impossible",
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
        "Make backups that end with SUFFIX [default: $SIMPLE_BACKUP_SUFFIX, or ~]",
        Value("SUFFIX", |d, text| {
            d.backups.is_made = true;
            set(&mut d.backups.suffix, Ok(Some(text.into())))
        }),
    ),
    gnu("s", "symbolic-link", "Make symbolic links instead of copies", Switch(|d| d.symbolic_links = true)),
    gnu("t", "target-directory", "Copy all SOURCEs into DIRECTORY", Value("DIRECTORY", target_directory)),
    gnu(
        "T",
        "no-target-directory",
        "Treat DEST as the target itself, never as a folder to copy into",
        Switch(|d| d.operands.no_target_directory = true),
    ),
    gnu("u", "", "Same as --update", Switch(|d| d.update = Update::Older)),
    gnu(
        "",
        "update",
        "Which existing targets are replaced: all; none; none-fail, where each is a failure; or older, those older \
         than their source (if WHICH is left out)",
        Optional("WHICH", "older", |d, text| set(&mut d.update, choice("--update", text, &UPDATES))),
    ),
    gnu("v", "verbose", "Tell of each entry as it is copied", Switch(|d| d.options.verbose = true)),
    gnu(
        "x",
        "one-file-system",
        "Stay on the filesystem of each SOURCE",
        Switch(|d| d.options.one_file_system = true),
    ),
    gnu(
        "Z",
        "",
        "Give each copy the security context of its place; nothing without SELinux",
        Switch(|d| d.labels = true),
    ),
    gnu(
        "",
        "context",
        "Same as -Z, or give each copy this security context; a warning without SELinux",
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
        "Show progress: auto, on a terminal after half a second; always; or never, as it is if called as cp",
        Optional("WHEN", "always", |d, text| {
            set(&mut d.progress, choice("--progress", text, &When::NAMES).map(Some))
        }),
    ),
    own(
        "stats",
        "Say at the end what was done and what it cost: text, on standard error; or json, on standard output",
        Optional("FORMAT", "text", |d, text| {
            set(&mut d.stats, choice("--stats", text, &Format::NAMES).map(Some))
        }),
    ),
    own(
        "explain",
        "Say of each file how its bytes went and why, and at the end where operations ran and which backend was taken",
        Switch(|d| d.options.explain = true),
    ),
    own(
        "errors",
        "Write the failures to FILE, a JSON object a line; `\\` and bytes that are not UTF-8 as `\\\\` and `\\xNN`",
        Value("FILE", |d, text| set(&mut d.errors, Ok(Some(text.into())))),
    ),
    own(
        "trace",
        "Record what is done in FILE, for `ferry trace` to show; FILE is made when the copy is over, in the place of an \
         older recording or of nothing, else as FILE.2 and so on; `%n` at its end is the first free number \
         [default: $FERRY_TRACE]",
        Value("FILE", |d, text| set(&mut d.trace, Ok(Some(text.into())))),
    ),
    own(
        "atomic",
        "Give files their names only when they are whole, replacing what is there instead of writing to it",
        Switch(|d| d.options.atomic = true),
    ),
    own(
        "bwlimit",
        "Copy at most RATE bytes a second; K, M and G stand for 1,024, its square and its cube",
        Value("RATE", |d, text| set(&mut d.options.bandwidth, rate("--bwlimit", text).map(Some))),
    ),
    own(
        "direct",
        "Read and write past the page cache: auto, files that are not in memory, once the copy is larger than the available memory; always (if WHEN is left out), \
         all larger than a block (with --sparse=always they \
         go through it and leave it); or never",
        Optional("WHEN", "always", |d, text| set(&mut d.options.direct, choice("--direct", text, &DIRECT))),
    ),
    own("fsync", "Return only when everything is durable", Switch(|d| d.options.fsync = true)),
    own(
        "backend",
        "Which backend waits for the kernel: auto, uring or posix",
        Value("NAME", |d, text| set(&mut d.backend, choice("--backend", text, &BACKENDS))),
    ),
    own(
        "route",
        "Where operations run: auto, inline, ring or pool",
        Value("NAME", |d, text| set(&mut d.route, choice("--route", text, &ROUTES))),
    ),
    own(
        "profile",
        "Whether the copy begins with what `ferry tune` measured of the first SOURCE's filesystem: auto, where it was \
         measured, or none [default: auto]",
        Value("WHICH", |d, text| set(&mut d.profile, choice("--profile", text, &Use::NAMES))),
    ),
    own(
        "ring-mode",
        "How completions arrive: defer, coop, plain, sqpoll or iopoll",
        Value("MODE", |d, text| set(&mut d.ring_mode, choice("--ring-mode", text, &RING_MODES))),
    ),
    own(
        "workers",
        "Workers at most [default: the processors to be had]",
        Value("N", |d, text| set(&mut d.workers, number::<NonZeroUsize>("--workers", text).map(Some))),
    ),
    own(
        "queue-depth",
        "Entries of each worker's ring, a power of two [default: 256]",
        Value("N", |d, text| set(&mut d.queue_depth, number("--queue-depth", text).map(Some))),
    ),
    own(
        "block-size",
        "Bytes of a block, with suffix K or M if wanted [default: 256K]",
        Value("SIZE", |d, text| set(&mut d.block_size, size("--block-size", text).map(Some))),
    ),
];

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

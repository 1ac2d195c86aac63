//! Options of `ferry sync`.

mod manual;
mod selection;
mod task;

use std::ffi::{OsStr, OsString};
use std::num::{NonZeroU8, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ferry_copy::Algorithm;
use ferry_io::Backend;
use ferry_sync::{Acting, Comparison, Disposal, MaxDelete};

use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{self, Definition, Effect, Parsed, Read, Text, Usage, command, option};
use crate::cp::BACKENDS;
use crate::events::Place;
use crate::manifest::{self, ALGORITHMS, Wanted};
use crate::progress::When;
use crate::quote::quote;
use crate::values::{choice, duration, number, percentage, rate};

pub(crate) use manual::MANUAL;
pub(crate) use task::{FilesFrom, Output, Task};

#[cfg(test)]
mod tests;

/// Deletion, as `--delete` asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    Trash,
    Now,
}

const DELETIONS: [(&str, Deletion); 2] = [("trash", Deletion::Trash), ("now", Deletion::Now)];

pub(crate) const OPTIONS: &[Definition<Draft>] = &[
    with_letter("n", "dry-run", "Print the actions, and change nothing", Switch(|d| d.dry_run = true)),
    with_letter("v", "verbose", "Print each action when it is done", Switch(|d| d.verbose = true)),
    option(
        "plan",
        "Write the actions to FILE as a plan, and change nothing",
        Value("FILE", |d, text| set(&mut d.plan, text)),
    ),
    option(
        "apply",
        "Perform the plan in FILE; refuse each action whose source or target has changed since",
        Value("FILE", |d, text| set(&mut d.apply, text)),
    ),
    with_letter(
        "c",
        "checksum",
        "Compare the content of files, not their times",
        Switch(|d| d.checksum = true),
    ),
    option(
        "undo",
        "Undo the moves of a run into this trash: all entries go back to TARGET",
        Value("DIRECTORY", |d, text| set(&mut d.undo, text)),
    ),
    option("size-only", "Compare only the sizes of files", Switch(|d| d.size_only = true)),
    with_letter("u", "newer", "Keep files that are newer in TARGET", Switch(|d| d.newer = true)),
    option(
        "inplace",
        "Overwrite changed files in place: they are incomplete meanwhile, and the trash does not get the old ones",
        Switch(|d| d.in_place = true),
    ),
    option("fsync", "Return only when everything is durable", Switch(|d| d.fsync = true)),
    option(
        "verify",
        "Compare the content of each copied file, read back from its device, with its source before it gets its name",
        Switch(|d| d.verify = true),
    ),
    option(
        "manifest",
        "Write a hash of each regular file to FILE (of those that take part), sorted by path, as lines for `b3sum -c`, or as \
         JSON if FILE ends in .json, .jsonl or .ndjson",
        Value("FILE", |d, text| {
            d.manifest = Some(manifest::path(text)?);
            Ok(())
        }),
    ),
    option(
        "hash",
        "Hash for --manifest with blake3, or with sha256 for `sha256sum -c` [default: blake3]",
        Value("ALGORITHM", |d, text| {
            d.hash = Some(choice("--hash", text, &ALGORITHMS)?);
            Ok(())
        }),
    ),
    option(
        "delete",
        "Delete entries that SOURCE lacks: move them to the trash, or with `now` remove them",
        Optional("HOW", "trash", |d, text| {
            d.deletion = Some(choice("--delete", text, &DELETIONS)?);
            Ok(())
        }),
    ),
    option(
        "trash",
        "Keep replaced and deleted entries, in a new directory in DIR [default: TARGET/.ferry-trash]",
        Optional("DIR", "", |d, text| {
            d.trash = Some(if text.is_empty() { None } else { Some(PathBuf::from(text)) });
            Ok(())
        }),
    ),
    option(
        "max-delete",
        "Delete nothing if more than N entries would go; `any` sets no limit [default: the larger of 1,000 and half of \
         TARGET]",
        Value("N", max_delete),
    ),
    option("allow-empty", "Delete even if SOURCE is empty", Switch(|d| d.allows_empty = true)),
    option(
        "exclude",
        "Leave out entries that match PATTERN (as in gitignore(5), relative to SOURCE); the last match decides",
        Value("PATTERN", |d, text| selection::exclude(&mut d.choice, text)),
    ),
    option(
        "include",
        "Do not leave out entries that match PATTERN",
        Value("PATTERN", |d, text| selection::include(&mut d.choice, text)),
    ),
    option(
        "exclude-from",
        "Leave out by the patterns in FILE, one a line",
        Value("FILE", |d, text| selection::exclude_from(&mut d.choice, text)),
    ),
    option(
        "gitignore",
        "Leave out what .gitignore files of SOURCE exclude",
        Switch(|d| d.choice.by("--gitignore").gitignore = true),
    ),
    option(
        "files-from",
        "Let only the names in FILE take part (`-`: standard input), one a line, relative to SOURCE; with a slash at its end, a \
         directory with all that is in it",
        Value("FILE", |d, text| {
            d.choice.by("--files-from");
            set(&mut d.files_from, text)
        }),
    ),
    with_letter(
        "0",
        "null",
        "Names of --files-from end with a NUL byte, not with the line",
        Switch(|d| d.null = true),
    ),
    option(
        "min-size",
        "Leave out files of SOURCE that are smaller than SIZE bytes (or with K, M or G)",
        Value("SIZE", |d, text| selection::min_size(&mut d.choice, text)),
    ),
    option(
        "max-size",
        "Leave out files of SOURCE that are larger than SIZE bytes (or with K, M or G)",
        Value("SIZE", |d, text| selection::max_size(&mut d.choice, text)),
    ),
    option(
        "newer-than",
        "Leave out files of SOURCE that were not modified since TIME (2026-01-31, 2026-01-31T18:00:00Z or 36h)",
        Value("TIME", |d, text| selection::newer_than(&mut d.choice, text)),
    ),
    with_letter(
        "x",
        "one-file-system",
        "Stay on the filesystem of SOURCE",
        Switch(|d| d.choice.by("--one-file-system").one_file_system = true),
    ),
    option(
        "delete-excluded",
        "Delete entries of TARGET that a pattern leaves out, too",
        Switch(|d| d.choice.selection.deletes_excluded = true),
    ),
    option(
        "explain",
        "Print each entry that is left out, and the pattern or option that it is left out by",
        Switch(|d| d.explain = true),
    ),
    option(
        "events",
        "Write what happens as lines of JSON to FILE [default: -, standard output]",
        Optional("FILE", "", |d, text| {
            d.events = Some(Place::parse(text));
            Ok(())
        }),
    ),
    option(
        "bwlimit",
        "Write at most RATE bytes a second (or with K, M or G)",
        Value("RATE", |d, text| {
            d.bandwidth = Some(rate("--bwlimit", text)?);
            Ok(())
        }),
    ),
    option(
        "max-load",
        "Yield to other programs: run with the lowest priorities, and pause while others wait for I/O for more than \
         PERCENT of the time (1 to 100)",
        Value("PERCENT", |d, text| {
            d.max_load = Some(percentage("--max-load", text)?);
            Ok(())
        }),
    ),
    option(
        "retries",
        "Run again up to N times after failures that may pass: EAGAIN, ESTALE, ETIMEDOUT, a change meanwhile, EIO once",
        Value("N", |d, text| {
            d.retries = retries(text)?;
            Ok(())
        }),
    ),
    option(
        "time-limit",
        "Stop after DURATION (90s, 30m or 8h), and end with status 124; the same command continues",
        Value("DURATION", |d, text| {
            d.time_limit = Some(duration("--time-limit", text)?);
            Ok(())
        }),
    ),
    option(
        "progress",
        "Show progress: auto (on a terminal, after half a second), always or never",
        Optional("WHEN", "always", |d, text| {
            d.progress = choice("--progress", text, &When::NAMES)?;
            Ok(())
        }),
    ),
    option(
        "backend",
        "Use io_uring, or only plain system calls: auto, uring or posix",
        Value("BACKEND", |d, text| {
            d.backend = choice("--backend", text, &BACKENDS)?;
            Ok(())
        }),
    ),
    option(
        "workers",
        "Limit the number of workers [default: the available processors]",
        Value("N", |d, text| {
            d.workers = Some(number("--workers", text)?);
            Ok(())
        }),
    ),
    option("help", "Print this help", Print(Text::Help)),
    option("version", "Print the version", Print(Text::Version)),
];

const fn with_letter(
    letters: &'static str,
    long: &'static str,
    help: &'static str,
    effect: Effect<Draft>,
) -> Definition<Draft> {
    Definition { letters, long, help, effect, own: false }
}

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one option")]
pub(crate) struct Draft {
    dry_run: bool,
    verbose: bool,
    plan: Option<PathBuf>,
    apply: Option<PathBuf>,
    undo: Option<PathBuf>,
    checksum: bool,
    size_only: bool,
    newer: bool,
    in_place: bool,
    fsync: bool,
    verify: bool,
    manifest: Option<PathBuf>,
    hash: Option<Algorithm>,
    deletion: Option<Deletion>,
    trash: Option<Option<PathBuf>>,
    max_delete: Option<MaxDelete>,
    allows_empty: bool,
    choice: selection::Choice,
    files_from: Option<PathBuf>,
    null: bool,
    explain: bool,
    events: Option<Place>,
    bandwidth: Option<NonZeroU64>,
    max_load: Option<NonZeroU8>,
    time_limit: Option<Duration>,
    retries: u32,
    progress: When,
    backend: Backend,
    workers: Option<NonZeroUsize>,
}

/// A request of the user.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) task: Task,
    pub(crate) acting: Acting,
    /// Further attempts after failures that may pass.
    pub(crate) retries: u32,
    /// Percentage of the time in which others may wait for I/O before the run pauses.
    pub(crate) max_load: Option<NonZeroU8>,
    /// Set if each action is printed.
    pub(crate) verbose: bool,
    /// Set if each entry that takes no part is printed.
    pub(crate) explain: bool,
    pub(crate) events: Option<Place>,
    pub(crate) manifest: Option<Wanted>,
    pub(crate) progress: When,
    pub(crate) io: ferry_io::Options,
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
    fn finish(self, operands: Vec<OsString>) -> Result<Request, Usage> {
        let io = ferry_io::Options {
            backend: self.backend,
            ..self.workers.map_or_else(ferry_io::Options::default, ferry_io::Options::with_workers)
        };
        io.check().map_err(|error| Usage::plain(error.to_string()))?;
        let disposal = self.disposal()?;
        let Self { in_place, fsync, verify, bandwidth, max_load, time_limit, retries, .. } = self;
        let acting = Acting { in_place, fsync, verify, bandwidth, time_limit, disposal, is_part: false };
        let (verbose, explain, progress) = (self.verbose || self.dry_run, self.explain, self.progress);
        let prints = [(self.verbose, "--verbose"), (self.dry_run, "--dry-run"), (self.explain, "--explain")];
        Place::refuse_beside(self.events.as_ref(), &prints)?;
        let events = self.events.clone();
        let manifest = Wanted::of(self.manifest.clone(), self.hash)?;
        let task = if let Some(trash) = self.undo.clone() {
            self.refuse_beside("--undo", &self.acts())?;
            Task::Undo(trash.clone(), target_of_trash(&trash, operands)?)
        } else if let Some(plan) = self.apply.clone() {
            let others = [(self.retries > 0, "--retries"), (self.manifest.is_some(), "--manifest")];
            self.refuse_beside("--apply", &others)?;
            if let Some(more) = operands.first() {
                return Err(Usage::with_hint(format!(
                    "extra operand {}: the plan names both trees",
                    quote(more)
                )));
            }
            Task::Apply(plan)
        } else {
            let (source, target) = two(operands)?;
            self.refuse_without_delete()?;
            if self.null && self.files_from.is_none() {
                return Err(Usage::with_hint("--null needs --files-from"));
            }
            let output = self.output()?;
            let request = ferry_sync::Request {
                source,
                target,
                comparison: self.comparison()?,
                keeps_newer: self.newer,
                deletes: self.deletion.is_some(),
                allows_empty: self.allows_empty,
                max_delete: self.max_delete.unwrap_or_default(),
                selection: selection::finish(&self.choice)?,
                list: None,
                each_entry: self.events.is_some(),
                acting: acting.clone(),
            };
            let end = if self.null { 0 } else { b'\n' };
            Task::Sync(Box::new(request), output, self.files_from.map(|path| FilesFrom { path, end }))
        };
        Ok(Request { task, acting, retries, max_load, verbose, explain, events, manifest, progress, io })
    }

    fn output(&self) -> Result<Output, Usage> {
        match (&self.plan, self.dry_run) {
            (Some(_), true) => Err(Usage::with_hint("--plan changes nothing anyway; it excludes --dry-run")),
            (Some(file), false) => {
                // `--apply` decides about these. Without --trash, entries of that folder would be planned.
                let acts = self.acts().into_iter().filter(|(_, name)| *name != "--trash");
                refuse_given("--plan", acts.chain([(self.deletion == Some(Deletion::Now), "--delete=now")]))?;
                Ok(Output::Plan(file.clone()))
            }
            (None, true) => {
                let others = [(self.retries > 0, "--retries"), (self.manifest.is_some(), "--manifest")];
                refuse_given("--dry-run", others)?;
                Ok(Output::Show)
            }
            (None, false) => Ok(Output::Perform),
        }
    }

    fn comparison(&self) -> Result<Comparison, Usage> {
        match (self.checksum, self.size_only) {
            (true, true) => Err(Usage::with_hint("--checksum and --size-only exclude each other")),
            (true, false) => Ok(Comparison::Content),
            (false, true) => Ok(Comparison::Size),
            (false, false) => Ok(Comparison::SizeAndTime),
        }
    }

    fn disposal(&self) -> Result<Disposal, Usage> {
        match (self.deletion, &self.trash) {
            (Some(Deletion::Now), Some(_)) => {
                Err(Usage::with_hint("--delete=now and --trash exclude each other"))
            }
            (_, Some(folder)) => Ok(Disposal::Trash(folder.clone())),
            (Some(Deletion::Trash), None) => Ok(Disposal::Trash(None)),
            // A plan with deletions is asked for by name when it is applied, too.
            (None, None) if self.apply.is_some() => Ok(Disposal::Trash(None)),
            (Some(Deletion::Now), None) | (None, None) => Ok(Disposal::Remove),
        }
    }

    /// Options that change how actions are performed.
    fn acts(&self) -> [(bool, &'static str); 8] {
        [
            (self.in_place, "--inplace"),
            (self.fsync, "--fsync"),
            (self.verify, "--verify"),
            (self.manifest.is_some(), "--manifest"),
            (self.bandwidth.is_some(), "--bwlimit"),
            (self.time_limit.is_some(), "--time-limit"),
            (self.retries > 0, "--retries"),
            (self.trash.is_some(), "--trash"),
        ]
    }

    /// Refuses limits of deletions where nothing is deleted.
    fn refuse_without_delete(&self) -> Result<(), Usage> {
        let limits = [
            (self.max_delete.is_some(), "--max-delete"),
            (self.allows_empty, "--allow-empty"),
            (self.choice.selection.deletes_excluded, "--delete-excluded"),
        ];
        match limits.iter().find(|(is_given, _)| *is_given && self.deletion.is_none()) {
            Some((_, name)) => Err(Usage::with_hint(format!("{name} needs --delete"))),
            None => Ok(()),
        }
    }

    /// Refuses options that decide something, where everything is decided already, and `others`.
    fn refuse_beside(&self, option: &str, others: &[(bool, &'static str)]) -> Result<(), Usage> {
        let decides = [
            (self.dry_run, "--dry-run"),
            (self.plan.is_some(), "--plan"),
            (self.checksum, "--checksum"),
            (self.size_only, "--size-only"),
            (self.newer, "--newer"),
            (self.apply.is_some() && option != "--apply", "--apply"),
            (self.allows_empty, "--allow-empty"),
            (self.max_delete.is_some(), "--max-delete"),
            // A plan that is applied deletes anyway; `now` says how.
            (self.deletion.is_some() && option != "--apply", "--delete"),
            (self.deletion == Some(Deletion::Trash), "--delete"),
            (self.choice.first.is_some(), self.choice.first.unwrap_or_default()),
            (self.choice.selection.deletes_excluded, "--delete-excluded"),
            (self.null, "--null"),
            (self.explain, "--explain"),
        ];
        refuse_given(option, decides.into_iter().chain(others.iter().copied()))
    }
}

/// Refuses the first of some options that is given beside another.
fn refuse_given(option: &str, others: impl IntoIterator<Item = (bool, &'static str)>) -> Result<(), Usage> {
    match others.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => Err(Usage::with_hint(format!("{option} and {name} exclude each other"))),
        None => Ok(()),
    }
}

/// Returns the operand, or the target that a trash in its usual place belongs to.
fn target_of_trash(trash: &Path, operands: Vec<OsString>) -> Result<PathBuf, Usage> {
    let mut operands = operands.into_iter().map(PathBuf::from);
    match (operands.next(), operands.next()) {
        (Some(target), None) => Ok(target),
        (_, Some(more)) => Err(Usage::with_hint(format!("extra operand {}", quote(&more)))),
        (None, None) => ferry_sync::target_of(trash).ok_or_else(|| {
            let text = format!("{} is not in a directory .ferry-trash: name TARGET, too", quote(trash));
            Usage::with_hint(text)
        }),
    }
}

fn two(operands: Vec<OsString>) -> Result<(PathBuf, PathBuf), Usage> {
    let mut operands = operands.into_iter().map(PathBuf::from);
    match (operands.next(), operands.next(), operands.next()) {
        (Some(source), Some(target), None) => Ok((source, target)),
        (None, ..) => Err(Usage::with_hint("missing operand")),
        (Some(source), None, _) => Err(Usage::with_hint(format!("missing operand after {}", quote(&source)))),
        (_, _, Some(more)) => Err(Usage::with_hint(format!("extra operand {}", quote(&more)))),
    }
}

fn set(place: &mut Option<PathBuf>, text: &OsStr) -> Result<(), Usage> {
    if text.is_empty() {
        return Err(Usage::with_hint("a file's name is empty"));
    }
    *place = Some(text.into());
    Ok(())
}

fn retries(text: &OsStr) -> Result<u32, Usage> {
    let found = text.to_str().and_then(|word| word.parse().ok());
    found.ok_or_else(|| Usage::with_hint(format!("invalid number {} for '--retries'", quote(text))))
}

fn max_delete(draft: &mut Draft, text: &OsStr) -> Result<(), Usage> {
    let limit = if text == "any" { MaxDelete::Any } else { MaxDelete::Number(number("--max-delete", text)?) };
    draft.max_delete = Some(limit);
    Ok(())
}

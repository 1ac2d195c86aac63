//! Runs for a program that ferry is built into: with the events of `--events`, and without output but for [`verify_by`].
//!
//! They call the functions that the commands call. [`Host::io`] decides about signals ([`ferry_io::Options::embedded`]).

mod copies;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ferry_copy::{Failure, Item, Observer, Summary};
use ferry_sync::plan::{Action, Verb};
use ferry_sync::{Acting, Disposal, MaxDelete, Request, Selection, Surroundings, Totals};
use ferry_tree::compare;

use crate::arguments::{CommandError, Parsed, Usage};
use crate::cp::events::Announcing;
use crate::events::{Events, Ticker};
use crate::output::describe;
use crate::progress::When;
use crate::quote::quote;
use crate::sync::options::{Output, Task};
use crate::{cli, complain, cp, print, sync, verify};

use self::copies::WORDING;
pub use self::copies::{
    CpCopies, CpSettings, NoCopy, Stats, Way, check_recording, copied_line, cp_copies, cp_settings,
    explained_line, failure_line, open_errors, removed_line, unfinished_message, ways_table, write_recording,
};

/// Parts of a run that its program provides.
pub struct Host {
    /// Options of the runtime.
    pub io: ferry_io::Options,
    /// Counters, which the program may read at any time.
    pub progress: Arc<ferry_copy::Progress>,
    /// Receiver of failures.
    pub observer: Arc<dyn Observer>,
    /// Receiver of the events, a line of JSON each (`docs/events.schema.json`).
    pub write: Box<dyn Write + Send>,
    /// Set by the program before it stops the run.
    pub cancelled: Arc<AtomicBool>,
}

/// Returns a failure in the words of `ferry cp`.
#[must_use]
pub fn message(failure: &Failure) -> String {
    WORDING.failure(failure)
}

/// Copies one operand, as `ferry cp` does. Each copied entry is an event only with [`ferry_copy::Options::verbose`].
///
/// # Errors
/// The reason why nothing was begun.
pub fn copy(item: Item, options: &ferry_copy::Options, host: Host) -> Result<Summary, String> {
    let Host { io, progress, observer, write, .. } = host;
    let events = Arc::new(cp::events::begin_in(write, std::slice::from_ref(&item), WORDING));
    let ticker = ticker(&events, &progress)?;
    let observer = Arc::new(Announcing { messages: observer, events: Arc::clone(&events), verbose: false });
    let paths = ferry_io::Paths::new();
    let summary = ferry_copy::run_from(paths, vec![item], options, &io, progress, observer);
    drop(ticker);
    let summary = summary.map_err(|error| error.to_string())?;
    let has_failed = summary.failed > 0 || summary.out_of_space || summary.lost.is_some();
    let ended = cp::events::end(&events, &summary, summary.failed, has_failed);
    ended.map_err(|error| cannot_write(&error))?;
    Ok(summary)
}

/// Makes a target equal to a source, as `ferry sync` does.
///
/// # Errors
/// The reason why nothing was begun, or why the run could not go on.
pub fn sync(request: &Request, host: Host) -> Result<Totals, String> {
    make_equal(request, &Output::Perform, host)
}

/// Plans as `ferry sync --dry-run` does; with a file, as `ferry sync --plan` does.
///
/// # Errors
/// As [`sync`]; also if the file can't be written.
pub fn plan(request: &Request, file: Option<&Path>, host: Host) -> Result<Totals, String> {
    make_equal(request, &file.map_or(Output::Show, |file| Output::Plan(file.to_owned())), host)
}

fn make_equal(request: &Request, to: &Output, host: Host) -> Result<Totals, String> {
    with_events("sync", Some([&request.source, &request.target]), host, |surroundings| {
        sync::make_equal(request, to, surroundings)?.map_err(|error| sync::refusal(&error))
    })
}

/// Performs a plan, as `ferry sync --apply` does.
///
/// # Errors
/// As [`sync`]; also if the plan can't be read.
pub fn apply(plan: &Path, acting: &Acting, host: Host) -> Result<Totals, String> {
    with_events("apply", None, host, |surroundings| {
        let file =
            File::open(plan).map_err(|error| format!("cannot open {}: {}", quote(plan), describe(&error)))?;
        ferry_sync::apply(&file, acting, surroundings).map_err(|error| sync::refusal(&error))
    })
}

/// Performs a task of `ferry sync`, and writes its events.
fn with_events(
    task: &'static str,
    trees: Option<[&PathBuf; 2]>,
    host: Host,
    perform: impl FnOnce(&Surroundings<'_>) -> Result<Totals, String>,
) -> Result<Totals, String> {
    let Host { io, progress, observer, write, cancelled } = host;
    let events = Arc::new(sync::events::begin_in(write, task, trees, WORDING));
    let ticker = ticker(&events, &progress)?;
    let tell = |action: &Action| {
        if action.verb != Verb::Keep {
            sync::events::action(&events, action);
        }
    };
    let observer = Arc::new(Announcing { messages: observer, events: Arc::clone(&events), verbose: false });
    let (explain, manifest, gate) = (None, None, None);
    let surroundings = Surroundings { io: &io, progress, observer, tell: &tell, explain, manifest, gate };
    let performed = perform(&surroundings);
    drop(ticker);
    let mut totals = performed?;
    if totals.interrupted && cancelled.load(Ordering::SeqCst) {
        // Without a signal it would count as the end of the time limit.
        totals.io.signal.get_or_insert(signal_hook::consts::SIGINT);
    }
    let has_failed =
        totals.failed > 0 || totals.lost.is_some() || totals.out_of_space || totals.too_many.is_some();
    sync::events::end(&events, &totals, None, has_failed).map_err(|error| cannot_write(&error))?;
    Ok(totals)
}

fn ticker(events: &Arc<Events>, progress: &Arc<ferry_copy::Progress>) -> Result<Ticker, String> {
    Ticker::start(Arc::clone(events), Arc::clone(progress))
        .map_err(|error| format!("cannot start a thread: {}", describe(&error)))
}

fn cannot_write(error: &std::io::Error) -> String {
    format!("cannot write events: {}", describe(error))
}

/// Compares two trees as `ferry verify --json` does, and writes its lines.
///
/// # Errors
/// A root that can't be read.
pub fn verify(
    (source, target): (&Path, &Path),
    options: &compare::Options,
    counters: &compare::Progress,
    write: Box<dyn Write + Send>,
) -> Result<compare::Summary, String> {
    verify::write_lines((source, target), options, counters, &Mutex::new(write))
}

/// Runs `ferry verify` with the arguments after its name. `compare` compares the trees, and returns a message if it can't.
///
/// Returns the exit code. A signal stops the comparison, as [`compare::Progress::is_stopped`] shows, and not the process.
#[must_use]
pub fn verify_by(
    arguments: &[OsString],
    compare: impl FnOnce(
        (&Path, &Path),
        &compare::Options,
        &compare::Progress,
        &compare::Observer<'_>,
    ) -> Result<compare::Summary, String>,
) -> ExitCode {
    let wrong =
        |usage| complain(&CommandError { program: verify::MANUAL.name, usage, code: cli::WRONG_USE }, &[]);
    let request = match verify::parse(arguments) {
        Ok(Parsed::Run(request)) => request,
        Ok(Parsed::Print(text, command)) => return print(text, *command),
        Err(usage) => return wrong(usage),
    };
    let verify::Task::Trees(source, target) = &request.task else {
        return wrong(Usage::with_hint("a manifest can't be compared by many processes".to_owned()));
    };
    let by = |request: &verify::Request, counters: &compare::Progress, tell: &compare::Observer<'_>| {
        compare((source, target), &request.options, counters, tell)
    };
    // The program ends by itself after a signal.
    verify::compare(&request, by).0
}

/// Returns the message about a tree that can't be compared.
#[must_use]
pub fn unread(error: &ferry_tree::Error) -> String {
    verify::unread(error)
}

/// The copying that `ferry sync` does, for a program that does a part of it before: the entries that the target lacks.
#[derive(Debug, PartialEq, Eq)]
pub struct SyncCopies {
    /// The source, without links in its path.
    pub source: PathBuf,
    /// The target, without links in its path.
    pub target: PathBuf,
    /// Set if everything is made durable.
    pub fsync: bool,
    /// Set by `--progress` and `--progress=always`.
    pub progress: bool,
    /// Set if the number of deletions is bound by that of the target's entries. Those that were copied before would count.
    pub counts_entries: bool,
}

/// Returns the copying that `ferry sync` with the arguments after its name does.
///
/// # Errors
/// The option by which `ferry sync` alone has to do all of it, or `None` if it will refuse the arguments or the trees, or print
/// its help.
pub fn sync_copies(arguments: &[OsString]) -> Result<SyncCopies, Option<&'static str>> {
    let Ok(Parsed::Run(request)) = sync::parse(arguments) else { return Err(None) };
    if !sync::may_begin_manifest(&request) {
        return Err(None);
    }
    let sync::Request { task, acting, io, max_load, verbose, explain, events, progress, .. } = *request;
    let (sync, output, list) = match task {
        Task::Sync(sync, output, list) => (sync, output, list),
        Task::Apply(_) => return Err(Some("--apply")),
        Task::Undo(..) => return Err(Some("--undo")),
    };
    let alone = [
        (output == Output::Show, "--dry-run"),
        (matches!(output, Output::Plan(_)), "--plan"),
        (list.is_some(), "--files-from"),
        (sync.selection != Selection::default(), "a choice of entries"),
        // A file that is incomplete after a kill would be newer than its source.
        (sync.keeps_newer, "--newer"),
        // It may be in one of the trees.
        (matches!(acting.disposal, Disposal::Trash(Some(_))), "--trash=DIR"),
        (acting.bandwidth.is_some(), "--bwlimit"),
        (acting.time_limit.is_some(), "--time-limit"),
        (acting.verify, "--verify"),
        (max_load.is_some(), "--max-load"),
        (verbose, "--verbose"),
        (explain, "--explain"),
        (events.is_some(), "--events"),
    ];
    if let Some((_, option)) = alone.iter().find(|(is_given, _)| *is_given) {
        return Err(Some(option));
    }
    ferry_sync::check(&sync, &io).map_err(|_| None)?;
    let counts_entries = sync.deletes && sync.max_delete == MaxDelete::Half;
    let (Ok(source), Some(target)) = (sync.source.canonicalize(), without_links(&sync.target)) else {
        return Err(None);
    };
    let progress = progress == When::Always;
    Ok(SyncCopies { source, target, fsync: acting.fsync, progress, counts_entries })
}

/// Totals of `ferry sync`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncDone {
    /// Entries that were made.
    pub created: u64,
    /// Entries that were replaced.
    pub replaced: u64,
    /// Entries of which only attributes were set.
    pub attributes: u64,
    /// Entries that were taken away.
    pub deleted: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Entries that failed.
    pub failed: u64,
}

/// Runs `ferry sync` with the arguments after its name. Returns its totals, unless it was refused, and the exit code.
#[must_use]
pub fn sync_counted(arguments: &[OsString]) -> (Option<SyncDone>, ExitCode) {
    let program = sync::MANUAL.name;
    let request = match sync::parse(arguments) {
        Ok(Parsed::Run(request)) => request,
        Ok(Parsed::Print(text, command)) => return (None, print(text, *command)),
        Err(usage) => return (None, complain(&CommandError { program, usage, code: cli::WRONG_USE }, &[])),
    };
    let mut done = None;
    let ran = sync::run_noting(&request, |totals| {
        let Totals { done: ferry_sync::Done { created, replaced, attributes, deleted }, .. } = totals.clone();
        let (bytes, failed) = (totals.bytes, totals.failed);
        done = Some(SyncDone { created, replaced, attributes, deleted, bytes, failed });
    });
    (done, ran.unwrap_or_else(|error| complain(&error, &[])))
}

/// Returns a path without links, of which the last name may be missing.
fn without_links(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        if path.symlink_metadata().is_ok() {
            return None;
        }
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(above.canonicalize().ok()?.join(path.file_name()?))
    })
}

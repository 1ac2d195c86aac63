//! `ferry cp`: runs the copier for a request and turns its summary into messages and an exit code.

mod answer;
mod attributes;
mod backups;
mod destination;
pub(crate) mod events;
mod explained;
mod failures;
mod messages;
mod options;
mod path;
mod profile;
mod request;
mod stats;
mod trace;
mod ways;
mod wording;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_copy::{Dereference, Existing, Item, Make, Observer, Progress, Summary};
use ferry_io::Tracing;
use ferry_sync::manifest::Noting;

pub(crate) use self::backups::words as backup_words;
pub(crate) use self::destination::{Plan as Destination, plan as destination};
use self::events::Announcing;
pub(crate) use self::explained::table as ways_table;
pub(crate) use self::failures::{Failures, line as failure_line, open as open_record};
pub(crate) use self::messages::Messages;
pub(crate) use self::options::{BACKENDS, MANUAL, OPTIONS, parse};
pub(crate) use self::profile::threads as profile_threads;
pub(crate) use self::profile::{Note, ProfileUse, apply as apply_profile};
pub(crate) use self::request::Request;
pub(crate) use self::stats::StatsFormat;
pub(crate) use self::trace::file as recording_file;
pub(crate) use self::wording::Wording;
use crate::arguments::{CommandError, Usage};
use crate::complete_file::is_in;
use crate::events::{Events, Place, Ticker};
use crate::layout::wrapped;
use crate::manifest::{self, Collected, Wanted};
use crate::output::{Output, columns, describe};
use crate::progress::census::{self, Census, Stays};
use crate::progress::ending::Cause;
use crate::progress::{All, Counts, Indicator, When};
use crate::quote::quote;
use crate::signals;

/// Copies, and reports the result.
///
/// # Errors
/// A problem found before anything is copied.
pub(crate) fn run(program: &'static str, request: Request) -> Result<ExitCode, CommandError> {
    let misuse = |usage| CommandError { program, usage, code: 1 };
    let Request { operands, mut options, mut io, workers, profile, .. } = request;
    let Request { progress, stats, errors, trace, events: place, manifest, warning, .. } = request;
    let (mut named, is_exact) = (operands.paths.clone(), operands.no_target_directory);
    let Destination { items, refused, base_is_implied, paths, root } =
        destination(operands, &mut options).map_err(misuse)?;
    named.extend(items.iter().map(events::target));
    let way_on = way_on(&items, &options, is_exact, &root);
    if let Some(file) = trace::file(trace.as_deref(), std::env::var_os("FERRY_TRACE")) {
        // Check before the file of failures is emptied: it may be this file.
        let written: Vec<_> = named.iter().chain(&errors).chain(file_of(place.as_ref())).cloned().collect();
        trace::check(&file, &written).map_err(misuse)?;
        io.trace = Some(Tracing::to(file));
    }
    let several = options.recursive || items.len() > 1;
    io.workers = workers.unwrap_or_else(|| default_workers(several));
    let note = match profile {
        ProfileUse::Auto => profile::apply(&paths, &items, options.recursive, &mut io),
        ProfileUse::None => None,
    };
    let wording = Wording { make: options.make, base_is_implied };
    let recorded = [errors.as_ref(), file_of(place.as_ref()), trace.as_ref()];
    let manifest = begin_manifest(manifest.as_ref(), &recorded, &items, wording).map_err(misuse)?;
    let failures = Failures::new(errors.as_deref(), &named)
        .map_err(|error| misuse(no_record("failures", errors.as_deref(), &error)))?;

    let output = Arc::new(Output::new());
    if let Some(warning) = warning {
        output.error(&format!("{program}: {warning}"));
    }
    let known = match note {
        // As `cp`, print nothing that GNU cp would not print.
        Some(Note::Warning(text)) if program != "cp" => {
            output.error(&format!("{program}: warning: {text}"));
            None
        }
        Some(Note::Warning(text) | Note::Explained(text)) => Some(text),
        None => None,
    };
    let messages = Messages::new(program, Arc::clone(&output), wording, failures);
    let messages = Arc::new(messages.explaining_each(options.verbose));
    named.extend(errors);
    let events = begin_events(place.as_ref(), &named, &items, wording).map_err(misuse)?;
    let observer = observer(&messages, events.as_ref(), &mut options);
    let observer = noting(observer, manifest.as_ref(), root);
    refused.iter().for_each(|failure| observer.failed(failure));

    let counters = Arc::new(Progress::default());
    let ticker = events.clone().map(|events| Ticker::start(events, Arc::clone(&counters))).transpose();
    let ticker = ticker.map_err(|error| misuse(Usage::plain(format!("cannot start a thread: {error}"))))?;
    let current = current(Arc::clone(&counters), &items, &options);
    // As `cp`, show nothing that GNU cp would not show.
    let progress = progress.unwrap_or(if program == "cp" { When::Never } else { When::Auto });
    let indicator = Indicator::start(progress, current, Arc::clone(&output));
    let summary = if items.is_empty() {
        Ok(Summary::default())
    } else {
        ferry_copy::run_from(paths, items, &options, &io, Arc::clone(&counters), observer)
    };
    let shown = indicator.stop();
    drop(ticker);
    let summary = summary.map_err(|error| misuse(Usage::plain(error.to_string())))?;
    let (output, messages, events) = (&*output, &*messages, events.as_deref());
    if options.explain {
        explain(output, messages, known.as_deref(), &summary);
    }
    let reached = shown.unwrap_or_else(|| counts(&counters, None, false));
    let unwritten = manifest::end(manifest, !summary.is_cut_short());
    let (summary, shown) = (&summary, shown.is_some());
    let end =
        End { program, output, messages, events, summary, reached, unwritten, stats, shown, several, way_on };
    Ok(end.report())
}

/// Returns the options that the same command lacks to continue after an interruption; `None` if there are none. With `-u` it
/// passes over what is complete. A new copy of a folder needs `-T` as well: now that the folder exists, the next copy would
/// go into it.
fn way_on(
    items: &[Item],
    options: &ferry_copy::Options,
    is_exact: bool,
    root: &Path,
) -> Option<&'static str> {
    if !moves_bytes(options) {
        return None;
    }
    let passes_over = options.update || options.existing == Existing::Keep;
    let goes_into =
        options.recursive && !is_exact && items.first().is_some_and(|it| events::target(it) == root);
    Some(match (passes_over, goes_into) {
        (true, false) => "",
        (true, true) => "-T",
        (false, false) => "-u",
        (false, true) => "-uT",
    })
}

/// Prints what `--explain` asks for: the ways of files as a table, then where operations ran and why.
fn explain(output: &Output, messages: &Messages, profile: Option<&str>, summary: &Summary) {
    let columns = columns();
    if let Some(table) = messages.ways(columns) {
        output.line(&table);
    }
    let print = |sentence: &str| output.line(&wrapped("", sentence, 2, columns));
    profile.into_iter().for_each(print);
    summary.io.explain().iter().for_each(|sentence| print(sentence));
    summary.ways.iter().for_each(|tried| print(&ways::explain(tried)));
    print(&format!("backend {}: {}", summary.io.backend, summary.io.backend_reason));
}

/// Returns the number of workers: for `several` files one for each processor that affinity and the cgroup's quota permit.
/// The quota is not read for a single file, which is not shared among workers.
fn default_workers(several: bool) -> NonZeroUsize {
    let permitted = several.then(|| std::thread::available_parallelism().ok()).flatten();
    permitted.unwrap_or(NonZeroUsize::MIN)
}

fn file_of(place: Option<&Place>) -> Option<&PathBuf> {
    match place {
        Some(Place::File(path)) => Some(path),
        Some(Place::StandardOutput) | None => None,
    }
}

/// Begins the events that `--events` asks for.
fn begin_events(
    place: Option<&Place>,
    named: &[PathBuf],
    items: &[Item],
    wording: Wording,
) -> Result<Option<Arc<Events>>, Usage> {
    let Some(place) = place else { return Ok(None) };
    let path = file_of(Some(place));
    let trees = items.iter().flat_map(|item| [item.source.clone(), events::target(item)]);
    if let Some(path) = path
        && let Some(tree) = trees.into_iter().find(|tree| is_in(path, tree))
    {
        let (path, tree) = (quote(path), quote(wording.target(&tree)));
        return Err(Usage::plain(format!("cannot write events to {path}: the copy reads or writes {tree}")));
    }
    events::begin(place, named, items, wording)
        .map(|events| Some(Arc::new(events)))
        .map_err(|error| no_record("events", path.map(PathBuf::as_path), &error))
}

/// Begins the manifest that `--manifest` asks for.
fn begin_manifest(
    wanted: Option<&Wanted>,
    recorded: &[Option<&PathBuf>],
    items: &[Item],
    wording: Wording,
) -> Result<Option<Collected>, Usage> {
    let Some(wanted) = wanted else { return Ok(None) };
    let path = &wanted.path;
    let trees = items.iter().flat_map(|item| [item.source.clone(), events::target(item)]);
    let mut others = recorded.iter().flatten().map(PathBuf::from).chain(trees);
    if let Some(other) = others.find(|other| other == path || is_in(path, other)) {
        let (path, other) = (quote(path), quote(wording.target(&other)));
        return Err(Usage::plain(format!(
            "cannot write a manifest to {path}: the copy reads or writes {other}"
        )));
    }
    Collected::begin(wanted).map(Some).map_err(|error| no_record("a manifest", Some(path), &error))
}

/// Has hashes and failures noted in a manifest, if there is one.
fn noting(observer: Arc<dyn Observer>, manifest: Option<&Collected>, root: PathBuf) -> Arc<dyn Observer> {
    match manifest {
        Some(Collected { manifest, .. }) => Arc::new(Noting::new(observer, Arc::clone(manifest), root)),
        None => observer,
    }
}

/// Returns the receiver of the copy's reports: with events, one that writes them, too.
fn observer(
    messages: &Arc<Messages>,
    events: Option<&Arc<Events>>,
    options: &mut ferry_copy::Options,
) -> Arc<dyn Observer> {
    let messages: Arc<dyn Observer> = Arc::<Messages>::clone(messages);
    let Some(events) = events.cloned() else { return messages };
    let verbose = std::mem::replace(&mut options.verbose, true);
    Arc::new(Announcing { messages, events, verbose })
}

/// Explains why a file of `what` can't be written.
pub(crate) fn no_record(what: &str, path: Option<&Path>, error: &std::io::Error) -> Usage {
    let path = quote(path.unwrap_or(Path::new("")));
    if error.kind() == std::io::ErrorKind::AlreadyExists {
        return Usage::plain(format!(
            "cannot write {what} to {path}: the copy reads or writes this file; choose another one"
        ));
    }
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
    Usage::plain(format!("cannot create {path}: {}", ferry_io::Cause::Errno(errno)))
}

/// Returns the count of all that is to be copied, unless the copy follows links that it meets.
fn census(items: &[Item], options: &ferry_copy::Options) -> Option<Census> {
    let root = |item: &Item| census::Root { source: item.source.clone(), target: events::target(item) };
    let plan = census::Plan {
        roots: items.iter().map(root).collect(),
        follows: options.dereference != Dereference::Never,
        sizes: moves_bytes(options),
        links: options.preserve.links,
        one_filesystem: options.one_file_system,
        stays: match options.existing {
            Existing::Keep | Existing::Refuse => Stays::Existing,
            Existing::Replace | Existing::Ask if options.update => Stays::NotOlder,
            Existing::Replace | Existing::Ask => Stays::None,
        },
        preview: None,
    };
    let is_followed = options.recursive && options.dereference == Dereference::Always;
    (!is_followed).then(|| Census::new(plan))
}

/// Returns the counts for a display of progress, whenever it is called.
fn current(
    counters: Arc<Progress>,
    items: &[Item],
    options: &ferry_copy::Options,
) -> impl Fn() -> Counts + Send + use<> {
    let (census, moves) = (census(items, options), moves_bytes(options));
    move || counts(&counters, census.as_ref(), moves)
}

fn moves_bytes(options: &ferry_copy::Options) -> bool {
    options.make == Make::Copy && !options.attributes_only
}

fn counts(progress: &Progress, census: Option<&Census>, moves_bytes: bool) -> Counts {
    // Read this first, so that the count below is final if the walk has ended.
    let is_complete = progress.walk_ended.load(Ordering::Acquire);
    let found = is_complete.then(|| All { entries: progress.entries_found.get(), ..All::default() });
    let all = census.and_then(Census::all).or(found);
    let (entries, bytes) = (progress.entries_done.get(), progress.bytes_done.get());
    Counts { entries, bytes, passed: 0, all, moves_bytes }
}

/// State for the messages at the end of a run.
struct End<'a> {
    program: &'static str,
    output: &'a Output,
    messages: &'a Messages,
    events: Option<&'a Events>,
    summary: &'a Summary,
    /// Last state of progress.
    reached: Counts,
    /// Reason why there is no manifest.
    unwritten: Option<String>,
    stats: Option<StatsFormat>,
    shown: bool,
    /// True if more than one file was requested.
    several: bool,
    /// Options with which the same command continues.
    way_on: Option<&'static str>,
}

impl End<'_> {
    fn report(&self) -> ExitCode {
        let failures = self.messages.failures();
        let columns = self.output.error_columns();
        // As `cp`, print no unrequested summary.
        if self.shown || self.stats.is_some() || self.summary.interrupted && self.program != "cp" {
            self.output.error(&stats::closing(self.summary, &self.reached, self.way_on, columns));
        } else if let Some(line) = stats::cause(self.summary).and_then(Cause::line).filter(|_| self.several) {
            self.error(line);
        }
        match self.stats {
            Some(StatsFormat::Text) => self.output.error(&stats::text(self.summary, columns)),
            Some(StatsFormat::Json) => self.output.line(&stats::json(self.summary)),
            None => {}
        }
        // As `cp`, print no failure twice, unless progress came between.
        if self.shown || self.program != "cp" {
            failures.repeat(self.program, self.output);
        }
        if let Some(recorded) = &self.summary.io.trace {
            [trace::elsewhere(recorded), trace::warning(recorded)]
                .iter()
                .flatten()
                .for_each(|warning| self.error(warning));
        }
        let is_refused = self.messages.is_refused();
        let is_ended = self.summary.out_of_space || self.summary.lost.is_some();
        let mut failed = failures.count() > 0 || self.summary.failed > 0 || is_ended || is_refused;
        if let Some(error) = failures.write_error() {
            self.error(&format!("the file of failures is incomplete: {}", describe(error)));
            failed = true;
        }
        if let Some(unwritten) = &self.unwritten {
            self.error(unwritten);
            failed = true;
        }
        let ended = self.events.map(|events| events::end(events, self.summary, failures.count(), failed));
        if let Some(Err(error)) = ended {
            self.error(&format!("cannot write events: {}", describe(&error)));
            failed = true;
        }
        if let Err(error) = self.output.finish() {
            self.error(&format!("write error: {}", describe(&error)));
            failed = true;
        }
        if self.summary.interrupted {
            return signals::end_by(self.summary.io.signal.unwrap_or(signal_hook::consts::SIGINT));
        }
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn error(&self, text: &str) {
        self.output.error(&format!("{}: {text}", self.program));
    }
}

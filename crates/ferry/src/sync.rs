//! `ferry sync`: makes a target equal to a source, and reports what was done.

pub(crate) mod events;
mod load;
pub(crate) mod options;
mod passing;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ferry_copy::{Make, Observer, Progress};
use ferry_sync::plan::{Action, Kind, Verb};
use ferry_sync::preview::Preview;
use ferry_sync::{Acting, BadList, Comparison, List, Refused, Surroundings, Totals, Use};

use crate::arguments::{CommandError, Usage};
use crate::complete_file::{CompleteFile, is_in};
use crate::cp::{Failures, Messages, Wording};
use crate::events::{Events, Place, Ticker};
use crate::layout::wrapped;
use crate::manifest::{self, Collected};
use crate::output::{Output, describe};
use crate::progress::census::{self, Census, Stays};
use crate::progress::ending::{self, Cause, Incomplete};
use crate::progress::{Counts, Indicator};
use crate::quote::quote;
use crate::signals;
use crate::units::{bytes, count, counted};
use load::Yielding;
use options::{FilesFrom, Output as To, Task};
pub(crate) use options::{MANUAL, OPTIONS, Request, parse};
use passing::Passing;

/// Exit code after `--time-limit`, as that of timeout(1).
const TIME_IS_UP: u8 = 124;

/// Performs a request, and reports the result.
///
/// # Errors
/// A problem found before anything is changed.
pub(crate) fn run(request: &Request) -> Result<ExitCode, CommandError> {
    run_noting(request, |_| {})
}

/// As [`run`], and passes the totals to `note`.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_noting(request: &Request, note: impl FnOnce(&Totals)) -> Result<ExitCode, CommandError> {
    let program = MANUAL.name;
    let refuse = |message: String| CommandError { program, usage: Usage::plain(message), code: 1 };
    let output = Arc::new(Output::new());
    // Before any thread is started: threads inherit the priorities.
    let yielding =
        request.max_load.map(|percent| Yielding::begin(percent, program, &output, request.task.places()));
    let wording = Wording { make: Make::Copy, base_is_implied: false };
    let failures = Failures::default();
    let messages = Arc::new(Messages::new(program, Arc::clone(&output), wording, failures));
    let manifest = begin_manifest(request).map_err(refuse)?;
    let events = begin_events(request, wording).map_err(refuse)?;
    let tell = |action: &Action| {
        if action.verb == Verb::Keep {
            return;
        }
        if request.verbose {
            output.line(&line(action));
        }
        if let Some(events) = &events {
            events::action(events, action);
        }
    };
    let explain = |path: &Path, is_folder: bool, why: &str| {
        let slash = if is_folder { "/" } else { "" };
        output.line(&format!("left out    {}{slash} ({why})", quote(path)));
    };
    let list = match &request.task {
        Task::Sync(_, _, Some(names)) => Some(Arc::new(read_list(names).map_err(refuse)?)),
        Task::Sync(_, _, None) | Task::Apply(_) | Task::Undo(..) => None,
    };
    let counters = Arc::new(Progress::default());
    let current = {
        let (counters, census) = (Arc::clone(&counters), census(request, list.as_ref()));
        let reads_all = reads_all(request);
        move || counts(&counters, census.as_ref(), reads_all)
    };
    let indicator = Indicator::start(request.progress, current, Arc::clone(&output));
    let ticker = events.clone().map(|events| Ticker::start(events, Arc::clone(&counters)));
    let ticker = ticker.transpose().map_err(|error| refuse(format!("cannot start a thread: {error}")))?;
    let passing = Passing::new(Arc::clone(&messages) as Arc<dyn Observer>, events.clone());
    let passing = Arc::new(passing);
    let surroundings = Surroundings {
        io: &request.io,
        progress: Arc::clone(&counters),
        observer: Arc::clone(&passing) as Arc<dyn Observer>,
        tell: &tell,
        explain: if request.explain { Some(&explain) } else { None },
        manifest: manifest.as_ref().map(|collected| Arc::clone(&collected.manifest)),
        gate: yielding.as_ref().and_then(Yielding::gate),
    };
    let done = repeat(request, &output, (&passing, &messages), |acting| {
        if let Some(collected) = &manifest {
            collected.manifest.restart();
        }
        perform(request, acting, list.clone(), &surroundings)
    });
    let reached = indicator.stop().unwrap_or_else(|| counts(&counters, None, reads_all(request)));
    drop(ticker);
    let (totals, closing) = done.map_err(refuse)?;
    note(&totals);
    let unwritten = manifest::end(manifest, !totals.is_cut_short());
    // Files that are overwritten in place are neither removed nor kept.
    let is_counted = !request.acting.in_place;
    let left = reached.bytes.saturating_sub(totals.bytes) * u64::from(is_counted);
    let kept = passing.kept().min(left);
    let incomplete = Incomplete { removed: left - kept, kept };
    let changes = closing.map(|closing| ended(&totals, (&reached, incomplete), closing(&totals)));
    let closing = Closings { changes, yielding: yielding.as_ref() };
    Ok(end(&totals, closing, unwritten.as_deref(), events.as_deref(), (&output, &messages)))
}

/// Returns the count of what takes part in a sync. Files whose content is compared or hashed are all read: then the bytes
/// of equal files are work, too.
fn census(request: &Request, list: Option<&Arc<List>>) -> Option<Census> {
    let Task::Sync(sync, ..) = &request.task else { return None };
    let preview = Preview::new(&ferry_sync::Request { list: list.cloned(), ..*sync.clone() })?;
    let stays = if reads_all(request) { Stays::None } else { Stays::Equal };
    let plan = census::Plan {
        roots: vec![census::Root { source: sync.source.clone(), target: sync.target.clone() }],
        follows: true,
        sizes: true,
        links: false,
        one_filesystem: preview.stays_on_filesystem(),
        stays,
        preview: Some(preview),
    };
    Some(Census::new(plan))
}

/// Returns true if the content of equal files is read.
fn reads_all(request: &Request) -> bool {
    let compares =
        |task: &Task| matches!(task, Task::Sync(sync, ..) if sync.comparison == Comparison::Content);
    compares(&request.task) || request.manifest.is_some()
}

fn counts(progress: &Progress, census: Option<&Census>, reads_all: bool) -> Counts {
    let passed = if reads_all { progress.bytes_passed.get() } else { 0 };
    Counts {
        entries: progress.entries_done.get(),
        bytes: progress.bytes_done.get(),
        passed,
        all: census.and_then(Census::all),
        moves_bytes: true,
    }
}

/// Begins the events that `--events` asks for.
fn begin_events(request: &Request, wording: Wording) -> Result<Option<Arc<Events>>, String> {
    let Some(place) = &request.events else { return Ok(None) };
    if let (Place::File(path), Task::Sync(sync, ..)) = (place, &request.task)
        && let Some(tree) = [&sync.source, &sync.target].into_iter().find(|tree| is_in(path, tree))
    {
        return Err(format!("{} is in {}: it would be copied or compared, too", quote(path), quote(tree)));
    }
    events::begin(place, request, wording).map(|events| Some(Arc::new(events))).map_err(|error| match place {
        Place::File(path) => cannot("create", path, &error),
        Place::StandardOutput => format!("cannot write events: {}", describe(&error)),
    })
}

/// Returns false if the file of `--manifest` can't be made. A pipe or a device is not tried: opening it may have an effect.
pub(crate) fn may_begin_manifest(request: &Request) -> bool {
    let is_special = |path: &Path| std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let is_tried = request.manifest.as_ref().is_some_and(|wanted| !is_special(&wanted.path));
    !is_tried || begin_manifest(request).is_ok()
}

/// Begins the manifest that `--manifest` asks for.
fn begin_manifest(request: &Request) -> Result<Option<Collected>, String> {
    let Some(wanted) = &request.manifest else { return Ok(None) };
    let path = &wanted.path;
    if let Task::Sync(sync, ..) = &request.task
        && let Some(tree) = [&sync.source, &sync.target].into_iter().find(|tree| is_in(path, tree))
    {
        return Err(format!("{} is in {}: it would be copied or compared, too", quote(path), quote(tree)));
    }
    if matches!(&request.events, Some(Place::File(events)) if events == path || is_in(path, events)) {
        return Err(format!("{} is the file of the events, too", quote(path)));
    }
    Collected::begin(wanted).map(Some).map_err(|error| cannot("create", path, &error))
}

/// Performs the task, and again after failures that may pass, as `--retries` asks for.
fn repeat(
    request: &Request,
    output: &Output,
    (passing, messages): (&Passing, &Messages),
    perform: impl Fn(&Acting) -> Result<(Totals, Option<Closing>), String>,
) -> Result<(Totals, Option<Closing>), String> {
    let begun = Instant::now();
    let mut acting = request.acting.clone();
    let mut earlier = Totals::default();
    let mut attempt = 0;
    loop {
        let (mut totals, closing) = perform(&acting)?;
        totals.add(&earlier);
        let has_ended = totals.is_cut_short() || totals.too_many.is_some();
        let may_pass = passing.may_pass(attempt == 0);
        let pause = passing::pause_after(attempt);
        if let Some(limit) = request.acting.time_limit {
            acting.time_limit = Some(limit.saturating_sub(begun.elapsed() + pause));
        }
        let has_time = acting.time_limit.is_none_or(|left| !left.is_zero());
        if attempt >= request.retries || has_ended || !may_pass || !has_time {
            return Ok((totals, closing));
        }
        attempt += 1;
        print_trash(&totals, output);
        output.error(&format!(
            "{}: {}; trying again in {} s ({attempt} of {})",
            MANUAL.name,
            counted(messages.failures().count(), "path failed", "paths failed"),
            pause.as_secs(),
            request.retries
        ));
        std::thread::sleep(pause);
        *messages.failures() = Failures::default();
        earlier = totals;
    }
}

fn print_trash(totals: &Totals, output: &Output) {
    if let Some(trash) = &totals.trash {
        output.error(&format!("entries that were taken away are in {}", quote(trash)));
    }
}

/// Performs the task, and returns the closing line's format.
fn perform(
    request: &Request,
    acting: &Acting,
    list: Option<Arc<List>>,
    surroundings: &Surroundings<'_>,
) -> Result<(Totals, Option<Closing>), String> {
    let (totals, closing): (_, Option<Closing>) = match &request.task {
        Task::Apply(path) => {
            let plan = File::open(path).map_err(|error| cannot("open", path, &error))?;
            (ferry_sync::apply(&plan, acting, surroundings), Some(changes))
        }
        Task::Undo(trash, target) => (ferry_sync::undo(trash, target, surroundings), Some(restored)),
        Task::Sync(sync, to, _) => {
            let sync = ferry_sync::Request { list, acting: acting.clone(), ..*sync.clone() };
            let closing: Option<Closing> = if *to == To::Perform { Some(changes) } else { None };
            (make_equal(&sync, to, surroundings)?, closing)
        }
    };
    totals.map(|totals| (totals, closing)).map_err(|error| refusal(&error))
}

/// Makes the target equal, or shows or records how.
pub(crate) fn make_equal(
    sync: &ferry_sync::Request,
    to: &To,
    surroundings: &Surroundings<'_>,
) -> Result<Result<Totals, Refused>, String> {
    let run = |to| ferry_sync::run(sync, to, surroundings);
    let path = match to {
        To::Perform => return Ok(run(Use::Perform)),
        To::Show => return Ok(run(Use::Show)),
        To::Plan(path) => path,
    };
    if let Some(tree) = [&sync.source, &sync.target].into_iter().find(|tree| is_in(path, tree)) {
        return Err(format!("{} is in {}: it would be planned, too", quote(path), quote(tree)));
    }
    let plan = CompleteFile::create(path).map_err(|error| cannot("create", path, &error))?;
    let file = plan.file().map_err(|error| cannot("write", path, &error))?;
    let totals = run(Use::Record(file));
    if totals.as_ref().is_ok_and(|totals| totals.too_many.is_none() && !totals.is_cut_short()) {
        plan.keep().map_err(|error| cannot("create", path, &error))?;
    }
    Ok(totals)
}

fn read_list(FilesFrom { path, end }: &FilesFrom) -> Result<List, String> {
    let list = if path.as_os_str() == "-" {
        List::read(io::stdin().lock(), *end)
    } else {
        let file = File::open(path).map_err(|error| cannot("open", path, &error))?;
        List::read(BufReader::new(file), *end)
    };
    list.map_err(|bad| match bad {
        BadList::Read(error) => cannot("read", path, &error),
        BadList::Keep(error) => format!("cannot use a temporary file: {}", describe(&error)),
        BadList::Name { .. } => format!("{}: {bad}", quote(path)),
    })
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {}", quote(path), describe(error))
}

/// Formats the closing line of a run.
type Closing = fn(&Totals) -> String;

/// Content of the last lines.
struct Closings<'a> {
    changes: Option<String>,
    yielding: Option<&'a Yielding>,
}

/// Warning after a run of a part of the target, which has the mark of a run that ended before the target was mounted again.
const DOUBTS: &str = "an earlier run was interrupted, and the target was mounted again since: files that did not take part \
    in this run may lack bytes; run once without patterns and --files-from";

/// Prints what is left to be said, and returns the exit code.
fn end(
    totals: &Totals,
    closing: Closings<'_>,
    unwritten: Option<&str>,
    events: Option<&Events>,
    (output, messages): (&Output, &Messages),
) -> ExitCode {
    let program = MANUAL.name;
    let error = |text: &str| output.error(&format!("{program}: {text}"));
    if let Some(line) = cause(totals).and_then(Cause::line).filter(|_| closing.changes.is_none()) {
        error(line);
    }
    if let Some((found, limit)) = totals.too_many {
        error(&format!(
            "nothing was deleted: {} would go, and at most {} may; see --max-delete",
            counted(found, "entry", "entries"),
            count(limit)
        ));
    }
    if totals.spared > 0 {
        error(&format!(
            "nothing was deleted, because something failed: {} would go; --delete moves them to the trash",
            counted(totals.spared, "entry", "entries")
        ));
    }
    if let Some(changes) = closing.changes {
        output.error(&wrapped("", &changes, 2, output.error_columns()));
    }
    if let Some(paused) = closing.yielding.and_then(Yielding::closing) {
        output.error(&paused);
    }
    print_trash(totals, output);
    if totals.leaves_doubts && !totals.is_cut_short() {
        error(DOUBTS);
    }
    messages.failures().repeat(program, output);
    let mut failed =
        totals.failed > 0 || totals.out_of_space || totals.lost.is_some() || totals.too_many.is_some();
    failed |= messages.failures().count() > 0;
    if let Some(unwritten) = unwritten {
        error(unwritten);
        failed = true;
    }
    let pauses = closing.yielding.map(Yielding::pauses);
    if let Some(Err(lost)) = events.map(|events| events::end(events, totals, pauses, failed)) {
        error(&format!("cannot write events: {}", describe(&lost)));
        failed = true;
    }
    if let Err(lost) = output.finish() {
        error(&format!("write error: {}", describe(&lost)));
        failed = true;
    }
    if totals.interrupted {
        // Without a signal it was the time limit.
        return totals.io.signal.map_or(ExitCode::from(TIME_IS_UP), signals::end_by);
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Formats `created 3, replaced 2, set attributes of 1, deleted 0: 1.2 MB`.
fn changes(totals: &Totals) -> String {
    let done = &totals.done;
    let [created, replaced, attributes, deleted] =
        [done.created, done.replaced, done.attributes, done.deleted].map(count);
    let moved = bytes(totals.bytes);
    format!(
        "created {created}, replaced {replaced}, set attributes of {attributes}, deleted {deleted}: {moved}"
    )
}

/// Formats `restored 3 entries`.
fn restored(totals: &Totals) -> String {
    format!("restored {}", counted(totals.done.created, "entry", "entries"))
}

/// Returns why a run ended early.
fn cause(totals: &Totals) -> Option<Cause> {
    match (totals.lost, totals.out_of_space, totals.interrupted) {
        (Some(side), _, _) => Some(Cause::Device(side)),
        (None, true, _) => Some(Cause::Space),
        // Without a signal it was the time limit.
        (None, false, true) if totals.io.signal.is_none() => Some(Cause::TimeLimit),
        (None, false, true) => Some(Cause::Signal),
        (None, false, false) => None,
    }
}

/// Adds to a closing line how the run ended; if it was stopped, with the last figures of progress, the fate of incomplete
/// files, and that the same command continues.
fn ended(totals: &Totals, (reached, incomplete): (&Counts, Incomplete), mut line: String) -> String {
    let cause = cause(totals);
    if totals.failed > 0 {
        line += &format!(", {} failed", count(totals.failed));
    }
    if let Some(cause) = cause {
        line.insert_str(0, &format!("{} {}: ", cause.text(), reached.text()));
        line += &format!("; {}; {}", incomplete.text(), ending::way_on(cause, None));
    }
    line
}

/// Formats an action as one line.
fn line(action: &Action) -> String {
    let verb = match action.verb {
        Verb::Create => "create",
        Verb::Replace => "replace",
        Verb::Exchange => "exchange",
        Verb::Attributes => "attributes",
        Verb::Delete => "delete",
        Verb::Keep => "keep",
    };
    let path = if action.path.0.as_os_str().is_empty() { Path::new(".") } else { &action.path.0 };
    let slash = if action.kind == Kind::Directory { "/" } else { "" };
    match action.reason {
        Some(reason) => format!("{verb:<10}  {}{slash} ({})", quote(path), reason.word()),
        None => format!("{verb:<10}  {}{slash}", quote(path)),
    }
}

/// Returns the message of a refusal.
pub(crate) fn refusal(error: &Refused) -> String {
    match error {
        Refused::Open { path, cause } => format!("cannot open {}: {cause}", quote(path)),
        Refused::Make { path, cause } => format!("cannot create directory {}: {cause}", quote(path)),
        Refused::Empty { source_path } => format!(
            "{} is empty: nothing was deleted; with --allow-empty everything in the target is",
            quote(source_path)
        ),
        Refused::Overlap { inner, outer } => {
            format!("{} is in {}: a tree can't be made equal to a part of itself", quote(inner), quote(outer))
        }
        Refused::Same(source, target) => {
            format!("{} and {} are the same directory", quote(source), quote(target))
        }
        Refused::Other(path) => {
            format!("{} is not the directory that the plan was made for", quote(path))
        }
        Refused::NoTrash(path) => {
            format!("{} is not a trash of ferry sync: nothing was moved", quote(path))
        }
        Refused::IntoTrash(path) => {
            format!("{} is a trash of ferry sync, and can't be a target", quote(path))
        }
        Refused::Aside(lost) => format!("cannot use a temporary file: {}", describe(lost)),
        Refused::PlanFile(lost) => format!("cannot write or read the plan: {}", describe(lost)),
        Refused::Setup(_) | Refused::Plan(_) | Refused::Pattern(_) => error.to_string(),
    }
}

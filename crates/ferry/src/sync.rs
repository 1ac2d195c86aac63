//! `ferry sync`: makes a target equal to a source, and reports what was done.

pub(crate) mod options;
mod plan_file;

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ferry_copy::{Make, Observer, Progress};
use ferry_sync::plan::{Action, Kind, Verb};
use ferry_sync::{Refused, Surroundings, Totals, Use};

use crate::arguments::{CommandError, Usage};
use crate::cp::{Failures, Messages, Wording};
use crate::output::{Output, describe};
use crate::progress::{Counts, Indicator};
use crate::quote::quote;
use crate::signals;
use crate::units::{bytes, count, counted};
pub(crate) use options::{MANUAL, OPTIONS, Request, parse};
use options::{Output as To, Task};
use plan_file::{PlanFile, is_in};

/// Performs a request, and reports the result.
///
/// # Errors
/// A problem found before anything is changed.
pub(crate) fn run(request: &Request) -> Result<ExitCode, CommandError> {
    let program = MANUAL.name;
    let refuse = |message: String| CommandError { program, usage: Usage::plain(message), code: 1 };
    let output = Arc::new(Output::new());
    let wording = Wording { make: Make::Copy, base_is_implied: false };
    let failures = Failures::default();
    let messages = Arc::new(Messages::new(program, Arc::clone(&output), wording, failures));
    let tell = |action: &Action| {
        if request.verbose && action.verb != Verb::Keep {
            output.line(&line(action));
        }
    };
    let explain = |path: &Path, is_folder: bool, why: &str| {
        let slash = if is_folder { "/" } else { "" };
        output.line(&format!("left out    {}{slash} ({why})", quote(path)));
    };
    let counters = Arc::new(Progress::default());
    let counts = {
        let counters = Arc::clone(&counters);
        move || Counts { entries: counters.entries_done.get(), bytes: counters.bytes_done.get(), found: None }
    };
    let indicator = Indicator::start(request.progress, "compared", counts, Arc::clone(&output));
    let surroundings = Surroundings {
        io: &request.io,
        progress: Arc::clone(&counters),
        observer: Arc::clone(&messages) as Arc<dyn Observer>,
        tell: &tell,
        explain: if request.explain { Some(&explain) } else { None },
    };
    let done = perform(request, &surroundings);
    indicator.stop();
    let (totals, closing) = done.map_err(refuse)?;
    Ok(end(&totals, closing.map(|closing| closing(&totals)), &output, &messages))
}

/// Performs the task, and returns the closing line's format.
fn perform(request: &Request, surroundings: &Surroundings<'_>) -> Result<(Totals, Option<Closing>), String> {
    let cannot = |what: &str, path: &Path, error: &io::Error| {
        format!("cannot {what} {}: {}", quote(path), describe(error))
    };
    let run = |sync, to| ferry_sync::run(sync, to, surroundings);
    let (totals, closing): (_, Option<Closing>) = match &request.task {
        Task::Apply(path) => {
            let plan = File::open(path).map_err(|error| cannot("open", path, &error))?;
            (ferry_sync::apply(&plan, &request.acting, surroundings), Some(changes))
        }
        Task::Undo(trash, target) => (ferry_sync::undo(trash, target, surroundings), Some(restored)),
        Task::Sync(sync, To::Perform) => (run(sync, Use::Perform), Some(changes)),
        Task::Sync(sync, To::Show) => (run(sync, Use::Show), None),
        Task::Sync(sync, To::Plan(path)) => {
            if let Some(tree) = [&sync.source, &sync.target].into_iter().find(|tree| is_in(path, tree)) {
                return Err(format!("{} is in {}: it would be planned, too", quote(path), quote(tree)));
            }
            let plan = PlanFile::create(path).map_err(|error| cannot("create", path, &error))?;
            let file = plan.file().map_err(|error| cannot("write", path, &error))?;
            let totals = run(sync, Use::Record(file));
            if let Ok(Totals { too_many: None, interrupted: false, .. }) = &totals {
                plan.keep().map_err(|error| cannot("create", path, &error))?;
            }
            (totals, None)
        }
    };
    totals.map(|totals| (totals, closing)).map_err(|error| refusal(&error))
}

/// Formats the closing line of a run.
type Closing = fn(&Totals) -> String;

/// Prints what is left to be said, and returns the exit code.
fn end(totals: &Totals, closing: Option<String>, output: &Output, messages: &Messages) -> ExitCode {
    let program = MANUAL.name;
    let error = |text: &str| output.error(&format!("{program}: {text}"));
    if messages.failures().count() > 1 {
        messages.failures().print_again(program, output);
    }
    if totals.out_of_space {
        error("stopped early: the target's space or quota is used up");
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
    if let Some(closing) = closing {
        output.error(&ended(totals, closing));
    }
    if let Some(trash) = &totals.trash {
        output.error(&format!("entries that were taken away are in {}", quote(trash)));
    }
    let mut failed = totals.failed > 0 || totals.out_of_space || totals.too_many.is_some();
    failed |= messages.failures().count() > 0;
    if let Err(lost) = output.finish() {
        error(&format!("write error: {}", describe(&lost)));
        failed = true;
    }
    if totals.interrupted {
        return signals::end_by(totals.io.signal.unwrap_or(signal_hook::consts::SIGINT));
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

/// Adds to a closing line how the run ended.
fn ended(totals: &Totals, mut line: String) -> String {
    if totals.interrupted {
        line.insert_str(0, "interrupted: ");
        line += "; the same command continues";
    }
    if totals.failed > 0 {
        line += &format!(", {} failed", count(totals.failed));
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

fn refusal(error: &Refused) -> String {
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

//! The events of `ferry sync`: its trees, the actions performed, and the totals.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use ferry_copy::Pauses;
use ferry_sync::Totals;
use ferry_sync::plan::{Action, PathText};
use serde::Serialize;

use super::options::{Request, Task};
use crate::cp::Wording;
use crate::events::{self, Events, Place};

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Event<'a> {
    Start(Start),
    Action(&'a Action),
    End(End),
}

#[derive(Serialize)]
struct Start {
    schema: u32,
    made_by: String,
    task: &'static str,
    /// Missing for a plan, which names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<PathText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<PathText>,
}

#[derive(Serialize)]
struct End {
    seconds: f64,
    result: &'static str,
    created: u64,
    replaced: u64,
    attributes: u64,
    deleted: u64,
    failed: u64,
    bytes: u64,
    /// With `--max-load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
}

/// Pauses while other programs waited for I/O.
#[derive(Serialize)]
struct Load {
    pauses: u64,
    paused_seconds: f64,
    measured: u64,
}

/// Opens the place, and writes the first event.
///
/// # Errors
/// An error of creating the file.
pub(super) fn begin(place: &Place, request: &Request, wording: Wording) -> io::Result<Events> {
    let write: Box<dyn Write + Send> = match place {
        Place::StandardOutput => Box::new(io::stdout()),
        Place::File(path) => Box::new(File::create(path)?),
    };
    Ok(match &request.task {
        Task::Sync(sync, ..) => begin_in(write, "sync", Some([&sync.source, &sync.target]), wording),
        Task::Apply(_) => begin_in(write, "apply", None, wording),
        Task::Undo(trash, target) => begin_in(write, "undo", Some([trash, target]), wording),
    })
}

/// Writes the first event.
pub(crate) fn begin_in(
    write: Box<dyn Write + Send>,
    task: &'static str,
    trees: Option<[&PathBuf; 2]>,
    wording: Wording,
) -> Events {
    let events = Events::new(write, wording);
    let text = |path: &PathBuf| PathText::from(path.as_path());
    let (source, target) = trees.map(|[source, target]| (text(source), text(target))).unzip();
    let (schema, made_by) = (events::SCHEMA, events::made_by());
    events.put(&Event::Start(Start { schema, made_by, task, source, target }));
    events
}

/// Notes that an action was performed, or would be.
pub(crate) fn action(events: &Events, action: &Action) {
    events.put(&Event::Action(action));
}

/// Ends with the totals.
///
/// # Errors
/// The first error of writing an event.
pub(crate) fn end(
    events: &Events,
    totals: &Totals,
    pauses: Option<Pauses>,
    has_failed: bool,
) -> io::Result<()> {
    let result = events::result(totals.interrupted, totals.io.signal, has_failed);
    let ferry_sync::Done { created, replaced, attributes, deleted } = totals.done;
    let (seconds, failed, bytes) = (events.seconds(), totals.failed, totals.bytes);
    let load = pauses.map(|Pauses { count: pauses, time, measured }| {
        let paused_seconds = time.as_secs_f64();
        Load { pauses, paused_seconds, measured }
    });
    events.end(&Event::End(End {
        seconds,
        result,
        created,
        replaced,
        attributes,
        deleted,
        failed,
        bytes,
        load,
    }))
}

//! `--events`: what happens, as lines of JSON for other programs, described by `docs/events.schema.json`.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ferry_copy::{Failure, FailureKind, Progress};
use ferry_io::Cause;
use ferry_sync::Totals;
use ferry_sync::plan::{Action, PathText};
use serde::Serialize;

use super::options::{Place, Request, Task};
use crate::cp::Wording;
use crate::output::lock;

/// Version of the layout. It increases when a reader of the old one would misread the new one.
const SCHEMA: u32 = 1;
/// Time between two events of progress.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Event<'a> {
    Start(Start),
    Action(&'a Action),
    Failed(Failed),
    Progress(Reached),
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
struct Failed {
    source: PathText,
    target: PathText,
    message: String,
    /// Missing if no system call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
}

#[derive(Serialize)]
struct Reached {
    seconds: f64,
    entries: u64,
    bytes: u64,
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
}

/// The receiver of a run's events.
pub(super) struct Events {
    out: Mutex<Out>,
    wording: Wording,
    begun: Instant,
}

struct Out {
    write: Box<dyn Write + Send>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl Events {
    /// Begins with the event that names the task.
    ///
    /// # Errors
    /// Those of creating the file.
    pub(super) fn begin(place: &Place, request: &Request, wording: Wording) -> io::Result<Self> {
        let write: Box<dyn Write + Send> = match place {
            Place::StandardOutput => Box::new(io::stdout()),
            Place::File(path) => Box::new(File::create(path)?),
        };
        let out = Mutex::new(Out { write, error: None });
        let text = |path: &Path| Some(PathText::from(path));
        let (task, source, target) = match &request.task {
            Task::Sync(sync, ..) => ("sync", text(&sync.source), text(&sync.target)),
            Task::Apply(_) => ("apply", None, None),
            Task::Undo(trash, target) => ("undo", text(trash), text(target)),
        };
        let events = Self { out, wording, begun: Instant::now() };
        let made_by = format!("ferry {}", env!("CARGO_PKG_VERSION"));
        events.put(&Event::Start(Start { schema: SCHEMA, made_by, task, source, target }));
        Ok(events)
    }

    fn put(&self, event: &Event<'_>) {
        let mut out = lock(&self.out);
        if out.error.is_none() {
            let line = serde_json::to_vec(event).map_err(io::Error::from);
            let written = line.and_then(|mut line| {
                line.push(b'\n');
                out.write.write_all(&line)?;
                out.write.flush()
            });
            out.error = written.err();
        }
    }

    /// Notes that an action was performed, or would be.
    pub(super) fn action(&self, action: &Action) {
        self.put(&Event::Action(action));
    }

    pub(super) fn failed(&self, failure: &Failure) {
        let mut errno = None;
        if let FailureKind::Io { error, .. } = &failure.kind
            && let Cause::Errno(answer) = error.cause
        {
            errno = Some(answer.raw_os_error());
        }
        let (source, target) = (PathText::from(&*failure.source), PathText::from(&*failure.target));
        let message = self.wording.failure(failure);
        self.put(&Event::Failed(Failed { source, target, message, errno }));
    }

    fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Ends with the totals.
    ///
    /// # Errors
    /// The first error of writing an event.
    pub(super) fn end(&self, totals: &Totals, has_failed: bool) -> io::Result<()> {
        let result = match (totals.interrupted, totals.io.signal, has_failed) {
            (true, Some(_), _) => "interrupted",
            (true, None, _) => "time_is_up",
            (false, _, true) => "failed",
            (false, _, false) => "done",
        };
        let ferry_sync::Done { created, replaced, attributes, deleted } = totals.done;
        let (seconds, failed, bytes) = (self.seconds(), totals.failed, totals.bytes);
        self.put(&Event::End(End { seconds, result, created, replaced, attributes, deleted, failed, bytes }));
        lock(&self.out).error.take().map_or(Ok(()), Err)
    }
}

/// A thread that reports progress.
pub(super) struct Ticker {
    end: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(events: Arc<Events>, counters: Arc<Progress>) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let report = move || {
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let (entries, bytes) = (counters.entries_done.get(), counters.bytes_done.get());
                events.put(&Event::Progress(Reached { seconds: events.seconds(), entries, bytes }));
            }
        };
        let thread = std::thread::Builder::new().name("ferry-events".into()).spawn(report)?;
        Ok(Self { end, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.end.send(()).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

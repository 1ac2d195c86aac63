//! `--events`: what happens, as lines of JSON for other programs, described by `docs/events.schema.json`.
//!
//! `ferry cp` and `ferry sync` write the same family of events. Each adds its own: what a copy made, and the actions of a
//! plan.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ferry_copy::{Failure, PartNote, PartState, Progress};
use ferry_io::Errno;
use ferry_sync::plan::PathText;
use serde::Serialize;

use crate::arguments::Usage;
use crate::cp::Wording;
use crate::output::lock;

/// Version of the layout. It increases when a reader of the old one would misread the new one.
pub(crate) const SCHEMA: u32 = 1;
/// Time between two events of progress.
const PERIOD: Duration = Duration::from_secs(1);

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    StandardOutput,
    File(PathBuf),
}

impl Place {
    /// Reads the optional value of `--events`.
    pub(crate) fn parse(text: &OsStr) -> Self {
        if text.is_empty() || text == "-" { Self::StandardOutput } else { Self::File(text.into()) }
    }

    /// Refuses events on standard output beside the lines of an option that is given.
    pub(crate) fn refuse_beside(place: Option<&Self>, prints: &[(bool, &str)]) -> Result<(), Usage> {
        match prints.iter().find(|(is_given, _)| *is_given && place == Some(&Self::StandardOutput)) {
            Some((_, name)) => Err(Usage::with_hint(format!(
                "--events and {name} write to standard output: use --events=FILE"
            ))),
            None => Ok(()),
        }
    }
}

/// Returns the program's name and version.
pub(crate) fn made_by() -> String {
    format!("ferry {}", env!("CARGO_PKG_VERSION"))
}

/// Returns a run's result in one word. An interruption without a signal is the end of the time of `--time-limit`.
pub(crate) fn result(is_interrupted: bool, signal: Option<i32>, has_failed: bool) -> &'static str {
    match (is_interrupted, signal, has_failed) {
        (true, Some(_), _) => "interrupted",
        (true, None, _) => "time_is_up",
        (false, _, true) => "failed",
        (false, _, false) => "done",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Shared {
    Failed(Failed),
    Progress(Reached),
    Part(Part),
}

#[derive(Serialize)]
struct Part {
    source: PathText,
    target: PathText,
    state: &'static str,
    /// Missing if nothing of the part is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Missing if all of it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
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

/// The receiver of a run's events.
pub(crate) struct Events {
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
    pub(crate) fn new(write: Box<dyn Write + Send>, wording: Wording) -> Self {
        Self { out: Mutex::new(Out { write, error: None }), wording, begun: Instant::now() }
    }

    /// Returns the words of its messages.
    pub(crate) fn wording(&self) -> Wording {
        self.wording
    }

    /// Writes an event, an object with one member.
    pub(crate) fn put(&self, event: &impl Serialize) {
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

    pub(crate) fn failed(&self, failure: &Failure) {
        let errno = failure.kind.error().and_then(ferry_io::Error::as_errno).map(Errno::raw_os_error);
        let (source, target) = (PathText::from(&*failure.source), self.target(&failure.target));
        let message = self.wording.failure(failure);
        self.put(&Shared::Failed(Failed { source, target, message, errno }));
    }

    pub(crate) fn part(&self, note: &PartNote) {
        let (source, target) = (PathText::from(&*note.source), self.target(&note.target));
        let (state, bytes, reason) = match note.state {
            PartState::Continued(bytes, reason) => ("continued", Some(bytes), reason),
            PartState::Kept(bytes) => ("kept", Some(bytes), None),
            PartState::Ignored(reason) => ("ignored", None, Some(reason)),
        };
        self.put(&Shared::Part(Part { source, target, state, bytes, reason }));
    }

    /// Returns a target's path as the user would write it.
    pub(crate) fn target(&self, path: &Path) -> PathText {
        PathText::from(self.wording.target(path))
    }

    /// Returns the time since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Writes the last event.
    ///
    /// # Errors
    /// The first error of writing an event.
    pub(crate) fn end(&self, event: &impl Serialize) -> io::Result<()> {
        self.put(event);
        lock(&self.out).error.take().map_or(Ok(()), Err)
    }
}

/// A thread that reports progress.
pub(crate) struct Ticker {
    end: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(events: Arc<Events>, counters: Arc<Progress>) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let report = move || {
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let (entries, bytes) = (counters.entries_done.get(), counters.bytes_done.get());
                events.put(&Shared::Progress(Reached { seconds: events.seconds(), entries, bytes }));
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

//! The events of `ferry cp`: its operands, what was copied, removed or left incomplete, and the totals.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{Copied, Explained, Failure, Item, Observer, PartNote, Question, Summary, Unfinished};
use ferry_io::Name;
use ferry_sync::plan::PathText;
use serde::Serialize;

use super::wording::Wording;
use crate::events::{self, Events, Place};

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Start(Start),
    Copied(Made),
    Removed { target: PathText },
    TakenBack { backup: PathText, target: PathText },
    Unfinished { source: PathText, target: PathText, message: String },
    End(End),
}

#[derive(Serialize)]
struct Start {
    schema: u32,
    made_by: String,
    task: &'static str,
    operands: Vec<Operand>,
}

#[derive(Serialize)]
struct Operand {
    source: PathText,
    target: PathText,
}

#[derive(Serialize)]
struct Made {
    source: PathText,
    target: PathText,
    /// Missing if none was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathText>,
}

#[derive(Serialize)]
struct End {
    seconds: f64,
    result: &'static str,
    files: u64,
    directories: u64,
    symlinks: u64,
    hard_links: u64,
    specials: u64,
    skipped: u64,
    failed: u64,
    unfinished: u64,
    bytes: u64,
}

/// Opens the place, and writes the first event.
///
/// # Errors
/// An error of opening the file; [`io::ErrorKind::AlreadyExists`] if it is one of the `named` files to copy or write.
pub(super) fn begin(
    place: &Place,
    named: &[PathBuf],
    items: &[Item],
    wording: Wording,
) -> io::Result<Events> {
    let write: Box<dyn Write + Send> = match place {
        Place::StandardOutput => Box::new(io::stdout()),
        Place::File(path) => Box::new(super::failures::open(path, named)?),
    };
    Ok(begin_in(write, items, wording))
}

/// Writes the first event.
pub(crate) fn begin_in(write: Box<dyn Write + Send>, items: &[Item], wording: Wording) -> Events {
    let events = Events::new(write, wording);
    let operand =
        |item: &Item| Operand { source: PathText::from(&*item.source), target: events.target(&target(item)) };
    let operands = items.iter().map(operand).collect();
    let (schema, made_by) = (events::SCHEMA, events::made_by());
    events.put(&Event::Start(Start { schema, made_by, task: "cp", operands }));
    events
}

/// Returns the path of an operand's copy.
pub(super) fn target(Item { base, relative, .. }: &Item) -> PathBuf {
    if relative.as_os_str().is_empty() { base.clone() } else { base.join(relative) }
}

/// Ends with the totals.
///
/// # Errors
/// The first error of writing an event.
pub(crate) fn end(events: &Events, summary: &Summary, failed: u64, has_failed: bool) -> io::Result<()> {
    let signal = Some(summary.io.signal.unwrap_or(signal_hook::consts::SIGINT));
    let result = events::result(summary.interrupted, signal, has_failed);
    let Summary { files, directories, symlinks, hard_links, specials, skipped, unfinished, .. } = *summary;
    let (seconds, bytes) = (events.seconds(), summary.bytes());
    events.end(&Event::End(End {
        seconds,
        result,
        files,
        directories,
        symlinks,
        hard_links,
        specials,
        skipped,
        failed,
        unfinished,
        bytes,
    }))
}

/// Writes each event, and passes on what the user or a program asked for.
pub(crate) struct Announcing {
    pub(crate) messages: Arc<dyn Observer>,
    pub(crate) events: Arc<Events>,
    /// Set if copied and removed entries are passed on (`-v`), too.
    pub(crate) verbose: bool,
}

impl Observer for Announcing {
    fn copied(&self, copied: &Copied<'_>) {
        let Copied { source, target, backup, .. } = *copied;
        let backup = backup.map(|backup| self.events.target(backup));
        let (source, target) = (PathText::from(source), self.events.target(target));
        self.events.put(&Event::Copied(Made { source, target, backup }));
        if self.verbose {
            self.messages.copied(copied);
        }
    }

    fn removed(&self, target: &Path) {
        self.events.put(&Event::Removed { target: self.events.target(target) });
        if self.verbose {
            self.messages.removed(target);
        }
    }

    fn taken_back(&self, backup: &Path, target: &Path) {
        let (from, to) = (self.events.target(backup), self.events.target(target));
        self.events.put(&Event::TakenBack { backup: from, target: to });
        if self.verbose {
            self.messages.taken_back(backup, target);
        }
    }

    fn failed(&self, failure: &Failure) {
        self.messages.failed(failure);
        self.events.failed(failure);
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.messages.unfinished(unfinished);
        let (source, target) = (PathText::from(&*unfinished.source), self.events.target(&unfinished.target));
        let message = self.events.wording().unfinished(unfinished);
        self.events.put(&Event::Unfinished { source, target, message });
    }

    fn leaves_out(&self, folder: &Path, name: &Name) -> bool {
        self.messages.leaves_out(folder, name)
    }

    fn part(&self, note: &PartNote) {
        self.messages.part(note);
        self.events.part(note);
    }

    fn skipped(&self, target: &Path) {
        self.messages.skipped(target);
    }

    fn repeated(&self, source: &Path, is_folder: bool) {
        self.messages.repeated(source, is_folder);
    }

    fn agrees(&self, target: &Path, question: Question, is_over: &dyn Fn() -> bool) -> bool {
        self.messages.agrees(target, question, is_over)
    }

    fn explained(&self, explained: &Explained<'_>) {
        self.messages.explained(explained);
    }
}

//! Failures as messages, and other notes, collected until the next report.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferry_copy::{Copied, Explained, Failure, Observer, Unfinished};

use crate::note::Note;

/// Messages and other notes since the last report.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    messages: Vec<String>,
    note: Note,
    /// Files and bytes by way and reason.
    ways: BTreeMap<(&'static str, &'static str), (u64, u64)>,
}

impl Failures {
    /// Takes the messages.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().messages)
    }

    /// Takes the other notes.
    pub(crate) fn take_note(&self) -> Note {
        let mut collected = self.lock();
        let ways = std::mem::take(&mut collected.ways).into_iter();
        let ways = ways.map(|((way, why), sum)| ((way.to_owned(), why.to_owned()), sum)).collect();
        Note { ways, ..std::mem::take(&mut collected.note) }
    }

    /// Counts a file that was copied in one way, for one reason.
    pub(crate) fn explain(&self, way: &'static str, why: &'static str, bytes: u64) {
        let mut collected = self.lock();
        let sum = collected.ways.entry((way, why)).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    }

    /// Adds a line of `--verbose`.
    pub(crate) fn print(&self, line: String) {
        self.lock().note.lines.push(line);
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receiver of the copier's reports.
pub(crate) struct Collecting {
    pub(crate) failures: Arc<Failures>,
    /// Set if each file is explained.
    pub(crate) explains_each: bool,
    /// Set if rank 0 writes failures to a file.
    pub(crate) records: bool,
}

impl Observer for Collecting {
    fn copied(&self, copied: &Copied<'_>) {
        self.failures.print(ferry::job::copied_line(copied));
    }

    fn removed(&self, target: &Path) {
        self.failures.print(ferry::job::removed_line(target));
    }

    fn explained(&self, explained: &Explained<'_>) {
        self.failures.explain(explained.method.name(), explained.why, explained.bytes);
        if self.explains_each {
            self.failures.print(ferry::job::explained_line(explained));
        }
    }

    fn failed(&self, failure: &Failure) {
        let mut collected = self.failures.lock();
        collected.messages.push(ferry::job::message(failure));
        if self.records {
            let line = String::from_utf8_lossy(&ferry::job::failure_line(failure)).into_owned();
            collected.note.failures.push(line);
        }
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.failures.lock().messages.push(ferry::job::unfinished_message(unfinished));
    }
}

/// Prints a message of rank 0.
pub(crate) fn complain(why: &str) {
    // Without a standard error there is nobody to tell.
    writeln!(io::stderr(), "ferry-mpi: {why}").ok();
}

//! What a rank tells rank 0 besides its leases: lines to be printed, failures for a file, and figures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};

use ferry::job::Way;
use ferry_cluster::ToCoordinator;
use serde::{Deserialize, Serialize};

/// A message of a rank.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Sent {
    /// About leases.
    Work(ToCoordinator),
    /// About what else rank 0 shows.
    Note(Box<Note>),
}

impl From<ToCoordinator> for Sent {
    fn from(message: ToCoordinator) -> Self {
        Self::Work(message)
    }
}

/// Notes since the last report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Note {
    /// Lines of `--verbose`.
    pub(crate) lines: Vec<String>,
    /// Lines of `--errors`.
    pub(crate) failures: Vec<String>,
    /// Files and bytes by way and reason, for `--explain`.
    pub(crate) ways: Vec<((String, String), (u64, u64))>,
}

impl Note {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.failures.is_empty() && self.ways.is_empty()
    }
}

/// Notes of all ranks, on rank 0.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// File of `--errors`.
    errors: Option<File>,
    ways: BTreeMap<(String, String), (u64, u64)>,
    /// First error of writing.
    failed: Option<io::Error>,
}

impl Notes {
    /// Returns notes whose failures go to a file.
    pub(crate) fn with_errors(errors: Option<File>) -> Self {
        Self { errors, ..Self::default() }
    }

    /// Prints and counts the notes of a rank.
    pub(crate) fn take(&mut self, note: Note) {
        for line in &note.lines {
            self.print(line);
        }
        if let Some(file) = self.errors.as_mut().filter(|_| self.failed.is_none()) {
            self.failed = file.write_all(note.failures.concat().as_bytes()).err();
        }
        for (way, (files, bytes)) in note.ways {
            let sum = self.ways.entry(way).or_default();
            *sum = (sum.0 + files, sum.1 + bytes);
        }
    }

    /// Prints a line to standard output.
    pub(crate) fn print(&mut self, line: &str) {
        if let Err(error) = writeln!(io::stdout(), "{line}") {
            self.failed.get_or_insert(error);
        }
    }

    /// Prints the table of `--explain`, and returns the first error of writing.
    pub(crate) fn end(mut self) -> Option<io::Error> {
        let ways: Vec<Way> = std::mem::take(&mut self.ways)
            .into_iter()
            .map(|((way, why), (files, bytes))| Way { way, files, bytes, why })
            .collect();
        if !ways.is_empty() {
            self.print(&ferry::job::ways_table(&ways));
        }
        self.failed
    }
}

//! What a rank tells rank 0 besides its leases: lines to be printed, failures for a file, and figures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use ferry::job::Way;
use ferry_cluster::ToCoordinator;
use serde::{Deserialize, Serialize};

use crate::recording::{self, Clock, Span, Track};

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
    /// Spans for `--trace`.
    pub(crate) spans: Vec<Span>,
    /// Name of the rank's machine, in the last note of a job that is recorded.
    pub(crate) host: Option<String>,
}

impl Note {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { lines, failures, ways, spans, host } = self;
        lines.is_empty() && failures.is_empty() && ways.is_empty() && spans.is_empty() && host.is_none()
    }
}

/// Notes of all ranks, on rank 0.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// File of `--errors`.
    errors: Option<File>,
    ways: BTreeMap<(String, String), (u64, u64)>,
    /// File of `--trace`.
    trace: Option<PathBuf>,
    /// Spans of each rank, if they are recorded.
    tracks: Vec<Track>,
    /// Number of ranks that have sent their last note.
    ended: usize,
    /// First error of writing.
    failed: Option<io::Error>,
}

impl Notes {
    /// Returns notes whose failures go to a file.
    pub(crate) fn with_errors(errors: Option<File>) -> Self {
        Self { errors, ..Self::default() }
    }

    /// Returns these notes with a file for the recording.
    pub(crate) fn with_trace(self, trace: Option<PathBuf>) -> Self {
        Self { trace, ..self }
    }

    /// Begins the recording with the clocks of all ranks.
    pub(crate) fn begin_tracks(&mut self, clocks: Vec<Clock>) {
        self.tracks = clocks.into_iter().map(Track::of).collect();
    }

    /// Returns true if ranks that are recorded have not sent their last notes.
    pub(crate) fn awaits_ranks(&self) -> bool {
        self.ended < self.tracks.len()
    }

    /// Prints and counts the notes of a rank.
    pub(crate) fn take(&mut self, rank: u32, note: Note) {
        let track = usize::try_from(rank).ok().and_then(|rank| self.tracks.get_mut(rank));
        if let Some(track) = track {
            track.add(note.spans);
            if let Some(host) = note.host {
                track.host = host;
                self.ended += 1;
            }
        }
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

    /// Prints the table of `--explain`, and writes the recording. Returns a message if something could not be written.
    pub(crate) fn end(mut self) -> Option<String> {
        let ways: Vec<Way> = std::mem::take(&mut self.ways)
            .into_iter()
            .map(|((way, why), (files, bytes))| Way { way, files, bytes, why })
            .collect();
        if !ways.is_empty() {
            self.print(&ferry::job::ways_table(&ways));
        }
        let recorded = self.trace.map(|path| recording::write(&path, &self.tracks));
        let failed = self.failed.map(|error| format!("cannot write all output: {error}"));
        recorded.and_then(Result::err).or(failed)
    }
}

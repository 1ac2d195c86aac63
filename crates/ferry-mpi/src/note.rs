//! Notes of ranks for rank 0, besides their leases: lines to be printed, failures for a file, and figures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ferry::job::Way;
use ferry_cluster::ToCoordinator;
use serde::{Deserialize, Serialize};

use crate::recording::{self, Clock, Span, Track};
use crate::wording::cannot;

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
    errors: Option<Record>,
    ways: BTreeMap<(String, String), (u64, u64)>,
    /// File of `--trace`.
    trace: Option<PathBuf>,
    /// Spans of each rank, if they are recorded.
    tracks: Vec<Track>,
    /// Number of ranks that have sent their last note.
    ended: usize,
    /// First error of writing to standard output.
    unprinted: Option<io::Error>,
}

/// A file of failures.
#[derive(Debug)]
struct Record {
    file: File,
    path: PathBuf,
    /// First error of writing. Nothing is written after it.
    failed: Option<io::Error>,
}

impl Record {
    fn add(&mut self, failures: &[String]) {
        if self.failed.is_none() {
            self.failed = self.file.write_all(failures.concat().as_bytes()).err();
        }
    }

    fn end(self) -> Option<String> {
        self.failed.map(|error| cannot("write failures to", &self.path)(error))
    }
}

impl Notes {
    /// Returns notes whose failures go to a file.
    pub(crate) fn with_errors(file: File, path: &Path) -> Self {
        let errors = Some(Record { file, path: path.to_owned(), failed: None });
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
        if let Some(errors) = &mut self.errors {
            errors.add(&note.failures);
        }
        for (way, (files, bytes)) in note.ways {
            let sum = self.ways.entry(way).or_default();
            *sum = (sum.0 + files, sum.1 + bytes);
        }
    }

    /// Prints a line to standard output.
    pub(crate) fn print(&mut self, line: &str) {
        if let Err(error) = writeln!(io::stdout(), "{line}") {
            self.unprinted.get_or_insert(error);
        }
    }

    /// Prints the table of `--explain`, and writes the recording. Returns messages about all that could not be written.
    pub(crate) fn end(mut self) -> Vec<String> {
        let ways: Vec<Way> = std::mem::take(&mut self.ways)
            .into_iter()
            .map(|((way, why), (files, bytes))| Way { way, files, bytes, why })
            .collect();
        if !ways.is_empty() {
            self.print(&ferry::job::ways_table(&ways));
        }
        let unprinted = self.unprinted.map(|error| format!("cannot write to standard output: {error}"));
        let unrecorded = self.trace.and_then(|path| recording::write(&path, &self.tracks).err());
        let failed = [unprinted, self.errors.and_then(Record::end), unrecorded];
        failed.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_written_after_a_line_that_could_not_be_printed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("errors");
        let mut notes = Notes::with_errors(File::create(&path).unwrap(), &path);
        notes.unprinted = Some(io::ErrorKind::BrokenPipe.into());
        notes.take(1, Note { failures: vec!["one\n".into(), "two\n".into()], ..Note::default() });
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(notes.end(), ["cannot write to standard output: broken pipe"]);
    }

    #[test]
    fn a_file_of_failures_that_can_not_be_written_is_named() {
        let full = Path::new("/dev/full");
        let mut notes = Notes::with_errors(File::options().write(true).open(full).unwrap(), full);
        notes.take(0, Note { failures: vec!["one\n".into()], ..Note::default() });
        let said = notes.end();
        assert!(said.len() == 1 && said[0].starts_with("cannot write failures to '/dev/full': "), "{said:?}");
    }
}

//! The hashes of a run, noted in any order and written in the order of their paths.
//!
//! A file is noted when it is complete ([`Manifest::add`]), from any thread, and so is each failure ([`Manifest::fail`]). The
//! last note on a path counts. Notes are sorted in bounded memory (`sorted.rs`).

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ferry_copy::{Algorithm, Digest};
use ferry_io::Stat;

use super::json;
use super::note::{Content, Facts, Note};
use super::text;
use crate::sorted::Sorter;

#[cfg(test)]
mod tests;

/// Format of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of b3sum or sha256sum.
    Text,
    /// Lines of JSON, with sizes, modes and times.
    Json,
}

impl Format {
    /// Returns the format that a file's name asks for: JSON for `.json`, `.jsonl` and `.ndjson`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let is_json = |end: &std::ffi::OsStr| ["json", "jsonl", "ndjson"].iter().any(|known| end == *known);
        if path.extension().is_some_and(is_json) { Self::Json } else { Self::Text }
    }
}

/// The notes of a run.
pub struct Manifest {
    algorithm: Algorithm,
    notes: Mutex<Notes>,
}

struct Notes {
    sorter: Sorter<Note>,
    /// Number of the next note.
    number: u64,
    /// The first error of the temporary file.
    error: Option<io::Error>,
}

impl Notes {
    fn new() -> Self {
        Self { sorter: Sorter::new(), number: 0, error: None }
    }
}

impl Manifest {
    /// Returns a manifest without notes.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, notes: Mutex::new(Notes::new()) }
    }

    /// Returns the hash function of this manifest.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Notes a complete file, by its path below the target.
    pub fn add(&self, path: &Path, digest: Digest, stat: &Stat) {
        let facts = Some(Facts::of(stat));
        self.note(path, Some(Content { digest, algorithm: Some(self.algorithm), facts }));
    }

    /// Notes that a path has failed: what was noted of it before does not count.
    pub fn fail(&self, path: &Path) {
        self.note(path, None);
    }

    /// Forgets all notes, for another attempt.
    pub fn restart(&self) {
        *self.lock() = Notes::new();
    }

    fn note(&self, path: &Path, content: Option<Content>) {
        let mut notes = self.lock();
        if notes.error.is_some() {
            return;
        }
        let number = notes.number;
        notes.number += 1;
        let note = Note { path: path.as_os_str().as_bytes().into(), number, content };
        let added = notes.sorter.add(vec![note], &std::env::temp_dir());
        notes.error = added.err();
    }

    /// Writes the manifest, and forgets it. Returns the number of files.
    ///
    /// # Errors
    /// Those of the temporary file and of writing.
    pub fn write(&self, out: &mut impl Write, format: Format) -> io::Result<u64> {
        let notes = std::mem::replace(&mut *self.lock(), Notes::new());
        if let Some(error) = notes.error {
            return Err(error);
        }
        let mut sorted = notes.sorter.finish(&std::env::temp_dir())?;
        if format == Format::Json {
            json::begin(out, self.algorithm)?;
        }
        let (mut files, mut last) = (0, None);
        while let Some(note) = sorted.next()? {
            // The first of a path's notes is the last that was made.
            if last.as_ref() == Some(&note.path) {
                continue;
            }
            if let Some(content) = &note.content {
                match format {
                    Format::Text => out.write_all(&text::line(self.algorithm, content.digest, &note.path))?,
                    Format::Json => json::file(out, &note.path, content)?,
                }
                files += 1;
            }
            last = Some(note.path);
        }
        if format == Format::Json {
            json::end(out, files)?;
        }
        Ok(files)
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

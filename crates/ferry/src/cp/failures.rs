//! The failures of a run: counted, some kept to be told again at the end, all recorded with `--errors`.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::escape::escaped;
use crate::output::Output;
use crate::units::{count, counted};

#[cfg(test)]
mod tests;

/// How many are told again; memory stays bounded however much goes wrong.
const KEPT: usize = 1000;

/// What went wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    kept: Vec<String>,
    count: u64,
    /// Messages, of which a path may have two.
    messages: u64,
    file: Option<File>,
    write_error: Option<io::Error>,
}

/// One line of the file.
#[derive(Serialize)]
struct Record<'a> {
    source: &'a str,
    target: &'a str,
    message: &'a str,
}

impl Failures {
    /// None yet; they will be recorded in `file` if there is one.
    ///
    /// # Errors
    /// Whatever opening the file fails with; [`io::ErrorKind::AlreadyExists`] if it is one of the `named`, which are to
    /// be copied or written.
    pub(crate) fn new(file: Option<&Path>, named: &[PathBuf]) -> io::Result<Self> {
        Ok(Self { file: file.map(|path| open(path, named)).transpose()?, ..Self::default() })
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the failure of one path.
    pub(crate) fn add(&mut self, source: &Path, target: &Path, message: String) {
        self.count += 1;
        self.note(source, target, message);
    }

    /// Adds a further message about a path whose failure was added.
    pub(crate) fn note(&mut self, source: &Path, target: &Path, message: String) {
        if let Some(file) = &mut self.file
            && self.write_error.is_none()
        {
            self.write_error = record(file, source, target, &message).err();
        }
        self.messages += 1;
        if self.kept.len() < KEPT {
            self.kept.push(message);
        }
    }

    /// Tells them again.
    pub(crate) fn tell(&self, program: &str, output: &Output) {
        let what = counted(self.count, "path failed", "paths failed");
        output.error(&format!("{program}: {what}:"));
        for message in &self.kept {
            output.error(&format!("  {message}"));
        }
        let more = self.messages - u64::try_from(self.kept.len()).unwrap_or(u64::MAX);
        if more > 0 {
            let hint = if self.file.is_some() { "" } else { " (`--errors FILE` records all)" };
            output.error(&format!("  and {} more{hint}", count(more)));
        }
    }

    /// Why the record is not complete, if it isn't.
    pub(crate) fn write_error(&self) -> Option<&io::Error> {
        self.write_error.as_ref()
    }
}

/// Opens the record and empties it, unless that would empty a file that somebody wants.
fn open(path: &Path, named: &[PathBuf]) -> io::Result<File> {
    let existing = File::options().write(true).open(path);
    let is_made = existing.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let file = if is_made {
        File::options().write(true).create(true).truncate(false).open(path)?
    } else {
        existing?
    };
    let record = file.metadata()?;
    if !record.is_file() {
        // A pipe or a terminal holds nothing.
        return Ok(file);
    }
    let is_record = |found: Metadata| (found.dev(), found.ino()) == (record.dev(), record.ino());
    if named.iter().any(|path| std::fs::metadata(path).is_ok_and(is_record)) {
        if is_made {
            // The path may be a link, which was there.
            std::fs::remove_file(path.canonicalize()?)?;
        }
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    file.set_len(0)?;
    Ok(file)
}

fn record(file: &mut File, source: &Path, target: &Path, message: &str) -> io::Result<()> {
    let (source, target) = (escaped(source.as_os_str().as_bytes()), escaped(target.as_os_str().as_bytes()));
    let mut line = serde_json::to_vec(&Record { source: &source, target: &target, message })?;
    line.push(b'\n');
    file.write_all(&line)
}

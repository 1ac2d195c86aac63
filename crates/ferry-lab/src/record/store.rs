//! Writes records.
//!
//! A record is written to a temporary file after each run and then renamed. Readers never see half a record, and an
//! interrupt loses at most the current run. The record is made durable once, at the end, because a flush after each
//! run would affect the next measurement.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Record, read};
use crate::error::Failure;
use crate::message::quoted;

/// A record and its path.
#[derive(Debug)]
pub struct Store {
    path: Option<PathBuf>,
    /// The record so far.
    pub record: Record,
}

impl Store {
    /// Keeps `record` at `path`, or only in memory. Nothing is written yet.
    #[must_use]
    pub fn new(path: Option<PathBuf>, record: Record) -> Self {
        Self { path, record }
    }

    /// Returns the path of the record.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes the record.
    ///
    /// # Errors
    /// If the file cannot be created, written or renamed.
    pub fn save(&self) -> Result<(), Failure> {
        self.write(false)
    }

    /// Writes the record and makes it durable.
    ///
    /// # Errors
    /// As [`Store::save`].
    pub fn save_durably(&self) -> Result<(), Failure> {
        self.write(true)
    }

    fn write(&self, durably: bool) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        write_atomically(path, json(&self.record).as_bytes(), durably)
    }
}

/// Formats a record as JSON.
#[must_use]
pub fn json(record: &Record) -> String {
    // Serialization cannot fail: all keys of maps are text.
    let mut text = serde_json::to_string_pretty(record).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the path to write for `path`, with links resolved. Fails early if it cannot be written.
///
/// # Errors
/// If the folder is not writable, or if the path exists and is not a regular file.
pub fn place_of(path: &Path) -> Result<PathBuf, Failure> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if place.is_dir() {
        let error = rustix::io::Errno::ISDIR.into();
        return Err(Failure::file("write", path, &error));
    }
    if place.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        let path = quoted(path.as_os_str());
        return Err(Failure::Misuse(format!("cannot write {path}: it exists and is not a regular file")));
    }
    let rights = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, rights).map_err(|errno| Failure::file("write", path, &errno.into()))?;
    Ok(place)
}

/// Fails unless the file at `place` may be replaced: it must be empty or a complete record of the same request.
///
/// # Errors
/// A message with its content and the remedy.
pub fn check_replaced(place: &Path, record: &Record) -> Result<(), Failure> {
    if place.metadata().map_or(0, |found| found.len()) == 0 {
        return Ok(());
    }
    let path = quoted(place.as_os_str());
    let refused =
        |what: &str| Failure::Misuse(format!("{path} holds {what}; remove it, or name another file"));
    let Ok(found) = read::read(place) else { return Err(refused("something that is no record")) };
    let asked = |record: &Record| (record.parameters.clone(), record.scale, record.runs);
    if found.experiment != record.experiment || asked(&found) != asked(record) {
        return Err(refused(&format!("a record of another 'lab {}'", found.experiment)));
    }
    if !found.complete {
        return Err(refused("a record that is not complete: go on with it by --resume"));
    }
    Ok(())
}

/// Replaces the file at `path` atomically.
///
/// # Errors
/// If the file cannot be created, written or renamed; the old file is unchanged then.
pub fn write_atomically(path: &Path, bytes: &[u8], durably: bool) -> Result<(), Failure> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let write = || {
        let mut file = std::fs::File::create(&part)?;
        file.write_all(bytes)?;
        if durably {
            file.sync_all()?;
        }
        std::fs::rename(&part, path)
    };
    write().map_err(|error| {
        // The first error is reported.
        std::fs::remove_file(&part).ok();
        Failure::file("write", path, &error)
    })
}

//! The file that a record grows in.
//!
//! Written after each run, to a temporary file that then takes the name, so a reader never sees half a record and an
//! interrupt loses at most the run that it interrupted. It is made durable once, at the end: a flush after each run
//! would be measured by the next one.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Record, read};
use crate::error::{Failure, quoted};

/// A record and where it is kept.
#[derive(Debug)]
pub struct Store {
    path: Option<PathBuf>,
    /// What has been taken so far.
    pub record: Record,
}

impl Store {
    /// Keeps `record` at `path`, or only in memory. Nothing is written yet.
    #[must_use]
    pub fn new(path: Option<PathBuf>, record: Record) -> Self {
        Self { path, record }
    }

    /// Where it is kept.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes what there is.
    ///
    /// # Errors
    /// If the file can't be made, written or renamed.
    pub fn save(&self) -> Result<(), Failure> {
        self.write(false)
    }

    /// Writes what there is so that a power cut does not lose it.
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

/// A record as text.
#[must_use]
pub fn json(record: &Record) -> String {
    // Neither maps with other keys than text nor failing implementations are in a record.
    let mut text = serde_json::to_string_pretty(record).unwrap_or_default();
    text.push('\n');
    text
}

/// The file that is to be written at `path`: what a link leads to. Fails if it could not be: afterwards it would be found
/// out about too late.
///
/// # Errors
/// What is wrong with it: its folder, or that it is there and no regular file.
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

/// Fails if the file at `place` holds something that a new record like `record` does not simply replace: only a whole
/// record of the same request does that.
///
/// # Errors
/// What it holds, and what to do.
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

/// Replaces the file at `path` by one with these bytes, in one step.
///
/// # Errors
/// If the file can't be made, written or renamed; then the old one is still there.
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
        // The reason to tell is the first one.
        std::fs::remove_file(&part).ok();
        Failure::file("write", path, &error)
    })
}

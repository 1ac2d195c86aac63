//! `--trace`: where the run is recorded, and what is told of the recording.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ferry_io::event::Recorded;

use crate::arguments::Usage;
use crate::quote::quote;
use crate::units::{count, counted};

/// The file of the run's recording: as the option says, else as the environment does. One that is made anew under a
/// number (`%n`) takes nobody's place, and is left to the runtime.
pub(super) fn file(option: Option<&Path>, environment: Option<OsString>) -> Option<PathBuf> {
    let of_environment = || environment.filter(|file| !file.is_empty() && !file.as_bytes().ends_with(b"%n"));
    option.map(Path::to_owned).or_else(|| of_environment().map(PathBuf::from))
}

/// Sees to it that the recording takes the place of nothing that is to be copied or written: the `named` are.
///
/// # Errors
/// If it would.
pub(super) fn check(path: &Path, named: &[PathBuf]) -> Result<(), Usage> {
    // What is to be written may not be there yet: whether it is the same file is told only once this is.
    let made = match File::options().write(true).create_new(true).open(path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
        Err(error) => {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            let why = ferry_io::Cause::Errno(errno);
            return Err(Usage::plain(format!("cannot create {}: {why}", quote(path))));
        }
    };
    let Ok(found) = made.as_ref().map_or_else(|| std::fs::metadata(path), File::metadata) else {
        // A link that leads nowhere is refused when the recording begins.
        return Ok(());
    };
    let is_it = |other: &PathBuf| {
        std::fs::metadata(other).is_ok_and(|other| (other.dev(), other.ino()) == (found.dev(), found.ino()))
    };
    if !named.iter().any(is_it) {
        return Ok(());
    }
    if made.is_some() {
        // The reason to tell is the first one.
        std::fs::remove_file(path).ok();
    }
    Err(Usage::plain(format!(
        "the run can't be recorded in {}, which is to be copied or written",
        quote(path)
    )))
}

/// What is wrong with the recording, on one line; nothing if it is whole.
pub(super) fn warning(recorded: &Recorded) -> Option<String> {
    let file = quote(&recorded.file);
    let lost = || format!("{} of {} are lost", count(recorded.lost), events(recorded.events + recorded.lost));
    match (recorded.failure, recorded.faults.first()) {
        (Some(errno), _) if !recorded.is_whole => {
            Some(format!("warning: the recording {file} can't be read: {}", ferry_io::Cause::Errno(errno)))
        }
        (Some(errno), _) => {
            let why = ferry_io::Cause::Errno(errno);
            Some(format!("warning: the recording {file} is not complete: {why}; {}", lost()))
        }
        (None, _) if recorded.lost > 0 => {
            Some(format!("warning: the recording {file} is not complete: {}", lost()))
        }
        (None, Some(fault)) => Some(format!("warning: the recording {file} contradicts itself: {fault}")),
        (None, None) => None,
    }
}

fn events(total: u64) -> String {
    counted(total, "event", "events")
}

#[cfg(test)]
mod tests;

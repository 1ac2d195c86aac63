//! `--trace`: the file of the recording, and the messages about it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ferry_io::event::Recorded;

use crate::arguments::Usage;
use crate::quote::quote;
use crate::units::{count, counted};

/// File named by the option, or else by the environment.
pub(crate) fn file(option: Option<&Path>, environment: Option<OsString>) -> Option<PathBuf> {
    let of_environment = || environment.filter(|file| !file.is_empty());
    option.map(Path::to_owned).or_else(|| of_environment().map(PathBuf::from))
}

/// Refuses a recording in one of the `named` files, which are to be copied or written.
///
/// Entries below them are not checked. If one has the name at the end of the run, the recording gets another
/// name.
///
/// # Errors
/// The path is one of them.
pub(super) fn check(path: &Path, named: &[PathBuf]) -> Result<(), Usage> {
    // `%n` becomes a number that makes the name unique.
    if path.as_os_str().as_bytes().ends_with(b"%n") || !named.iter().any(|other| is_same(path, other)) {
        return Ok(());
    }
    Err(Usage::plain(format!(
        "cannot record to {}: the copy reads or writes this file; choose another one",
        quote(path)
    )))
}

/// Returns true if both are the same file, or would be once created.
fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    if let found @ Some(_) = number(one) {
        return found == number(other);
    }
    let folder = |path: &Path| match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => number(Path::new(".")),
        Some(folder) => number(folder),
        None => None,
    };
    one.file_name() == other.file_name() && folder(one).is_some_and(|it| folder(other) == Some(it))
}

/// Reports a recording that did not get the requested name.
pub(super) fn elsewhere(recorded: &Recorded) -> Option<String> {
    let told = quote(recorded.instead_of.as_ref()?);
    let file = quote(&recorded.file);
    Some(format!("warning: recorded to {file}, because {told} may not be replaced"))
}

pub(super) fn warning(recorded: &Recorded) -> Option<String> {
    let file = quote(&recorded.file);
    let lost =
        || format!("{} of {} were lost", count(recorded.lost), events(recorded.events + recorded.lost));
    match (recorded.failure, recorded.faults.first()) {
        (Some(errno), _) if !recorded.is_whole => {
            Some(format!("warning: cannot record to {file}: {}", ferry_io::Cause::Errno(errno)))
        }
        (Some(errno), _) => {
            let why = ferry_io::Cause::Errno(errno);
            Some(format!("warning: the recording {file} is incomplete: {why}; {}", lost()))
        }
        (None, _) if recorded.lost > 0 => {
            Some(format!("warning: the recording {file} is incomplete: {}", lost()))
        }
        (None, Some(fault)) => Some(format!("warning: the recording {file} is inconsistent: {fault}")),
        (None, None) => None,
    }
}

fn events(total: u64) -> String {
    counted(total, "event", "events")
}

#[cfg(test)]
mod tests;

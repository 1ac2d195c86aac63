//! `--trace`: where the run is recorded, and what is told of the recording.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ferry_io::event::Recorded;

use crate::arguments::Usage;
use crate::quote::quote;
use crate::units::{count, counted};

/// The file of the run's recording: as the option says, else as the environment does.
pub(super) fn file(option: Option<&Path>, environment: Option<OsString>) -> Option<PathBuf> {
    let of_environment = || environment.filter(|file| !file.is_empty());
    option.map(Path::to_owned).or_else(|| of_environment().map(PathBuf::from))
}

/// Refuses to record in what is plainly to be copied or written: the `named` are. What lies within them is nobody's to
/// look for now; the recording gets another name where it is found to be taken when the run is over.
///
/// # Errors
/// If it is one of them.
pub(super) fn check(path: &Path, named: &[PathBuf]) -> Result<(), Usage> {
    // A number makes a name that nothing has.
    if path.as_os_str().as_bytes().ends_with(b"%n") || !named.iter().any(|other| is_same(path, other)) {
        return Ok(());
    }
    Err(Usage::plain(format!(
        "the run can't be recorded in {}, which is to be copied or written",
        quote(path)
    )))
}

/// Whether both are one file, or will be: what is to be written may not be there yet.
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

/// Where the recording is, if not where it should be; on one line.
pub(super) fn elsewhere(recorded: &Recorded) -> Option<String> {
    let told = quote(recorded.instead_of.as_ref()?);
    let file = quote(&recorded.file);
    Some(format!("warning: the run is recorded in {file}: what {told} is now is not replaced"))
}

/// What is wrong with the recording, on one line; nothing if it is whole.
pub(super) fn warning(recorded: &Recorded) -> Option<String> {
    let file = quote(&recorded.file);
    let lost = || format!("{} of {} are lost", count(recorded.lost), events(recorded.events + recorded.lost));
    match (recorded.failure, recorded.faults.first()) {
        (Some(errno), _) if !recorded.is_whole => {
            Some(format!("warning: the run is not recorded in {file}: {}", ferry_io::Cause::Errno(errno)))
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

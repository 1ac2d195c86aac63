//! What a copy takes from what `ferry tune` measured of its source: how many cold reads may wait at a time.
//!
//! The profile of the first operand's filesystem is looked for, by plain calls before the run; where nobody has kept one,
//! that costs looking whether there is a folder for them. docs/decisions/0013 has the figures for what is taken, and for
//! what is not: the rest of a profile is learned faster by asking the kernel than by trusting a file.

use std::path::{Path, PathBuf};

use ferry_copy::Item;
use ferry_io::Paths;
use ferry_tune::{Place, Profile, kernel, store};

use crate::quote::quote;

#[cfg(test)]
mod tests;

/// Whether profiles are used (`--profile`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Use {
    /// Where there is one.
    #[default]
    Auto,
    /// Not at all.
    None,
}

impl Use {
    /// As the command line names them.
    pub(crate) const NAMES: [(&str, Self); 2] = [("auto", Self::Auto), ("none", Self::None)];
}

/// What is told of a profile.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// It is there and can't be used: once on standard error.
    Warning(String),
    /// What is taken from it, or why nothing: with `--explain`.
    Explained(String),
}

/// The least and the most threads that wait. Fewer than without a profile are slower wherever another device than the
/// measured one is waited for, too; more cost memory and time to start on devices that answer at once.
const LEAST_THREADS: usize = 32;
const MOST_THREADS: usize = 64;
/// With 32 a processor, copies from a fast device had 0.8 of the speed.
const THREADS_OF_A_PROCESSOR: usize = 16;

/// Sets what the profile of the first operand's filesystem says; what is to be told, if anything.
pub(crate) fn apply(
    paths: &Paths,
    items: &[Item],
    recursive: bool,
    io: &mut ferry_io::Options,
) -> Option<Note> {
    // Fewer files than threads never wait for a thread.
    let item = items.first().filter(|_| recursive || items.len() > io.pool_threads)?;
    let folders = store::folders();
    if !store::is_there(&folders) {
        return None;
    }
    let (folder, uuid) = identify(paths, &item.source)?;
    match find(&folders, &folder, uuid) {
        Ok(None) => None,
        Ok(Some((path, Ok(profile)))) => Some(Note::Explained(take(&path, &profile, io))),
        Ok(Some((path, Err(why)))) => {
            Some(Note::Explained(format!("profile {} is not used: {why}", quote(&path))))
        }
        Err(told) => Some(Note::Warning(told)),
    }
}

/// A folder on the operand's filesystem, and the filesystem's UUID. The copy goes on from the folders that are reached for
/// that, so that no path is walked twice.
fn identify(paths: &Paths, source: &Path) -> Option<(PathBuf, Option<String>)> {
    let parent = || source.parent().map_or_else(PathBuf::new, Path::to_owned);
    let found = match paths.folder(source) {
        Ok(folder) => Some((source.to_owned(), folder)),
        Err(_) => paths.folder(&parent()).ok().map(|folder| (parent(), folder)),
    };
    let (path, folder) = found?;
    let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
    Some((path, folder.filesystem_uuid().ok()))
}

/// A profile that is believed, or why it says nothing of what is there now.
type Known = (PathBuf, Result<Profile, String>);

fn find(folders: &[PathBuf], folder: &Path, uuid: Option<String>) -> Result<Option<Known>, String> {
    let place = || Place::with(folder, uuid.clone()).ok();
    let identity = uuid.clone().or_else(|| place().map(|place| place.identity));
    let Some(identity) = identity else { return Ok(None) };
    let found = store::find(folders, &identity);
    let found = found.map_err(|(path, why)| format!("profile {} is not used: {why}", quote(&path)))?;
    let Some(store::Stored { path, profile }) = found else { return Ok(None) };
    let Some(place) = place() else { return Ok(None) };
    let stale = profile.stale(&place, &kernel());
    Ok(Some((path, stale.map_or(Ok(profile), Err))))
}

/// Sets the knobs; what they are set to, in words.
fn take(path: &Path, profile: &Profile, io: &mut ferry_io::Options) -> String {
    let (path, date) = (quote(path), &profile.about.date);
    let Some(direct) = &profile.direct else {
        return format!("profile {path} of {date} has no figures of direct reads: nothing is taken from it");
    };
    let enough = usize::try_from(direct.enough_depth).unwrap_or(MOST_THREADS);
    let most = (THREADS_OF_A_PROCESSOR * io.workers.get()).clamp(LEAST_THREADS, MOST_THREADS);
    io.pool_threads = enough.clamp(LEAST_THREADS, most);
    format!(
        "profile {path} of {date}: {} reads in flight are enough, so {} threads may wait",
        direct.enough_depth, io.pool_threads
    )
}

//! Applies the profile that `ferry tune` measured: it sets how many cold reads may wait at once.
//!
//! This looks up the profile of the first operand's filesystem before the run. Without profiles it costs only
//! a check for their directory. docs/decisions/0013 has the figures. The rest of a profile is unused, because
//! probing the kernel is faster than trusting a file.

use std::path::{Path, PathBuf};

use ferry_copy::Item;
use ferry_io::Paths;
use ferry_tune::{Direct, Place, Profile, kernel, store};

use crate::quote::quote;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ProfileUse {
    #[default]
    Auto,
    None,
}

impl ProfileUse {
    pub(crate) const NAMES: [(&str, Self); 2] = [("auto", Self::Auto), ("none", Self::None)];
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A profile exists but is unusable; printed once to standard error.
    Warning(String),
    /// The effect of the profile, or why it has none; printed with `--explain`.
    Explained(String),
}

/// Bounds of the pool's threads. Fewer are slower if another device must be waited for. More cost memory and
/// start-up time on devices that answer at once.
const LEAST_THREADS: usize = 32;
const MOST_THREADS: usize = 64;
/// With 32 per processor, copies from a fast device had 0.8 of the speed.
const THREADS_OF_A_PROCESSOR: usize = 16;

/// Applies the profile of the first operand's filesystem, and returns the message about it.
pub(crate) fn apply(
    paths: &Paths,
    items: &[Item],
    recursive: bool,
    io: &mut ferry_io::Options,
) -> Option<Note> {
    // A run with fewer files than threads never waits for a thread.
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

/// Finds a directory on the operand's filesystem and the filesystem's UUID.
///
/// The copier reuses the directories opened here.
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

/// A profile that applies, or the reason why it does not.
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

/// Sets the number of threads, and describes the change.
fn take(path: &Path, profile: &Profile, io: &mut ferry_io::Options) -> String {
    let (path, date) = (quote(path), &profile.about.date);
    let Some(direct) = &profile.direct else {
        return format!("profile {path} of {date} is not used: it has no figures for direct reads");
    };
    io.pool_threads = threads(direct, io.workers.get());
    format!(
        "profile {path} of {date}: {} reads in flight are enough, so the pool has {} threads",
        direct.enough_depth, io.pool_threads
    )
}

/// Number of the pool's threads, each of which waits for cold reads, in copies from a filesystem with these figures.
pub(crate) fn threads(direct: &Direct, workers: usize) -> usize {
    let enough = usize::try_from(direct.enough_depth).unwrap_or(MOST_THREADS);
    let most = THREADS_OF_A_PROCESSOR.saturating_mul(workers).clamp(LEAST_THREADS, MOST_THREADS);
    enough.clamp(LEAST_THREADS, most)
}

//! The trash: a tree like the target, of the entries that a run has taken away.
//!
//! It is made when the first entry goes there. Its folders have the attributes that the target's had. A file marks it, so
//! that it is part of no tree, wherever it is, and that no other folder is taken for a trash.

use std::path::{Path, PathBuf};

use ferry_copy::{Copier, Failure, FailureKind, Start, Verb};
use ferry_io::{Dir, Entry, Errno, FileKind, Name, OpenHow, Time, protect};

use super::way::{Missing, Way};

/// Name of the file that marks a trash.
pub(crate) const MARK: &[u8] = b".ferry-is-trash";

/// Trashes of one second.
const ATTEMPTS: u32 = 100;

/// Where taken entries go.
pub(crate) struct Trash<'a> {
    copier: &'a Copier,
    /// The target's root.
    target: Dir,
    target_path: PathBuf,
    /// Folder of the trashes of all runs, which may be missing: the folder that it is in, and its name.
    above: Dir,
    name: Name,
    path: PathBuf,
    date: String,
    made: Option<Made<'a>>,
}

/// A trash that was made.
struct Made<'a> {
    way: Way<'a>,
    path: PathBuf,
    dir: Dir,
    /// Folder of the trashes, and the name in it.
    all: Dir,
    name: Name,
}

/// Place of the trashes of all runs.
pub(crate) struct Place {
    /// The folder that they are in.
    pub(crate) above: Dir,
    /// Name of their folder there.
    pub(crate) name: Name,
    /// Its path.
    pub(crate) path: PathBuf,
}

impl<'a> Trash<'a> {
    pub(crate) fn new(
        copier: &'a Copier,
        (target, target_path): (Dir, PathBuf),
        place: Place,
        now: Time,
    ) -> Self {
        let Place { above, name, path } = place;
        Self { copier, target, target_path, above, name, path, date: date(now), made: None }
    }

    /// Returns the folder of the trash for the entries of a folder; made if it is missing.
    ///
    /// # Errors
    /// After a failure that was reported.
    pub(crate) async fn folder(&mut self, folder: &Path) -> Result<Dir, ()> {
        let way = match &mut self.made {
            Some(made) => &mut made.way,
            None => {
                let made = self.make().await.map_err(|kind| {
                    let (source, target) = (self.target_path.clone(), self.path.clone());
                    self.copier.fail_at(Failure { source, target, kind });
                })?;
                &mut self.made.insert(made).way
            }
        };
        let pair = way.go(folder).await.ok_or(())?;
        // It may have its final mode by now.
        self.copier.lend(&pair, false).await;
        match self.copier.folders(&pair).await {
            Ok((_, trash)) => Ok(trash),
            Err(kind) => {
                way.fail_root(kind);
                Err(())
            }
        }
    }

    async fn make(&self) -> Result<Made<'a>, FailureKind> {
        let failed = |error| FailureKind::Io { verb: Verb::CreateDirectory, error };
        match self.above.make_dir(&self.name, 0o700).await {
            Err(error) if error.is(Errno::EXIST) => {}
            made => made.map_err(failed)?,
        }
        let all = self.above.open_dir(&self.name).await.map_err(failed)?;
        for attempt in 0..ATTEMPTS {
            let text = if attempt == 0 { self.date.clone() } else { format!("{}.{attempt}", self.date) };
            let Some(name) = Name::new(text.as_bytes()) else { break };
            match all.make_dir(&name, 0o700).await {
                Err(error) if error.is(Errno::EXIST) => continue,
                made => made.map_err(failed)?,
            }
            let path = self.path.join(text);
            let dir = all.open_dir(&name).await.map_err(failed)?;
            mark(&dir).await.map_err(failed)?;
            let start = Start {
                source: self.target.clone(),
                target: dir.clone(),
                source_path: self.target_path.clone(),
                target_path: path.clone(),
                // Its own attributes stay private.
                is_new: false,
            };
            let pair = self.copier.start(start).await?;
            let paths = (self.target_path.clone(), path.clone());
            let way = Way::new(self.copier, pair, paths, Missing::Make);
            return Ok(Made { way, path, dir, all, name });
        }
        let cause = ferry_io::Cause::Errno(Errno::EXIST);
        Err(failed(ferry_io::Error { operation: ferry_io::Operation::MakeDirectory, cause }))
    }

    /// Finishes its folders; returns its path if it was made. One that got no entries is removed.
    pub(crate) async fn finish(self) -> Option<PathBuf> {
        let Made { way, path, dir, all, name } = self.made?;
        // Its root stays private.
        way.finish_below().await;
        if remove_if_empty(&dir, &all, &name).await { None } else { Some(path) }
    }
}

/// Returns true if an entry that was listed marks its folder as a trash.
pub(crate) fn marks_trash(entry: &Entry) -> bool {
    entry.name.as_bytes() == MARK && entry.kind.is_none_or(|kind| kind == FileKind::Regular)
}

/// Returns true if a folder is marked as a trash.
///
/// # Errors
/// Those of looking for the mark.
pub(crate) async fn is_trash(dir: &Dir) -> ferry_io::Result<bool> {
    match dir.stat_entry(&mark_name(), false).await {
        Ok(found) => Ok(found.kind == FileKind::Regular),
        Err(error) if error.is(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a trash if it has nothing but its mark. Returns true if it is gone.
pub(crate) async fn remove_if_empty(dir: &Dir, all: &Dir, name: &Name) -> bool {
    let Ok(part) = dir.list(Some(0)).await else { return false };
    if part.next.is_some() || part.entries.iter().any(|entry| entry.name.as_bytes() != MARK) {
        return false;
    }
    let removed = async {
        dir.unlink(&mark_name()).await?;
        // An entry that has appeared meanwhile keeps it.
        let removed = all.remove_dir(name).await;
        if removed.is_err() {
            mark(dir).await?;
        }
        removed
    };
    protect(removed).await.is_ok()
}

async fn mark(dir: &Dir) -> ferry_io::Result<()> {
    dir.open(&mark_name(), OpenHow::create(0o600)).await?.close()
}

fn mark_name() -> Name {
    Name::new(MARK).unwrap_or_else(|| unreachable!("letters are a name"))
}

/// Returns a time as `2026-11-23T055812Z`.
fn date(time: Time) -> String {
    const DAY: i64 = 86_400;
    let (days, seconds) = (time.seconds.div_euclid(DAY), time.seconds.rem_euclid(DAY));
    // Days since March 1 of year 0, in eras of 400 years (the Gregorian calendar repeats).
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests;

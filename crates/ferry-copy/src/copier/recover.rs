//! Entries that killed runs have left aside: each is removed, goes to the trash, or gets its name back.
//!
//! The name of such an entry describes the file that the run had made, the entry that was to lose its name, and that name.
//!
//! | the entry is | and its name | it |
//! |---|---|---|
//! | the file that the run had made | | is removed |
//! | the one that was to lose its name | is in use | goes to the trash, or is removed |
//! | the same | is free | gets its name back; goes if the run deletes, and the source lacks the name |
//! | another, so it is foreign | is free | gets its name back |
//! | the same | is in use | stays aside, and is reported; goes if the run deletes |
//!
//! This comes after all other actions except deletions. An entry keeps its hidden name in the trash if the entry with its name
//! may also go to the trash.
//!
//! Only entries that were aside when no other run worked in the folder are seen to (`staging/clear.rs`).

use ferry_io::{Dir, Errno, FileKind, Name, Result as IoResult, Stat, protect};

use super::swap::{move_into, remove};
use super::{Copier, Pair, if_there};
use crate::folder::Dirs;
use crate::mutex::lock;
use crate::options::Takes;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::staging::{self, Aside};

/// State of an entry that was aside.
enum Outcome {
    /// It is aside no more.
    Done,
    /// It is foreign, and its name is in use.
    Stays,
}

impl Copier {
    /// Returns the entries that killed runs have left aside in the target of a pair, for [`Self::recover`], and forgets them.
    #[must_use]
    pub fn take_asides(&self, pair: &Pair) -> Vec<Name> {
        std::mem::take(&mut *lock(&pair.0.asides))
    }

    /// Removes entries that killed runs have left aside in the target of a pair, moves them to its trash, or gives them
    /// their names back. Reports those that stay.
    pub async fn recover(&self, pair: &Pair, asides: Vec<Name>, takes: Takes) {
        let folder = pair.0.facts().map_or(0, |facts| facts.target.1);
        for name in asides {
            let Some(described) = staging::aside_of(&name, folder) else { continue };
            match protect(self.recover_one(pair, (&name, &described), takes)).await {
                Ok(Outcome::Done) => pair.touch(),
                Ok(Outcome::Stays) => {
                    let error = staging::taken();
                    let kind = FailureKind::KeptAside { aside: Some(name.clone()), error };
                    self.fail(pair, &described.name, kind);
                }
                Err(kind) => self.fail(pair, &name, kind),
            }
        }
    }

    async fn recover_one(
        &self,
        pair: &Pair,
        (aside, described): (&Name, &Aside),
        takes: Takes,
    ) -> Result<Outcome, FailureKind> {
        let Dirs { source, target: dir } = self.run.dirs(&pair.0).await.during(Verb::StatTarget)?;
        let found = if_there(dir.stat_entry(aside, false).await).during(Verb::StatTarget)?;
        let Some(found) = found else { return Ok(Outcome::Done) };
        if described.is_made(&found) {
            return dir.unlink(aside).await.during(Verb::Remove).map(|()| Outcome::Done);
        }
        let taken_by = if_there(dir.stat_entry(&described.name, false).await).during(Verb::StatTarget)?;
        let is_foreign = !described.is_seen(&found);
        if taken_by.is_some() && is_foreign && !takes.deletes {
            return Ok(Outcome::Stays);
        }
        let in_source =
            if_there(source.stat_entry(&described.name, false).await).during(Verb::Stat)?.is_some();
        if taken_by.is_none() && (is_foreign || in_source || !takes.deletes) {
            let given = staging::rename_into(&dir, aside, &dir, &described.name).await;
            return given.during(Verb::Restore).map(|()| Outcome::Done);
        }
        // A folder may give way to a file yet.
        let may_go = |by: &Stat| !in_source || takes.excluded || by.kind == FileKind::Directory;
        let in_trash = if taken_by.as_ref().is_some_and(may_go) { aside } else { &described.name };
        let trash = pair.trash();
        let disposed = dispose(&self.run, &dir, (aside, in_trash), &found, trash.as_ref());
        disposed.await.during(Verb::Remove).map(|()| Outcome::Done)
    }
}

/// Moves an entry to the trash, if there is one, or removes it.
async fn dispose(
    run: &Run,
    dir: &Dir,
    (aside, name): (&Name, &Name),
    found: &Stat,
    trash: Option<&Dir>,
) -> IoResult<()> {
    let Some(trash) = trash else { return remove(run, dir, aside, found.kind).await };
    match move_into(run, (dir, aside), (trash, name)).await {
        // This run has moved an entry of that name there.
        Err(error) if error.is(Errno::EXIST) => move_into(run, (dir, aside), (trash, aside)).await,
        moved => moved,
    }
}

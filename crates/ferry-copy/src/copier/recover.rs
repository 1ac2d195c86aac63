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
//! This comes after all else that may need these names, but for deletions. What these take to the trash keeps its name there:
//! an entry that was aside, and whose name is in use in the target but not in the source, keeps its hidden name.
//!
//! Only entries that were aside when no other run worked in the folder are seen to (`staging/clear.rs`).

use ferry_io::{Dir, Errno, Name, Result as IoResult, Stat, protect};

use super::swap::remove;
use super::{Copier, Pair, if_there};
use crate::folder::Dirs;
use crate::mutex::lock;
use crate::report::{During as _, FailureKind, Verb};
use crate::staging::{self, Aside};

/// State of an entry that was aside.
enum Outcome {
    /// It is aside no more.
    Done,
    /// It is foreign, and its name is in use.
    Stays,
}

impl Copier {
    /// Takes note of the entries that killed runs have left aside in the target of a pair, until [`Self::recover`].
    #[must_use]
    pub fn take_asides(&self, pair: &Pair) -> Vec<Name> {
        std::mem::take(&mut *lock(&pair.0.asides))
    }

    /// Removes entries that killed runs have left aside in the target of a pair, moves them to its trash, or gives them
    /// their names back. Reports those that stay. A run that `deletes` what the source lacks takes more of them away.
    pub async fn recover(&self, pair: &Pair, asides: Vec<Name>, deletes: bool) {
        let folder = pair.0.facts().map_or(0, |facts| facts.target.1);
        for name in asides {
            let Some(described) = staging::aside_of(&name, folder) else { continue };
            match protect(self.recover_one(pair, (&name, &described), deletes)).await {
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
        deletes: bool,
    ) -> Result<Outcome, FailureKind> {
        let Dirs { source, target: dir } = self.run.dirs(&pair.0).await.during(Verb::StatTarget)?;
        let found = if_there(dir.stat_entry(aside, false).await).during(Verb::StatTarget)?;
        let Some(found) = found else { return Ok(Outcome::Done) };
        if described.is_made(&found) {
            return dir.unlink(aside).await.during(Verb::Remove).map(|()| Outcome::Done);
        }
        let is_taken =
            if_there(dir.stat_entry(&described.name, false).await).during(Verb::StatTarget)?.is_some();
        let is_foreign = !described.is_seen(&found);
        if is_taken && is_foreign && !deletes {
            return Ok(Outcome::Stays);
        }
        let in_source =
            if_there(source.stat_entry(&described.name, false).await).during(Verb::Stat)?.is_some();
        if !is_taken && (is_foreign || in_source || !deletes) {
            let given = staging::rename_into(&dir, aside, &dir, &described.name).await;
            return given.during(Verb::Restore).map(|()| Outcome::Done);
        }
        // The entry that has the name may go to the trash yet.
        let in_trash = if is_taken && !in_source { aside } else { &described.name };
        dispose(&dir, (aside, in_trash), &found, pair.trash().as_ref()).await.during(Verb::Remove)?;
        Ok(Outcome::Done)
    }
}

/// Moves an entry to the trash, if there is one, or removes it.
async fn dispose(
    dir: &Dir,
    (aside, name): (&Name, &Name),
    found: &Stat,
    trash: Option<&Dir>,
) -> IoResult<()> {
    let Some(trash) = trash else { return remove(dir, aside, found.kind).await };
    match staging::rename_into(dir, aside, trash, name).await {
        // This run has moved an entry of that name there.
        Err(error) if error.is(Errno::EXIST) => staging::rename_into(dir, aside, trash, aside).await,
        moved => moved,
    }
}

//! Looking at entries. Nothing here depends on other entries.

use std::cell::RefCell;

use ferry_copy::{Algorithm, FailureKind, Verb as Step};
use ferry_io::{Dir, Errno, FileKind, Io, Name, Result as IoResult, Stat, for_each};

use super::choices::{Choices, NEVER};
use crate::decide::{Comparison, Decision, Reason, Rules, decide};
use crate::facts::{self, Bytes};
use crate::merge::Row;
use crate::sink::Hashed;

/// Rows examined at once.
const AT_ONCE: usize = 64;

/// A row with the attributes of its two sides.
pub(super) enum Examined {
    /// Nothing is to be done: it has vanished.
    Nothing,
    /// The trash, which is no part of either tree.
    Trash,
    /// The source has it. If the target is a regular file that stays, and there is a manifest, with the hash of the target.
    Source(Stat, Option<Stat>, Decision, Option<Hashed>),
    /// Only the target has it.
    Target(Stat),
    LeftOut(LeftOut),
    Failed(FailureKind),
}

/// A row as far as attributes decide about it.
pub(super) enum Judged {
    Settled(Examined),
    /// Both sides have it. The decision may need more than attributes.
    Pair(Stat, Stat, Decision),
}

/// Looks at entries; decides nothing that depends on other entries.
pub(super) struct Examiner<'a> {
    pub(super) io: &'a Io,
    pub(super) choices: &'a Choices,
}

impl Examiner<'_> {
    /// Examines rows of two open folders. `left_out` returns why an entry takes no part.
    ///
    /// Entries of a folder are examined by few requests (`together.rs`). What these do not settle is examined row by row.
    pub(super) async fn examine(
        &self,
        sides: (Option<&Dir>, Option<&Dir>),
        rows: &[Row],
        left_out: impl Fn(&Name, Option<&Stat>, Option<&Stat>) -> Option<LeftOut>,
    ) -> Vec<Examined> {
        let mut found: Vec<Option<Examined>> = self.examine_together(sides, rows, &left_out).await;
        let rest: Vec<usize> = (0..rows.len()).filter(|&index| found[index].is_none()).collect();
        if !rest.is_empty() {
            let one_by_one = RefCell::new(&mut found);
            let ended = for_each(AT_ONCE, rest, async |index| {
                let examined =
                    self.examine_row(sides, &rows[index], &left_out).await.unwrap_or_else(Examined::Failed);
                one_by_one.borrow_mut()[index] = Some(examined);
                if ferry_io::is_cancelled() { Err(()) } else { Ok(()) }
            });
            // Ends early only in a cancelled run.
            ended.await.ok();
        }
        found.into_iter().map(|found| found.unwrap_or(Examined::Nothing)).collect()
    }

    async fn examine_row(
        &self,
        (source, target): (Option<&Dir>, Option<&Dir>),
        row: &Row,
        left_out: &impl Fn(&Name, Option<&Stat>, Option<&Stat>) -> Option<LeftOut>,
    ) -> Result<Examined, FailureKind> {
        let of_source = look(source.filter(|_| row.source.is_some()), &row.name).await;
        let of_source = of_source.map_err(|error| failed(Step::Stat, error))?;
        // A name that the target does not list may lead to an entry all the same, if names are folded.
        let of_target = look(target, &row.name).await;
        let of_target = of_target.map_err(|error| failed(Step::StatTarget, error))?;
        let (stat, existing, decision) = match self.judge(row, of_source, of_target, left_out)? {
            Judged::Settled(examined) => return Ok(examined),
            Judged::Pair(source, target, decision) => (source, target, decision),
        };
        let decision = match (source, target) {
            (Some(source), Some(target)) => {
                let rules = &self.choices.rules;
                let both = InBoth { source, target, name: &row.name, rules };
                self.refine(decision, &stat, &existing, both).await?
            }
            _ => decision,
        };
        let digest = match (target, self.choices.digest) {
            (Some(dir), Some(algorithm)) if stays(decision, &existing) => {
                Some(self.hash(dir, &row.name, &existing, algorithm).await?)
            }
            _ => None,
        };
        Ok(Examined::Source(stat, Some(existing), decision, digest))
    }

    /// Decides about a row by the attributes of its two sides.
    pub(super) fn judge(
        &self,
        row: &Row,
        of_source: Option<Stat>,
        of_target: Option<Stat>,
        left_out: &impl Fn(&Name, Option<&Stat>, Option<&Stat>) -> Option<LeftOut>,
    ) -> Result<Judged, FailureKind> {
        if row.target.is_none() && of_source.is_some() && of_target.is_some() {
            return Err(FailureKind::Unlisted);
        }
        let is_trash = |stat: &Stat| self.choices.trash == Some((stat.device, stat.inode));
        if of_source.as_ref().or(of_target.as_ref()).is_some_and(is_trash) {
            return Ok(Judged::Settled(Examined::Trash));
        }
        let left_out = left_out(&row.name, of_source.as_ref(), of_target.as_ref());
        if of_target.as_ref().is_some_and(is_trash) {
            // The source has an entry of its own at this path.
            let takes_part = left_out.is_none();
            return if takes_part {
                Err(FailureKind::NotReplaced)
            } else {
                Ok(Judged::Settled(Examined::Trash))
            };
        }
        if let Some(left_out) = left_out {
            return Ok(Judged::Settled(Examined::LeftOut(left_out)));
        }
        Ok(match (of_source, of_target) {
            (None, Some(target)) if row.source.is_none() => Judged::Settled(Examined::Target(target)),
            // It has vanished since it was listed.
            (None, _) => Judged::Settled(Examined::Nothing),
            (Some(stat), None) => Judged::Settled(Examined::Source(stat, None, Decision::Create, None)),
            (Some(stat), Some(existing)) => {
                let are_files = [stat, existing].iter().all(|side| side.kind == FileKind::Regular);
                let decision = match row.unfinished.contains(&existing.inode) && are_files {
                    true => Decision::Replace(Reason::Unfinished),
                    false => decide(&stat, Some(&existing), &self.choices.rules),
                };
                Judged::Pair(stat, existing, decision)
            }
        })
    }

    /// Returns the hash of a file of the target. A file with several names is read by one of them.
    async fn hash(
        &self,
        dir: &Dir,
        name: &Name,
        seen: &Stat,
        algorithm: Algorithm,
    ) -> Result<Hashed, FailureKind> {
        let Some(file) = self.choices.once.file(seen) else {
            return self.read_hash(dir, name, seen, algorithm).await;
        };
        let _turn = file.turn().await.map_err(|error| failed(Step::ReadTarget, error))?;
        if let Some(digest) = file.digest(seen) {
            return Ok(Ok(digest));
        }
        let hashed = self.read_hash(dir, name, seen, algorithm).await?;
        if let Ok(digest) = hashed {
            file.note(digest, seen);
        }
        Ok(hashed)
    }

    /// Reads a file of the target, and returns its hash. That the file may not be read is no failure of its entry, of which
    /// only attributes are compared.
    async fn read_hash(
        &self,
        dir: &Dir,
        name: &Name,
        seen: &Stat,
        algorithm: Algorithm,
    ) -> Result<Hashed, FailureKind> {
        let permit =
            self.choices.content_permits.acquire().await.map_err(|error| failed(Step::ReadTarget, error))?;
        // Boxed: its state would be part of every entry's.
        let hashed =
            Box::pin(facts::hash((self.io, self.choices.gate.as_deref()), dir, name, seen, algorithm)).await;
        drop(permit);
        match hashed {
            Ok(Some(digest)) => Ok(Ok(digest)),
            Ok(None) => Err(FailureKind::Changed),
            Err(error) if error.is(Errno::ACCESS) || error.is(Errno::PERM) => Ok(Err(error)),
            Err(error) => Err(failed(Step::ReadTarget, error)),
        }
    }

    /// Completes a decision that attributes alone don't make.
    async fn refine(
        &self,
        decision: Decision,
        source: &Stat,
        target: &Stat,
        both: InBoth<'_>,
    ) -> Result<Decision, FailureKind> {
        let InBoth { source: of_source, target: of_target, name, rules } = both;
        let mut decision = decision;
        if decision == Decision::CompareContent {
            let permit =
                self.choices.content_permits.acquire().await.map_err(|error| failed(Step::Read, error))?;
            // Boxed: its state would be part of every entry's.
            let how = (self.io, self.choices.gate.as_deref());
            let comparison = facts::compare_content(how, (of_source, source), (of_target, target), name);
            let bytes = Box::pin(comparison).await;
            drop(permit);
            match bytes? {
                Bytes::Equal => {}
                Bytes::Different => return Ok(Decision::Replace(Reason::Content)),
                Bytes::Changed => return Err(FailureKind::Changed),
            }
            // The rest is a matter of attributes.
            let rest = Rules {
                comparison: Comparison::Size,
                keeps_newer: false,
                unfinished: NEVER,
                doubted_since: None,
                ..*rules
            };
            decision = decide(source, Some(target), &rest);
        }
        let stays = matches!(decision, Decision::Equal | Decision::SetAttributes);
        if stays && source.kind == FileKind::Symlink {
            let equal = facts::has_equal_text(of_source, of_target, name).await;
            if !equal.map_err(|error| failed(Step::ReadLink, error))? {
                return Ok(Decision::Replace(Reason::Text));
            }
        }
        if decision == Decision::Equal {
            let equal = facts::has_equal_xattrs(of_source, of_target, name, rules).await;
            if !equal.map_err(|error| failed(Step::ListXattr, error))? {
                return Ok(Decision::SetAttributes);
            }
        }
        Ok(decision)
    }
}

/// An entry that takes no part.
pub(super) struct LeftOut {
    /// The target's entry of this name.
    pub(super) target: Option<Stat>,
    /// The pattern or option that leaves it out.
    pub(super) why: String,
    /// Set if a pattern does.
    pub(super) by_pattern: bool,
    /// Set if it is a folder.
    pub(super) is_folder: bool,
}

/// An entry's folders in both trees.
struct InBoth<'a> {
    source: &'a Dir,
    target: &'a Dir,
    name: &'a Name,
    rules: &'a Rules,
}

/// Returns the attributes of an entry; `None` if it is not there.
async fn look(dir: Option<&Dir>, name: &Name) -> IoResult<Option<Stat>> {
    let Some(dir) = dir else { return Ok(None) };
    match dir.stat_entry(name, false).await {
        Err(error) if error.is(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns true if an entry is a folder on both sides.
pub(super) fn has_both_folders(examined: &Examined) -> bool {
    matches!(examined, Examined::Source(source, Some(target), ..) if is_folder(source) && is_folder(target))
}

/// Returns true if a decision leaves the bytes of a regular file as they are.
fn stays(decision: Decision, target: &Stat) -> bool {
    let stays = match decision {
        Decision::Equal | Decision::SetAttributes | Decision::KeepNewer => true,
        Decision::Create | Decision::Exchange | Decision::Replace(_) | Decision::CompareContent => false,
    };
    stays && target.kind == FileKind::Regular
}

fn failed(verb: Step, error: ferry_io::Error) -> FailureKind {
    FailureKind::Io { verb, error }
}

/// Returns true if an entry is a folder.
pub(super) fn is_folder(stat: &Stat) -> bool {
    stat.kind == FileKind::Directory
}

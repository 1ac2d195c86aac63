//! Deciding about rows that were examined, one after another.

use std::collections::VecDeque;
use std::path::Path;

use ferry_copy::{FailureKind, Verb as Step};
use ferry_io::{FileKind, Name, Stat};

use super::Walk;
use super::examined::{Examined, Examiner, LeftOut, is_folder};
use super::level::{Descent, To};
use crate::decide::{Decision, Reason};
use crate::merge::Row;
use crate::plan::Verb;
use crate::sink::{Hashed, Planned, planned};

impl Walk<'_> {
    /// Decides about some rows of the last level: returns the actions, and notes the folders to be entered.
    pub(super) async fn decide(&mut self, rows: Vec<Row>) -> Vec<Planned> {
        if let Err(kind) = self.reopen().await {
            let path = self.levels.last().map(|level| level.path.clone()).unwrap_or_default();
            self.fail(&path, kind);
            self.keep_last();
            return Vec::new();
        }
        let Some(level) = self.levels.last() else { return Vec::new() };
        let sides = (level.source.dir.as_ref(), level.target.dir.as_ref());
        let examiner = Examiner { io: self.io, choices: &self.choices };
        let examined =
            examiner.examine(sides, &rows, |name, source, target| self.left_out(name, source, target)).await;
        self.settle(rows, examined)
    }

    /// Decides about rows of the last level that were examined.
    pub(super) fn settle(&mut self, rows: Vec<Row>, examined: Vec<Examined>) -> Vec<Planned> {
        let of_source = rows.iter().filter(|row| row.source.is_some()).count() as u64;
        self.progress.entries_found.add(of_source);
        let is_unlisted = |one: &Examined| matches!(one, Examined::Failed(FailureKind::Unlisted));
        if examined.iter().any(is_unlisted) {
            self.spare_last();
        }
        let (mut actions, mut folders) = (Vec::new(), VecDeque::new());
        // Others are counted when they are copied.
        let mut done = of_source;
        for (row, examined) in rows.into_iter().zip(examined) {
            self.found.targets += u64::from(row.target.is_some());
            let size = size_of(&examined);
            let next = self.decide_row(&row.name, examined);
            match next.copies() {
                true if self.sink_counts_copies => done -= 1,
                true => {}
                false => self.progress.bytes_passed.add(size),
            }
            match next {
                Next::Nothing => {}
                Next::Act(action) => actions.push(action),
                Next::Enter(to) => folders.push_back(Descent { name: row.name.detached(), to }),
            }
        }
        self.progress.entries_done.add(done);
        if let Some(level) = self.levels.last_mut() {
            level.folders = folders;
        }
        actions
    }

    fn decide_row(&mut self, name: &Name, examined: Examined) -> Next {
        let Some(level) = self.levels.last() else { return Next::Nothing };
        if let Examined::Source(source, Some(target), Decision::Equal, digest) = &examined
            && !is_folder(source)
            && source.links == 1
            && !self.names.is_shared(target)
        {
            // Most entries of most runs.
            if let Some(hash) = digest {
                let path = level.path.join(name.as_os_str());
                self.note_stays(&path, *hash, target);
            }
            return Next::Nothing;
        }
        let path = level.path.join(name.as_os_str());
        match examined {
            Examined::Nothing => Next::Nothing,
            Examined::Trash => {
                self.keep_last();
                Next::Nothing
            }
            Examined::Failed(kind) => {
                self.fail(&path, kind);
                self.keep_last();
                Next::Nothing
            }
            Examined::LeftOut(LeftOut { target, why, by_pattern, is_folder: is_one }) => {
                if let Some(explain) = self.explain {
                    explain(&path, is_one, &why);
                }
                if let Some(target) = target.filter(|target| !is_folder(target)) {
                    self.names.note_target(&target);
                }
                match target {
                    Some(target) if by_pattern && self.choices.selector.deletes_excluded() => {
                        self.next_of_target(&path, target, Some(Reason::Excluded))
                    }
                    Some(_) => {
                        self.keep_last();
                        Next::Nothing
                    }
                    None => Next::Nothing,
                }
            }
            Examined::Target(target) => self.next_of_target(&path, target, None),
            Examined::Source(source, target, decision, digest) => {
                if let Some(existing) = target.filter(|existing| !is_folder(existing)) {
                    self.names.note_target(&existing);
                }
                match is_folder(&source) {
                    true if decision == Decision::SetAttributes && self.choices.is_part => {
                        next_of_folder(&path, source, target, Decision::Equal)
                    }
                    true => next_of_folder(&path, source, target, decision),
                    false => match self.next_of_file(&path, (source, target), decision) {
                        Next::Act(planned) => Next::Act(Planned { digest, ..planned }),
                        Next::Nothing => {
                            if let (Some(hash), Some(target)) = (digest, &target) {
                                self.note_stays(&path, hash, target);
                            }
                            Next::Nothing
                        }
                        enter @ Next::Enter(_) => enter,
                    },
                }
            }
        }
    }

    /// Notes the hash of a file that stays as it is, or reports that it may not be read.
    fn note_stays(&mut self, path: &Path, hash: Hashed, target: &Stat) {
        match hash {
            Ok(digest) => {
                if let Some(manifest) = &self.manifest {
                    manifest.add(path, digest, target);
                }
            }
            Err(error) => self.fail(path, FailureKind::Io { verb: Step::Hash, error }),
        }
    }

    /// Decides about an entry that the source lacks, or that is excluded.
    fn next_of_target(&mut self, path: &Path, target: Stat, reason: Option<Reason>) -> Next {
        let Some(level) = self.levels.last() else { return Next::Nothing };
        if !level.may_delete {
            self.keep_last();
            return Next::Nothing;
        }
        let reason = reason.or(level.is_excluded.then_some(Reason::Excluded));
        let delete = planned(Verb::Delete, path, None, Some(target), reason);
        if is_folder(&target) {
            return Next::Enter(To::Gone(delete));
        }
        self.put_aside(&delete.action);
        Next::Nothing
    }

    /// Decides about an entry of the source that is no folder.
    fn next_of_file(
        &mut self,
        path: &Path,
        (source, target): (Stat, Option<Stat>),
        decision: Decision,
    ) -> Next {
        let make = |verb, reason| planned(verb, path, Some(source), target, reason);
        let Some(existing) = target else {
            self.names.note_made(&source);
            return Next::Act(make(Verb::Create, None));
        };
        match decision {
            Decision::Exchange => {
                self.names.note_made(&source);
                let exchange = make(Verb::Exchange, None);
                // A folder goes only if it is empty, or may be emptied.
                if is_folder(&existing) { Next::Enter(To::Gone(exchange)) } else { Next::Act(exchange) }
            }
            Decision::Replace(reason) => {
                self.names.note_made(&source);
                Next::Act(make(Verb::Replace, Some(reason)))
            }
            Decision::Create | Decision::KeepNewer => Next::Nothing,
            Decision::Equal | Decision::SetAttributes | Decision::CompareContent => {
                // The first name that was met has settled the attributes.
                let changes = decision == Decision::SetAttributes && !self.names.is_kept(&source, &existing);
                // Names of a target that its source lacks would get the attributes, too.
                let has_more = self.names.links(&existing) > source.links;
                if changes && has_more || !self.names.may_stay(&source, &existing) {
                    return Next::Act(make(Verb::Replace, Some(Reason::Links)));
                }
                match changes {
                    true => Next::Act(make(Verb::Attributes, None)),
                    false if source.links > 1 => Next::Act(make(Verb::Keep, None)),
                    false => Next::Nothing,
                }
            }
        }
    }
}

/// Decides about a folder of the source.
fn next_of_folder(path: &Path, source: Stat, target: Option<Stat>, decision: Decision) -> Next {
    let make = |verb| planned(verb, path, Some(source), target, None);
    Next::Enter(match decision {
        Decision::Create => To::New(make(Verb::Create)),
        Decision::Exchange => To::New(make(Verb::Exchange)),
        Decision::SetAttributes => To::Both(Some(make(Verb::Attributes))),
        Decision::Equal | Decision::Replace(_) | Decision::CompareContent | Decision::KeepNewer => {
            To::Both(None)
        }
    })
}

/// Returns the size of a regular file of the source.
fn size_of(examined: &Examined) -> u64 {
    match examined {
        Examined::Source(source, ..) if source.kind == FileKind::Regular => source.size,
        Examined::Source(..)
        | Examined::Nothing
        | Examined::Trash
        | Examined::Target(_)
        | Examined::LeftOut(_)
        | Examined::Failed(_) => 0,
    }
}

/// What follows of a row.
enum Next {
    Nothing,
    Act(Planned),
    Enter(To),
}

impl Next {
    /// Returns true if the entry is copied.
    fn copies(&self) -> bool {
        match self {
            Self::Act(planned) | Self::Enter(To::Gone(planned) | To::New(planned)) => planned.copies(),
            Self::Nothing | Self::Enter(To::Both(_)) => false,
        }
    }
}

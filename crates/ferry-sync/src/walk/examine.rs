//! Examining rows, many at once, and deciding about them, one after another.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;

use ferry_copy::{FailureKind, Verb as Step};
use ferry_io::{Dir, Errno, FileKind, Io, Name, Result as IoResult, Stat, for_each};

use super::level::{Descent, To, is_folder};
use super::select::LeftOut;
use super::{Choices, NEVER, Walk};
use crate::decide::{Comparison, Decision, Reason, Rules, decide};
use crate::facts::{self, Bytes};
use crate::merge::Row;
use crate::plan::Verb;
use crate::sink::{Planned, planned};

/// Rows examined at once.
const AT_ONCE: usize = 64;

/// A row with the attributes of its two sides.
pub(super) enum Examined {
    /// Nothing is to be done: it has vanished.
    Nothing,
    /// The trash, which is no part of either tree.
    Trash,
    /// The source has it.
    Source(Stat, Option<Stat>, Decision),
    /// Only the target has it.
    Target(Stat),
    LeftOut(LeftOut),
    Failed(FailureKind),
}

/// Looks at entries; decides nothing that depends on other entries.
pub(super) struct Examiner<'a> {
    pub(super) io: &'a Io,
    pub(super) choices: &'a Choices,
}

impl Examiner<'_> {
    /// Examines rows of two open folders. `left_out` returns why an entry takes no part.
    pub(super) async fn examine(
        &self,
        sides: (Option<&Dir>, Option<&Dir>),
        rows: &[Row],
        left_out: impl Fn(&Name, Option<&Stat>, Option<&Stat>) -> Option<LeftOut>,
    ) -> Vec<Examined> {
        let found: RefCell<Vec<Option<Examined>>> = RefCell::new(rows.iter().map(|_| None).collect());
        let ended = for_each(AT_ONCE, rows.iter().enumerate(), async |(index, row)| {
            let examined = self.examine_row(sides, row, &left_out).await.unwrap_or_else(Examined::Failed);
            found.borrow_mut()[index] = Some(examined);
            if ferry_io::is_cancelled() { Err(()) } else { Ok(()) }
        });
        // Ends early only in a cancelled run.
        ended.await.ok();
        found.into_inner().into_iter().map(|found| found.unwrap_or(Examined::Nothing)).collect()
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
        let of_target =
            look(target.filter(|_| row.source.is_some() || row.target.is_some()), &row.name).await;
        let of_target = of_target.map_err(|error| failed(Step::StatTarget, error))?;
        if row.target.is_none() && of_source.is_some() && of_target.is_some() {
            return Err(FailureKind::Unlisted);
        }
        let is_trash = |stat: &Stat| self.choices.trash == Some((stat.device, stat.inode));
        if of_source.as_ref().or(of_target.as_ref()).is_some_and(is_trash) {
            return Ok(Examined::Trash);
        }
        if let Some(left_out) = left_out(&row.name, of_source.as_ref(), of_target.as_ref()) {
            return Ok(Examined::LeftOut(left_out));
        }
        let rules = &self.choices.rules;
        match (of_source, of_target) {
            (None, Some(target)) if row.source.is_none() => Ok(Examined::Target(target)),
            // It has vanished since it was listed.
            (None, _) => Ok(Examined::Nothing),
            (Some(stat), None) => Ok(Examined::Source(stat, None, Decision::Create)),
            (Some(stat), Some(existing)) => {
                let decision = decide(&stat, Some(&existing), rules);
                let decision = match (source, target) {
                    (Some(source), Some(target)) => {
                        let compared = Compared { source, target, name: &row.name, rules };
                        self.refine(decision, &stat, &existing, compared).await?
                    }
                    _ => decision,
                };
                Ok(Examined::Source(stat, Some(existing), decision))
            }
        }
    }

    /// Completes a decision that attributes alone don't make.
    async fn refine(
        &self,
        decision: Decision,
        source: &Stat,
        target: &Stat,
        compared: Compared<'_>,
    ) -> Result<Decision, FailureKind> {
        let Compared { source: of_source, target: of_target, name, rules } = compared;
        let mut decision = decision;
        if decision == Decision::Compare {
            let permit =
                self.choices.comparisons.acquire().await.map_err(|error| failed(Step::Read, error))?;
            // Boxed: its state would be part of every entry's.
            let comparison = facts::compare_bytes(self.io, (of_source, source), (of_target, target), name);
            let bytes = Box::pin(comparison).await;
            drop(permit);
            match bytes? {
                Bytes::Equal => {}
                Bytes::Different => return Ok(Decision::Replace(Reason::Content)),
                Bytes::Changed => return Err(FailureKind::Changed),
            }
            // The rest is a matter of attributes.
            let rest =
                Rules { comparison: Comparison::Size, keeps_newer: false, unfinished: NEVER, ..*rules };
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
        self.progress.entries_found.add(rows.len() as u64);
        self.progress.entries_done.add(rows.len() as u64);
        let is_unlisted = |one: &Examined| matches!(one, Examined::Failed(FailureKind::Unlisted));
        if examined.iter().any(is_unlisted) {
            self.spare_last();
        }
        let mut actions = Vec::new();
        let mut folders = VecDeque::new();
        for (row, examined) in rows.into_iter().zip(examined) {
            self.found.targets += u64::from(row.target.is_some());
            match self.decide_row(&row.name, examined) {
                Next::Nothing => {}
                Next::Act(action) => actions.push(action),
                Next::Enter(to) => folders.push_back(Descent { name: row.name.detached(), to }),
            }
        }
        if let Some(level) = self.levels.last_mut() {
            (level.folders, level.added) = (folders, 0);
        }
        actions
    }

    fn decide_row(&mut self, name: &Name, examined: Examined) -> Next {
        let Some(level) = self.levels.last() else { return Next::Nothing };
        if let Examined::Source(source, Some(target), Decision::Equal) = &examined
            && !is_folder(source)
            && source.links == 1
            && !self.names.is_shared(target)
        {
            // Most entries of most runs.
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
            Examined::Source(source, target, decision) => {
                if let Some(existing) = target.filter(|existing| !is_folder(existing)) {
                    self.names.note_target(&existing);
                }
                match is_folder(&source) {
                    true => next_of_folder(&path, source, target, decision),
                    false => self.next_of_file(&path, (source, target), decision),
                }
            }
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
            Decision::Equal | Decision::SetAttributes | Decision::Compare => {
                // The first name that was met has settled the attributes.
                let changes = decision == Decision::SetAttributes && !self.names.is_kept(&source, &existing);
                // Other names of a target would get the attributes, too.
                let is_shared = self.names.is_shared(&existing) && source.links == 1;
                if changes && is_shared || !self.names.may_stay(&source, &existing) {
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
        Decision::Equal | Decision::Replace(_) | Decision::Compare | Decision::KeepNewer => To::Both(None),
    })
}

/// What follows of a row.
enum Next {
    Nothing,
    Act(Planned),
    Enter(To),
}

/// The two folders in which an entry is compared.
struct Compared<'a> {
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
    matches!(examined, Examined::Source(source, Some(target), _) if is_folder(source) && is_folder(target))
}

fn failed(verb: Step, error: ferry_io::Error) -> FailureKind {
    FailureKind::Io { verb, error }
}

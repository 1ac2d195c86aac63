//! Looking at many entries of a folder by one request for each side.
//!
//! A request returns attributes, texts of links and extended attributes of some entries. They settle all rows of
//! which no content is compared and nothing failed. The other rows are examined one by one (`examined.rs`), which also finds
//! the errors again. Both sides are in flight at once, because they are often on two devices.

use std::cell::RefCell;
use std::convert::Infallible;

use ferry_io::{Dir, Errno, Facts, FileKind, Name, Stat, both, for_each};

use super::choices::Choices;
use super::examined::{Examined, Examiner, Judged, LeftOut};
use crate::decide::{Comparison, Decision, Reason, Rules};
use crate::facts::are_equal;
use crate::merge::{Row, Side};

/// Requests of one side in flight at once.
const AT_ONCE: usize = 8;

/// One side's entry.
enum Seen {
    /// It is not there.
    Missing,
    Facts(Facts),
    /// It was not examined, or could not be.
    Unknown,
}

impl Examiner<'_> {
    /// Examines rows of two open folders; `None` for those that have to be examined one by one.
    pub(super) async fn examine_together(
        &self,
        (source, target): (Option<&Dir>, Option<&Dir>),
        rows: &[Row],
        left_out: &impl Fn(&Name, Option<&Stat>, Option<&Stat>) -> Option<LeftOut>,
    ) -> Vec<Option<Examined>> {
        if self.choices.rules.comparison == Comparison::Content || self.choices.digest.is_some() {
            // Reading the bytes takes a request for each of them anyway.
            return rows.iter().map(|_| None).collect();
        }
        let details = source.is_some() && target.is_some() && self.choices.rules.xattrs;
        let look = |dir| Look { dir, choices: self.choices, rows, details };
        let (source, target) = (look(source), look(target));
        let of_source = source.see(|row| row.source);
        // A name that the target does not list may lead to an entry all the same, if names are folded.
        let of_target = target.see(|row| row.target.or(row.source));
        let (of_source, of_target) = match both(of_source, of_target).await {
            Ok(seen) => seen,
            Err(never) => match never {},
        };
        let seen = of_source.into_iter().zip(of_target);
        rows.iter().zip(seen).map(|(row, seen)| self.settle_row(row, seen, left_out)).collect()
    }

    /// Decides about a row, if what was seen suffices.
    fn settle_row(
        &self,
        row: &Row,
        (source, target): (Seen, Seen),
        left_out: &impl Fn(&Name, Option<&Stat>, Option<&Stat>) -> Option<LeftOut>,
    ) -> Option<Examined> {
        let (source, target) = (source.known()?, target.known()?);
        let [of_source, of_target] = [&source, &target].map(|side| side.as_ref().map(|facts| facts.stat));
        let (stat, existing, decision) = match self.judge(row, of_source, of_target, left_out) {
            Ok(Judged::Settled(examined)) => return Some(examined),
            Ok(Judged::Pair(stat, existing, decision)) => (stat, existing, decision),
            Err(kind) => return Some(Examined::Failed(kind)),
        };
        let decision = match (source, target) {
            (Some(source), Some(target)) => refined(decision, source, target, &self.choices.rules)?,
            _ => decision,
        };
        Some(Examined::Source(stat, Some(existing), decision, None))
    }
}

impl Seen {
    fn of(found: Result<Facts, Errno>) -> Self {
        match found {
            Ok(facts) => Self::Facts(facts),
            Err(Errno::NOENT) => Self::Missing,
            Err(_) => Self::Unknown,
        }
    }

    /// Returns the facts, or `None` if there is no entry; `None` if that is unknown.
    #[allow(clippy::option_option, reason = "an entry is known, known to be missing, or unknown")]
    fn known(self) -> Option<Option<Facts>> {
        match self {
            Self::Missing => Some(None),
            Self::Facts(facts) => Some(Some(facts)),
            Self::Unknown => None,
        }
    }
}

/// Completes a decision that attributes alone don't make; `None` if the facts do not suffice.
fn refined(decision: Decision, source: Facts, target: Facts, rules: &Rules) -> Option<Decision> {
    if decision == Decision::CompareContent {
        return None;
    }
    let stays = matches!(decision, Decision::Equal | Decision::SetAttributes);
    if stays && source.stat.kind == FileKind::Symlink && source.text? != target.text? {
        return Some(Decision::Replace(Reason::Text));
    }
    if decision == Decision::Equal && rules.xattrs && !are_equal(source.xattrs?, target.xattrs?, rules) {
        return Some(Decision::SetAttributes);
    }
    Some(decision)
}

/// One side of a folder that is looked at.
struct Look<'a> {
    dir: Option<&'a Dir>,
    choices: &'a Choices,
    rows: &'a [Row],
    /// Set if texts of links and extended attributes are examined, too.
    details: bool,
}

impl Look<'_> {
    /// Examines the entries that `side` says to be there.
    async fn see(&self, side: impl Fn(&Row) -> Option<Side>) -> Result<Vec<Seen>, Infallible> {
        let rows = self.rows;
        let unseen = |row: &Row| {
            if self.dir.is_some() && side(row).is_some() { Seen::Unknown } else { Seen::Missing }
        };
        let mut seen: Vec<Seen> = rows.iter().map(unseen).collect();
        let Some(dir) = self.dir.filter(|_| !rows.is_empty()) else { return Ok(seen) };
        let at_once = dir.names_at_once();
        if rows.len() <= at_once && rows.iter().all(|row| side(row).is_some()) {
            // Most folders of most runs.
            let names = rows.iter().map(|row| row.name.clone()).collect();
            return Ok(match self.examine(dir, names).await {
                Some(found) => found.into_iter().map(Seen::of).collect(),
                None => seen,
            });
        }
        let mut wanted: Vec<(u64, usize)> = Vec::with_capacity(rows.len());
        wanted.extend(rows.iter().enumerate().filter_map(|(index, row)| Some((side(row)?.inode, index))));
        // Filesystems keep inodes in the order of their numbers.
        wanted.sort_unstable();
        let all = RefCell::new(&mut seen);
        let ended = for_each(AT_ONCE, wanted.chunks(at_once), async |some| {
            let names = some.iter().map(|&(_, index)| rows[index].name.clone()).collect();
            for (&(_, index), one) in some.iter().zip(self.examine(dir, names).await.into_iter().flatten()) {
                all.borrow_mut()[index] = Seen::of(one);
            }
            Ok::<(), Infallible>(())
        });
        match ended.await {
            Ok(()) => Ok(seen),
            Err(never) => match never {},
        }
    }

    /// Examines some entries by one request; `None` if the run was stopped.
    async fn examine(&self, dir: &Dir, names: Vec<Name>) -> Option<Vec<Result<Facts, Errno>>> {
        self.choices.pass().await.ok()?;
        dir.examine(names, self.details).await.ok()
    }
}

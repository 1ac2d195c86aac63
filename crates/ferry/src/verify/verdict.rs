//! The verdict: whether what was compared is equal, in one line, and advice about what was found.

use std::time::Duration;

use ferry_tree::compare::Summary;

use super::described::Kind;
use super::findings::Findings;
use crate::units::{bytes, count, counted, time};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Equal,
    Different,
    /// No difference was found, but something could not be read.
    Undecided,
    /// The comparison was stopped before its end.
    Interrupted,
}

impl Verdict {
    pub(super) fn of(summary: &Summary, findings: &Findings) -> Self {
        let (all, unreadable) = (findings.total(), findings.of(Kind::Unreadable));
        if summary.stopped {
            Self::Interrupted
        } else if all == 0 {
            Self::Equal
        } else if all == unreadable {
            Self::Undecided
        } else {
            Self::Different
        }
    }

    /// Returns the word with which the line begins, also used in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Different => "different",
            Self::Undecided => "undecided",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Totals of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Totals {
    pub(super) summary: Summary,
    /// Number of trashes that a comparison with a manifest passed over; `None` if two trees were compared.
    pub(super) trashes: Option<u64>,
    /// Set if the content of files was compared.
    pub(super) content: bool,
    /// Time that it took, if progress was shown.
    pub(super) took: Option<Duration>,
}

impl Totals {
    /// Formats the number of entries, or of a manifest's files: those that were compared and those of one side only.
    fn all(&self, findings: &Findings) -> String {
        let Summary { entries, .. } = self.summary;
        match self.trashes {
            None => {
                let alone = findings.of(Kind::Missing) + findings.of(Kind::Extra);
                counted(entries + alone, "entry", "entries")
            }
            // Missing ones are among them.
            Some(_) => counted(entries + findings.of(Kind::Extra), "file", "files"),
        }
    }

    /// Formats what was equal: `3,905 files, 781 directories, 15.6 MB of content`.
    fn compared(&self, findings: &Findings) -> String {
        let Summary { entries, directories, files, bytes: size, .. } = self.summary;
        if !self.content {
            return format!("{}, without comparing content", self.all(findings));
        }
        let others = entries.saturating_sub(files + directories);
        let mut parts = vec![counted(files, "file", "files")];
        let kinds = [(directories, "directory", "directories"), (others, "other entry", "other entries")];
        parts.extend(kinds.iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| counted(*n, one, many)));
        format!("{}, {} of content", parts.join(", "), bytes(size))
    }

    /// Returns the verdict in words.
    pub(super) fn line(&self, findings: &Findings) -> String {
        let verdict = Verdict::of(&self.summary, findings);
        let all = self.all(findings);
        let kinds: Vec<_> =
            findings.kinds().map(|(kind, n)| format!("{} {}", count(n), kind.name())).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
        let differences = match findings.total() {
            0 => "no difference".to_owned(),
            n => counted(n, "difference", "differences"),
        };
        let mut line = match verdict {
            Verdict::Equal => self.compared(findings),
            Verdict::Different => format!("{differences} in {all}{kinds}"),
            Verdict::Undecided => {
                let failures = counted(findings.of(Kind::Unreadable), "failure", "failures");
                format!("{failures} to read, no other difference in {all}")
            }
            Verdict::Interrupted => format!("{differences} in {all} so far{kinds}"),
        };
        if let Some(trashes @ 1..) = self.trashes {
            line += &format!("; {} passed over", counted(trashes, "trash", "trashes"));
        }
        if let Some(took) = self.took {
            line += &format!("; took {}", time(took));
        }
        format!("{}: {line}", verdict.name())
    }

    /// Returns advice, if only modification times differ.
    pub(super) fn hint(&self, findings: &Findings) -> Option<&'static str> {
        let verdict = Verdict::of(&self.summary, findings);
        let are_times_only = findings.of(Kind::Times) == findings.total();
        match self.trashes {
            _ if verdict != Verdict::Different || !are_times_only => None,
            None => Some(
                "Only modification times differ: was the copy made without -a or -p? `ferry cp -a` keeps them, and \
                 `ferry verify --ignore=times` does not compare them.",
            ),
            Some(_) => {
                Some("Only modification times differ: `ferry verify --ignore=times` does not compare them.")
            }
        }
    }
}

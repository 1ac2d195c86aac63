//! Reports differences, from all threads of a comparison, and at its end the verdict: as text or as lines of JSON.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use ferry_tree::compare::Summary;
use serde::Serialize;
use serde_json::{Map, Value};

use super::described::{Described, Kind};
use super::findings::Findings;
use super::options::{MANUAL, Shown};
use super::verdict::{Totals, Verdict};
use crate::escape::json_name;
use crate::layout::wrapped;
use crate::output::{Output, describe, lock};

#[cfg(test)]
mod tests;

/// A line of JSON about a difference.
#[derive(Serialize)]
struct DifferenceLine {
    path: String,
    kind: &'static str,
    message: String,
    #[serde(flatten)]
    values: Map<String, Value>,
}

/// The last line of JSON.
#[derive(Serialize)]
struct LastLine {
    summary: SummaryObject,
    kinds: Map<String, Value>,
    verdict: &'static str,
    same: bool,
}

#[derive(Serialize)]
struct SummaryObject {
    #[serde(flatten)]
    summary: Summary,
    /// Missing if two trees were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    trashes: Option<u64>,
}

/// Receives the differences of a comparison.
pub(super) struct Report {
    shown: Shown,
    output: Arc<Output>,
    findings: Mutex<Findings>,
}

impl Report {
    pub(super) fn new(shown: Shown, output: Arc<Output>) -> Self {
        Self { shown, output, findings: Mutex::default() }
    }

    /// Reports a difference, or keeps it for the end.
    pub(super) fn add(&self, found: &impl Described) {
        if self.shown == Shown::Sample {
            return lock(&self.findings).keep(found);
        }
        lock(&self.findings).count(found.kind());
        match self.shown {
            Shown::All => self.output.line(&format!("{}: {}", found.quoted_path(), found.message())),
            Shown::Json => self.output.line(&difference(found)),
            Shown::Quiet if found.kind() == Kind::Unreadable => {
                self.error(&format!("{}: {}", found.quoted_path(), found.message()));
            }
            Shown::Sample | Shown::Quiet => {}
        }
    }

    /// Prints a warning, unless nothing but errors is to be printed.
    pub(super) fn warn(&self, text: &str) {
        if self.shown != Shown::Quiet {
            self.error(&format!("warning: {text}"));
        }
    }

    pub(super) fn error(&self, text: &str) {
        self.output.error(&format!("{}: {text}", MANUAL.name));
    }

    /// Reports a failure that ended the comparison, and ends with the verdict: undecided, unless differences were found
    /// before.
    pub(super) fn end_unread(&self, why: &str, mut totals: Totals) -> ExitCode {
        self.error(why);
        lock(&self.findings).count(Kind::Unreadable);
        totals.summary.differences += 1;
        self.end(&totals)
    }

    /// Ends with the verdict, and returns the exit code.
    pub(super) fn end(&self, totals: &Totals) -> ExitCode {
        let findings = lock(&self.findings);
        match self.shown {
            Shown::Sample | Shown::All => self.output.line(&ending(totals, &findings, self.output.columns())),
            Shown::Json => self.output.line(&last(totals, &findings)),
            Shown::Quiet => {}
        }
        if let Err(error) = self.output.finish() {
            self.error(&format!("write error: {}", describe(&error)));
            return ExitCode::FAILURE;
        }
        match Verdict::of(&totals.summary, &findings) {
            Verdict::Equal => ExitCode::SUCCESS,
            Verdict::Different | Verdict::Undecided | Verdict::Interrupted => ExitCode::FAILURE,
        }
    }
}

/// Returns what is kept of the differences, advice about them, and the verdict as the last line.
fn ending(totals: &Totals, findings: &Findings, columns: usize) -> String {
    let mut paragraphs = findings.paragraphs(columns);
    paragraphs.extend(totals.hint(findings).map(|hint| wrapped("", hint, 0, columns)));
    if !paragraphs.is_empty() {
        // An empty line before the verdict.
        paragraphs.push(String::new());
    }
    paragraphs.push(wrapped("", &totals.line(findings), 2, columns));
    paragraphs.join("\n")
}

/// Returns the line of JSON about a difference.
pub(super) fn difference(found: &impl Described) -> String {
    to_line(&DifferenceLine {
        path: json_name(found.path()),
        kind: found.kind().name(),
        message: found.message(),
        values: found.values(),
    })
}

/// Returns the last line of JSON.
pub(super) fn last(totals: &Totals, findings: &Findings) -> String {
    let verdict = Verdict::of(&totals.summary, findings);
    let kinds = findings.kinds().map(|(kind, n)| (kind.name().to_owned(), n.into())).collect();
    let summary = SummaryObject { summary: totals.summary, trashes: totals.trashes };
    to_line(&LastLine { summary, kinds, verdict: verdict.name(), same: verdict == Verdict::Equal })
}

fn to_line(report: &impl Serialize) -> String {
    // Serialization to a string cannot fail here.
    serde_json::to_string(report).unwrap_or_default()
}

//! Verdicts: each finding of the documents, and its outcome here.

use crate::statistics::Interval;

#[cfg(test)]
mod tests;

/// Outcome of a document's finding here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The interval lies on its side.
    Held,
    /// The interval lies on the other side.
    DidNotHold,
    /// The interval holds both.
    Unclear,
    /// There are no figures for it.
    NotMeasured,
}

impl Outcome {
    /// As the report has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::DidNotHold => "did not hold",
            Self::Unclear => "unclear",
            Self::NotMeasured => "not measured",
        }
    }
}

/// One finding and what the figures say to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The document's number: `004`; empty for what no document says.
    pub document: &'static str,
    /// The document's finding, in a sentence.
    pub finding: String,
    /// Outcome of the finding here.
    pub outcome: Outcome,
    /// The figures, in a sentence.
    pub words: String,
}

impl Verdict {
    /// A finding about a ratio that should lie above `limit`.
    #[must_use]
    pub fn above(
        document: &'static str,
        finding: &str,
        ratio: Option<Interval>,
        limit: f64,
        words: impl FnOnce(&Interval) -> String,
    ) -> Self {
        let outcome = ratio.as_ref().map_or(Outcome::NotMeasured, |ratio| side(ratio, limit));
        Self::new(document, finding, outcome, ratio, words)
    }

    /// A finding about a ratio that should lie below `limit`.
    #[must_use]
    pub fn below(
        document: &'static str,
        finding: &str,
        ratio: Option<Interval>,
        limit: f64,
        words: impl FnOnce(&Interval) -> String,
    ) -> Self {
        let outcome = ratio.as_ref().map_or(Outcome::NotMeasured, |ratio| match side(ratio, limit) {
            Outcome::Held => Outcome::DidNotHold,
            Outcome::DidNotHold => Outcome::Held,
            other @ (Outcome::Unclear | Outcome::NotMeasured) => other,
        });
        Self::new(document, finding, outcome, ratio, words)
    }

    /// A finding about a ratio, or another figure, that should lie between two limits.
    #[must_use]
    pub fn within(
        document: &'static str,
        finding: &str,
        found: Option<Interval>,
        (least, most): (f64, f64),
        words: impl FnOnce(&Interval) -> String,
    ) -> Self {
        let outcome = found.as_ref().map_or(Outcome::NotMeasured, |found| {
            if found.is_above(least) && found.is_below(most) {
                Outcome::Held
            } else if found.is_below(least) || found.is_above(most) {
                Outcome::DidNotHold
            } else {
                Outcome::Unclear
            }
        });
        Self::new(document, finding, outcome, found, words)
    }

    fn new(
        document: &'static str,
        finding: &str,
        outcome: Outcome,
        ratio: Option<Interval>,
        words: impl FnOnce(&Interval) -> String,
    ) -> Self {
        let words = ratio.map_or_else(
            || "there are no figures".to_owned(),
            |ratio| {
                let few = if ratio.is_enough() { "" } else { "; too few runs to tell" };
                words(&ratio) + few
            },
        );
        Self { document, finding: finding.to_owned(), outcome, words }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.document.is_empty() {
            write!(out, "{}: ", self.document)?;
        }
        write!(out, "{} - {}: {}", self.finding, self.outcome.name(), self.words)
    }
}

fn side(ratio: &Interval, limit: f64) -> Outcome {
    if ratio.is_above(limit) {
        Outcome::Held
    } else if ratio.is_below(limit) {
        Outcome::DidNotHold
    } else {
        Outcome::Unclear
    }
}

/// A ratio and its interval: `1.52 (1.41 to 1.60)`; a small one with more digits.
#[must_use]
pub fn interval(ratio: &Interval) -> String {
    let digits = match ratio.middle.abs() {
        middle if middle > 0.0 && middle < 0.01 => 4,
        middle if middle > 0.0 && middle < 0.1 => 3,
        _ => 2,
    };
    format!("{:.digits$} ({:.digits$} to {:.digits$})", ratio.middle, ratio.low, ratio.high)
}

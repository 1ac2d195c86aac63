//! Verdicts: each finding of the documents, and its outcome here.
//!
//! A verdict separates the direction of an effect ([`Outcome`]) from its size ([`Size`]): an effect can go the way
//! that the document says and still be much smaller than published.

mod size;

pub use self::size::Size;
use self::size::{Growth, compared};
use crate::statistics::Interval;
use crate::units::plain;

#[cfg(test)]
mod tests;

/// Outcome of a document's finding here: the direction of the effect.
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
            Self::Held => "holds",
            Self::DidNotHold => "does not hold",
            Self::Unclear => "not decided",
            Self::NotMeasured => "not measured",
        }
    }

    /// Returns true if the figures answer the finding.
    #[must_use]
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Held | Self::DidNotHold)
    }
}

/// One finding and what the figures say to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The document's number: `004`; empty for what no document says.
    pub document: &'static str,
    /// The document's finding, in a sentence.
    pub finding: String,
    /// Outcome of the finding here.
    pub outcome: Outcome,
    /// The ratio, or another figure, that decides. `None` for what is not decided by one figure.
    pub found: Option<Interval>,
    /// The document's figure, as printed there: `1.15-1.20`.
    pub published: Option<&'static str>,
    /// The figures, in a sentence.
    pub words: String,
    growth: Growth,
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
        Self::new((document, finding), outcome, Growth::Up, ratio, words)
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
        Self::new((document, finding), outcome, Growth::Down, ratio, words)
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
        Self::new((document, finding), outcome, Growth::between(least, most), found, words)
    }

    /// A finding that is not decided by one figure.
    #[must_use]
    pub fn stated(document: &'static str, finding: &str, outcome: Outcome, words: String) -> Self {
        let finding = finding.to_owned();
        Self { document, finding, outcome, found: None, published: None, words, growth: Growth::None }
    }

    fn new(
        (document, finding): (&'static str, &str),
        outcome: Outcome,
        growth: Growth,
        found: Option<Interval>,
        words: impl FnOnce(&Interval) -> String,
    ) -> Self {
        let words = found.map_or_else(
            || "there are no figures".to_owned(),
            |found| {
                let few = if found.is_enough() { "" } else { "; too few runs to tell" };
                words(&found) + few
            },
        );
        Self { found, growth, ..Self::stated(document, finding, outcome, words) }
    }

    /// Adds the document's figure, as printed there: `0.62`, `1.15-1.20`, `about 0.5`.
    #[must_use]
    pub fn published(self, figure: &'static str) -> Self {
        Self { published: Some(figure), ..self }
    }

    /// Compares the effect with the published one. `None` unless the finding holds and both sizes are known.
    #[must_use]
    pub fn size(&self) -> Option<Size> {
        if self.outcome != Outcome::Held {
            return None;
        }
        compared(self.found.as_ref()?, self.published?, self.growth)
    }

    /// Returns direction and size: `holds, smaller`.
    #[must_use]
    pub fn answer(&self) -> String {
        let direction = self.outcome.name();
        match self.size() {
            Some(Size::Smaller) => format!("{direction}, smaller"),
            Some(Size::Larger) => format!("{direction}, larger"),
            Some(Size::AsPublished) | None => direction.to_owned(),
        }
    }

    /// Returns the answer with the figures that decide: `holds, smaller (1.04; published 1.15-1.20)`.
    #[must_use]
    pub fn summary(&self) -> String {
        let answer = self.answer();
        match self.found.as_ref().filter(|_| self.outcome.is_decided()) {
            None => answer,
            Some(found) => {
                let published = self.published.map(|figure| format!("; published {figure}"));
                format!("{answer} ({}{})", middle(found), published.unwrap_or_default())
            }
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.document.is_empty() {
            write!(out, "{}: ", self.document)?;
        }
        write!(out, "{} - {}: {}", self.finding, self.summary(), self.words)
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

/// Formats a ratio with its interval, `1.52 (1.41-1.60)`, or alone if there are too few figures.
#[must_use]
pub fn interval(ratio: &Interval) -> String {
    let middle = middle(ratio);
    if ratio.is_enough() { format!("{middle} ({})", ends(ratio)) } else { middle }
}

/// Formats the median of a ratio: `1.52`.
#[must_use]
pub fn middle(ratio: &Interval) -> String {
    number(ratio, ratio.middle)
}

/// Formats the interval of a ratio: `1.41-1.60`.
#[must_use]
pub fn ends(ratio: &Interval) -> String {
    format!("{}-{}", number(ratio, ratio.low), number(ratio, ratio.high))
}

/// Formats a number with the digits that its median needs: a small one has more.
fn number(ratio: &Interval, value: f64) -> String {
    let digits = match ratio.middle.abs() {
        middle if middle >= 999.5 => return plain(value.round()),
        middle if middle > 0.0 && middle < 0.01 => 4,
        middle if middle > 0.0 && middle < 0.1 => 3,
        _ => 2,
    };
    format!("{value:.digits$}")
}

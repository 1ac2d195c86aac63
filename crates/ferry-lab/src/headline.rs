//! The answer to an experiment's main question: the first lines of its result.

use crate::record::{Cell, Record, Scale};
use crate::statistics::Interval;
use crate::verdict::{Verdict, ends, middle};
use crate::warnings::counted;

#[cfg(test)]
mod tests;

/// The answer, and the plot that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The answer, in a sentence without a full stop.
    pub answer: String,
    /// Further sentences.
    pub more: Vec<String>,
    /// Title of the plot that shows the answer; by default the first plot.
    pub plot: Option<String>,
}

impl Headline {
    /// An answer alone.
    #[must_use]
    pub fn new(answer: impl Into<String>) -> Self {
        Self { answer: answer.into(), more: Vec::new(), plot: None }
    }

    /// The answer if these cells lack figures.
    #[must_use]
    pub fn none(cells: &str) -> Self {
        Self::new(format!("No answer: {cells} lack figures of the same runs"))
    }

    /// The first finding that is decided.
    #[must_use]
    pub fn of_verdicts(verdicts: &[Verdict]) -> Self {
        let first = verdicts.iter().find(|verdict| verdict.outcome.is_decided());
        Self::new(match first {
            Some(verdict) => format!("{}: {}", verdict.finding, verdict.summary()),
            None => "No claim is decided".to_owned(),
        })
    }

    /// Adds a sentence, if there is one.
    #[must_use]
    pub fn and(mut self, sentence: Option<String>) -> Self {
        self.more.extend(sentence);
        self
    }

    /// Names the plot that shows the answer.
    #[must_use]
    pub fn shown_by(self, plot: String) -> Self {
        Self { plot: Some(plot), ..self }
    }

    /// Returns all sentences, as the first lines of a result.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        std::iter::once(&self.answer).chain(&self.more).cloned().collect()
    }
}

/// A speed relative to another one, to be stated in a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Speed<'a> {
    /// Subject of the comparison: `ferry`.
    pub subject: &'a str,
    /// Base of the comparison: `cp`.
    pub base: &'a str,
    /// Conditions: `on small files, cold`.
    pub place: &'a str,
    /// Speed of the subject divided by that of the base.
    pub ratio: Interval,
    /// The document's figure.
    pub published: Option<&'a str>,
    /// Amount of measuring.
    pub scale: Scale,
}

impl Speed<'_> {
    /// Returns the sentence, without a full stop. It says if the speeds can't be told apart.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { subject, base, place, ratio, .. } = self;
        let (middle, aside) = (middle(ratio), self.aside());
        if ratio.is_above(1.0) || !ratio.is_enough() {
            format!("{subject} is {middle}x as fast as {base} {place} ({aside})")
        } else if ratio.is_below(1.0) {
            format!("{subject} is slower than {base} {place}: {middle}x as fast ({aside})")
        } else {
            format!("{subject} and {base} can't be told apart {place}: {middle} ({aside})")
        }
    }

    fn aside(&self) -> String {
        let published = self.published.map(|figure| format!("; published {figure}")).unwrap_or_default();
        confidence(&self.ratio, self.scale) + &published
    }
}

/// Formats the interval of a ratio, `95 %: 1.31-1.52`, or the reason why there is none.
#[must_use]
pub fn confidence(found: &Interval, scale: Scale) -> String {
    if found.is_enough() {
        return format!("95 %: {}", ends(found));
    }
    let runs = counted(found.count, "run");
    match scale {
        // The result of --quick says what that means.
        Scale::Quick => runs,
        Scale::Default | Scale::AsPublished => format!("{runs}: decides nothing"),
    }
}

/// Returns the speed of a cell divided by that of `base`, by a measure of which less is better.
#[must_use]
pub fn speed(record: &Record, base: &Cell, cell: &Cell, measure: &str) -> Option<Interval> {
    record.ratio(cell, base, measure)
}

/// Counts further comparisons: `In 3 other copies: faster in 2, slower in 0`. Nothing unless all have enough runs.
#[must_use]
pub fn others(speeds: &[Interval], what: [&str; 2]) -> Option<String> {
    let [one, several] = what;
    if speeds.is_empty() || !speeds.iter().all(Interval::is_enough) {
        return None;
    }
    let count = |is_it: fn(&Interval) -> bool| speeds.iter().filter(|speed| is_it(speed)).count();
    let (faster, slower) = (count(|speed| speed.is_above(1.0)), count(|speed| speed.is_below(1.0)));
    let what = if speeds.len() == 1 { one } else { several };
    Some(format!("In {} other {what}: faster in {faster}, slower in {slower}", speeds.len()))
}

//! The record of one experiment: figures, machine, parameters.
//!
//! A record is JSON, described by `docs/record.schema.json`. [`store::Store`] writes it after each run, so an
//! interrupted experiment keeps its runs and can be resumed. Tables, plots, verdicts and the report are made from
//! records only.

pub mod read;
pub mod store;
mod value;
pub mod warning;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cache::{Proof, State};
use crate::machine::Machine;
use crate::statistics::{Interval, Summary, ratio};
pub use value::Value;
use warning::{Warning, WarningKind};

#[cfg(test)]
pub(crate) mod tests;

/// Version of this layout. It increases when a reader of the old version would misread the new one.
pub const SCHEMA: u32 = 1;

/// Named values, sorted by name.
pub type Values = BTreeMap<String, Value>;

/// The record of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of the layout: [`SCHEMA`].
    pub schema: u32,
    /// Name of the experiment: `copy`.
    pub experiment: String,
    /// Program that took it: `ferry 0.1.0`.
    pub taken_by: String,
    /// First 16 digits of the BLAKE3 hash of that program, which distinguishes builds of one version.
    #[serde(default)]
    pub program: String,
    /// Start time (RFC 3339, UTC).
    pub started: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Runs wanted of each cell.
    pub runs: u64,
    /// Uncounted runs before them.
    pub warm_ups: u64,
    /// Amount of measuring.
    pub scale: Scale,
    /// True if no run is missing.
    pub complete: bool,
    /// Parameters of the experiment.
    pub parameters: Values,
    /// Values determined before the first run. A resumed experiment uses them again.
    #[serde(default)]
    pub settled: Values,
    /// Machine that it ran on.
    pub machine: Machine,
    /// Versions of the programs used, by name.
    pub tools: BTreeMap<String, String>,
    /// Meaning of the figures.
    pub measures: Vec<Measure>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
}

/// Amount of measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Reliable figures, in minutes.
    #[default]
    Default,
    /// A check that the experiment works, in seconds.
    Quick,
    /// As many runs as in the documents.
    AsPublished,
}

/// Meaning of one figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Key in each run's figures, unit last: `returned_s`.
    pub name: String,
    /// Description: `time until the command returned`.
    pub about: String,
    /// `s`, `ns`, `B`, `B/s`, `1/s`, `x` (a ratio), or empty for counts.
    pub unit: String,
    /// Direction of improvement.
    pub better: Better,
}

/// Direction of improvement of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Smaller is better: times.
    Lower,
    /// Larger is better: rates.
    Higher,
    /// Neither: counts that explain.
    Neither,
}

/// Figures of one run, by the names of the measures.
pub type Figures = BTreeMap<String, f64>;

/// A set of parameters that is measured repeatedly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Unique name, the parameters joined by slashes: `small/cold/ferry`.
    pub name: String,
    /// Parameters that distinguish it from other cells.
    pub parameters: Values,
    /// Requested state of the caches before each run.
    pub cache: State,
    /// Cell that its figures are divided by.
    pub base: Option<String>,
    /// Reason why runs are missing.
    pub missing: Option<String>,
    /// Kind of failure, if runs are missing because of one.
    #[serde(default)]
    pub failed: Option<Failed>,
    /// The runs.
    pub runs: Vec<Run>,
}

/// Kind of failure of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    /// A run failed, for example its command.
    Run,
    /// A copy differed from its source.
    Copy,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Round, from zero. Runs of one round are compared with each other.
    pub round: u64,
    /// Start time (RFC 3339, UTC).
    pub started: String,
    /// Figures by the names of the measures.
    pub figures: Figures,
    /// State of the caches before it.
    pub proof: Option<Proof>,
}

impl Measure {
    /// Returns the name without its unit, for a column: `returned`.
    #[must_use]
    pub fn heading(&self) -> String {
        let units: &[&str] = match self.unit.as_str() {
            "s" => &["s"],
            "ns" => &["ns"],
            "B" => &["b"],
            "B/s" => &["b", "s"],
            "1/s" => &["1", "s"],
            _ => &[],
        };
        let words: Vec<&str> = self.name.split('_').filter(|word| !units.contains(word)).collect();
        words.join(" ")
    }

    /// A measure; for units see [`Measure::unit`].
    #[must_use]
    pub fn new(name: &str, about: &str, unit: &str, better: Better) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), unit: unit.to_owned(), better }
    }
}

impl Cell {
    /// A cell without runs, named after its parameters in this order.
    #[must_use]
    pub fn new(parameters: &[(&str, Value)], cache: State) -> Self {
        let words: Vec<String> = parameters.iter().map(|(_, value)| value.to_string()).collect();
        Self {
            name: words.join("/"),
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            cache,
            base: None,
            missing: None,
            failed: None,
            runs: Vec::new(),
        }
    }

    /// Adds a parameter that is not part of the name.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: Value) -> Self {
        self.parameters.insert(parameter.to_owned(), value);
        self
    }

    /// Compares the cell with `base`.
    #[must_use]
    pub fn against(mut self, base: &Self) -> Self {
        self.base = Some(base.name.clone());
        self
    }

    /// Returns all figures of a measure, in the order of the runs.
    #[must_use]
    pub fn figures(&self, measure: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.get(measure).copied()).collect()
    }

    /// Returns a parameter as text, or an empty text.
    #[must_use]
    pub fn text(&self, parameter: &str) -> String {
        self.parameters.get(parameter).map(Value::to_string).unwrap_or_default()
    }

    /// Returns a parameter as a number.
    #[must_use]
    pub fn number(&self, parameter: &str) -> Option<u64> {
        self.parameters.get(parameter).and_then(Value::as_number)
    }

    /// Returns true if all of its runs were taken.
    #[must_use]
    pub fn has_all(&self, runs: u64) -> bool {
        (0..runs).all(|round| self.runs.iter().any(|run| run.round == round))
    }

    /// Returns true if it needs no further runs.
    #[must_use]
    pub fn is_complete(&self, runs: u64) -> bool {
        self.missing.is_some() || self.has_all(runs)
    }
}

impl Record {
    /// Returns the cell with this name.
    #[must_use]
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// Returns the first cell whose parameters have all of these texts.
    #[must_use]
    pub fn find(&self, parameters: &[(&str, &str)]) -> Option<&Cell> {
        let fits = |cell: &&Cell| parameters.iter().all(|(name, text)| cell.text(name) == *text);
        self.cells.iter().find(fits)
    }

    /// Returns the measure with this name.
    #[must_use]
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    /// Returns the statistics of a cell's figures of a measure.
    #[must_use]
    pub fn summary(&self, cell: &Cell, measure: &str) -> Option<Summary> {
        Summary::of(&cell.figures(measure), self.seed)
    }

    /// Returns the ratio of a cell's figures to those of `base`, paired by round.
    #[must_use]
    pub fn ratio(&self, base: &Cell, other: &Cell, measure: &str) -> Option<Interval> {
        let pairs: Vec<(f64, f64)> = other
            .runs
            .iter()
            .filter_map(|run| {
                let same = base.runs.iter().find(|candidate| candidate.round == run.round)?;
                Some((*same.figures.get(measure)?, *run.figures.get(measure)?))
            })
            .collect();
        ratio(&pairs, self.seed)
    }

    /// Returns the ratio of a cell's figures to those of its base.
    #[must_use]
    pub fn ratio_to_base(&self, cell: &Cell, measure: &str) -> Option<Interval> {
        self.ratio(self.cell(cell.base.as_deref()?)?, cell, measure)
    }

    /// Returns true if it lacks no runs but those of cells that failed. Only the end of an experiment sets
    /// `complete`, or adds the warnings about failed cells; `--resume` removes both.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let has = |kind: WarningKind| self.warnings.iter().any(|warning| warning.kind == kind);
        let is_judged = has(WarningKind::Failed) && !has(WarningKind::Incomplete);
        self.complete || (is_judged && self.cells.iter().all(|cell| cell.is_complete(self.runs)))
    }

    /// Adds a warning unless it is present.
    pub fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns false if a warning marks the figures as unreliable.
    #[must_use]
    pub fn is_to_be_trusted(&self) -> bool {
        !self.warnings.iter().any(|warning| warning.distrust)
    }
}

//! What was measured, on what, and how: one experiment's record.
//!
//! A record is JSON, described by `docs/record.schema.json`, and grows a run at a time: [`store::Store`] writes it after
//! each run, so an interrupted experiment keeps what it took and can be resumed. Tables, plots, verdicts and the report
//! are made from records and from nothing else.

pub mod read;
pub mod store;
mod value;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cache::{Proof, State};
use crate::machine::Machine;
use crate::statistics::{Interval, Summary, ratio};
use crate::warnings::Warning;

pub use value::Value;

#[cfg(test)]
pub(crate) mod tests;

/// The version of this layout. It goes up when a reader of the old one would misunderstand the new one.
pub const SCHEMA: u32 = 1;

/// Named values, in the order of their names.
pub type Values = BTreeMap<String, Value>;

/// One experiment's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the layout: [`SCHEMA`].
    pub schema: u32,
    /// The experiment's name: `copy`.
    pub experiment: String,
    /// Which program took it: `ferry 0.1.0`.
    pub taken_by: String,
    /// That program's content: its BLAKE3 hash, 16 digits of it. Builds of one version differ.
    #[serde(default)]
    pub program: String,
    /// When it was begun (RFC 3339, UTC).
    pub started: String,
    /// What all chance followed from.
    pub seed: u64,
    /// Runs wanted of each cell.
    pub runs: u64,
    /// Runs before those that are not counted.
    pub warm_ups: u64,
    /// How much was measured.
    pub scale: Scale,
    /// Whether every run was taken.
    pub complete: bool,
    /// What the experiment was told.
    pub parameters: Values,
    /// What the experiment found out or decided before its first run; it goes on with that when it is resumed.
    #[serde(default)]
    pub settled: Values,
    /// What it ran on.
    pub machine: Machine,
    /// Versions of the programs that took part.
    pub tools: BTreeMap<String, String>,
    /// What the figures mean.
    pub measures: Vec<Measure>,
    /// What was measured.
    pub cells: Vec<Cell>,
    /// What to keep in mind.
    pub warnings: Vec<Warning>,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Enough to trust, in minutes.
    #[default]
    Default,
    /// Enough to see that it works, in seconds.
    Quick,
    /// What the documents did.
    AsPublished,
}

/// What one kind of figure means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The key in each run's figures, unit last: `returned_s`.
    pub name: String,
    /// What it is, in a few words: `time until the command returned`.
    pub about: String,
    /// `s`, `ns`, `B`, `B/s`, `1/s`, `x` (a ratio), or nothing for counts.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times.
    Lower,
    /// Rates.
    Higher,
    /// Counts that only explain.
    Neither,
}

/// Figures of one run, by the measures' names.
pub type Figures = BTreeMap<String, f64>;

/// What was measured in the same way again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its name, the parameters joined by slashes: `small/cold/ferry`. No other cell has it.
    pub name: String,
    /// What sets it apart from the others.
    pub parameters: Values,
    /// The state of the caches that was asked for before each run.
    pub cache: State,
    /// The cell that this one's figures are divided by.
    pub base: Option<String>,
    /// Why there are no runs, or no more of them.
    pub missing: Option<String>,
    /// What failed, where it is missing for that and not because it can't be measured here.
    #[serde(default)]
    pub failed: Option<Failed>,
    /// What was taken.
    pub runs: Vec<Run>,
}

/// What failed in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    /// A run: its command, say.
    Run,
    /// What it wrote was not what it should be.
    Copy,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// In which round it was taken, from zero; runs of the same round belong together.
    pub round: u64,
    /// When it was begun (RFC 3339, UTC).
    pub started: String,
    /// What was measured.
    pub figures: Figures,
    /// What was found in memory before it.
    pub proof: Option<Proof>,
}

impl Measure {
    /// Its name without its unit, for a column: `returned`.
    #[must_use]
    pub fn heading(&self) -> String {
        let units: &[&str] = match self.unit.as_str() {
            "s" => &["s"],
            "ns" => &["ns"],
            "B/s" => &["b", "s"],
            _ => &[],
        };
        let words: Vec<&str> = self.name.split('_').filter(|word| !units.contains(word)).collect();
        words.join(" ")
    }

    /// A measure; units as [`Measure::unit`] has them.
    #[must_use]
    pub fn new(name: &str, about: &str, unit: &str, better: Better) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), unit: unit.to_owned(), better }
    }
}

impl Cell {
    /// A cell without runs, named after its parameters in the order given.
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

    /// The same with a parameter that is not in its name.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: Value) -> Self {
        self.parameters.insert(parameter.to_owned(), value);
        self
    }

    /// The same, compared with another cell.
    #[must_use]
    pub fn against(mut self, base: &Self) -> Self {
        self.base = Some(base.name.clone());
        self
    }

    /// All figures of a measure, in the order of the runs.
    #[must_use]
    pub fn figures(&self, measure: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.get(measure).copied()).collect()
    }

    /// The text of a parameter, empty if the cell has none of that name.
    #[must_use]
    pub fn text(&self, parameter: &str) -> String {
        self.parameters.get(parameter).map(Value::to_string).unwrap_or_default()
    }

    /// The number of a parameter.
    #[must_use]
    pub fn number(&self, parameter: &str) -> Option<u64> {
        self.parameters.get(parameter).and_then(Value::as_number)
    }

    /// Whether all of its runs were taken.
    #[must_use]
    pub fn has_all(&self, runs: u64) -> bool {
        (0..runs).all(|round| self.runs.iter().any(|run| run.round == round))
    }

    /// Whether this cell needs no more runs.
    #[must_use]
    pub fn is_complete(&self, runs: u64) -> bool {
        self.missing.is_some() || self.has_all(runs)
    }
}

impl Record {
    /// The cell of that name.
    #[must_use]
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// The first cell whose parameters have all of these texts.
    #[must_use]
    pub fn find(&self, parameters: &[(&str, &str)]) -> Option<&Cell> {
        let fits = |cell: &&Cell| parameters.iter().all(|(name, text)| cell.text(name) == *text);
        self.cells.iter().find(fits)
    }

    /// The measure of that name.
    #[must_use]
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    /// What a cell's figures of a measure say.
    #[must_use]
    pub fn summary(&self, cell: &Cell, measure: &str) -> Option<Summary> {
        Summary::of(&cell.figures(measure), self.seed)
    }

    /// A cell's figures divided by another's, round by round.
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

    /// A cell's figures divided by those of the cell that it is compared with.
    #[must_use]
    pub fn ratio_to_base(&self, cell: &Cell, measure: &str) -> Option<Interval> {
        self.ratio(self.cell(cell.base.as_deref()?)?, cell, measure)
    }

    /// Adds a warning, once.
    pub fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Whether a warning says that the figures should not be trusted.
    #[must_use]
    pub fn is_to_be_trusted(&self) -> bool {
        !self.warnings.iter().any(|warning| warning.distrust)
    }
}

//! An experiment as the lab sees it: constant facts, requirements, measuring, and the reading of its record.

use std::path::PathBuf;

use crate::error::Failure;
use crate::headline::Headline;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record, Scale};
use crate::session::Session;
use crate::settings::{Parameter, Settings};
use crate::table::{self, Table};
use crate::verdict::Verdict;

/// Constant facts about an experiment.
#[derive(Debug)]
pub struct Spec {
    /// The command's name.
    pub name: &'static str,
    /// One line on what it measures.
    pub about: &'static str,
    /// Text of the help after the options.
    pub manual: &'static str,
    /// Its options.
    pub parameters: &'static [Parameter],
    /// Parameters given without their names, in this order.
    pub operands: &'static [&'static str],
    /// Runs of each cell.
    pub runs: Runs,
    /// False for commands without figures to compare: no verdicts, and no record after an interrupt.
    pub is_measured: bool,
}

/// Runs of each cell, by scale.
#[derive(Debug, Clone, Copy)]
pub struct Runs {
    /// Without an option.
    pub default: u64,
    /// With `--quick`.
    pub quick: u64,
    /// With `--as-published`.
    pub published: u64,
}

impl Spec {
    /// Returns the number of counted runs of each cell.
    #[must_use]
    pub fn runs(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Default => self.runs.default,
            Scale::Quick => self.runs.quick,
            Scale::AsPublished => self.runs.published,
        }
    }

    /// Returns the number of uncounted runs before those.
    #[must_use]
    pub fn warm_ups(&self, scale: Scale) -> u64 {
        u64::from(self.is_measured && scale != Scale::Quick)
    }
}

/// An experiment that the documents report, and the code that repeats it here.
pub trait Experiment: Sync {
    /// Its constant facts.
    fn spec(&self) -> &'static Spec;

    /// Returns the folder to work in, if the experiment needs no work folder.
    fn place(&self, _settings: &Settings) -> Option<PathBuf> {
        None
    }

    /// Returns true if it makes files in its work folder, or in the folder to work in.
    fn makes_files(&self) -> bool {
        true
    }

    /// Returns the number of uncounted runs of each cell.
    fn warm_ups(&self, scale: Scale) -> u64 {
        self.spec().warm_ups(scale)
    }

    /// Returns the meaning of its figures, the most important one first.
    fn measures(&self) -> Vec<Measure>;

    /// Returns the measures that verdicts use for a cell; they are checked for noise and for too few runs. Empty: the
    /// most important one.
    fn judged(&self, _cell: &Cell) -> &'static [&'static str] {
        &[]
    }

    /// Returns its requirements, which are checked before anything is written.
    ///
    /// # Errors
    /// Fails if the settings contradict each other.
    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure>;

    /// Takes the measurements.
    ///
    /// # Errors
    /// The first failure that prevents further runs.
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure>;

    /// Returns the tables of a record.
    fn tables(&self, record: &Record) -> Vec<Table> {
        vec![table::of_record(record)]
    }

    /// Returns the plots of a record.
    fn plots(&self, record: &Record) -> Vec<Plot>;

    /// Returns the documents' findings and whether they held here.
    fn verdicts(&self, record: &Record) -> Vec<Verdict>;

    /// Returns the answer to its main question.
    fn headline(&self, record: &Record) -> Headline {
        Headline::of_verdicts(&self.verdicts(record))
    }
}

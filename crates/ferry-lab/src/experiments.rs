//! The experiments: one type each, in a file of its own, listed in [`ALL`].
//!
//! To add one, write `experiments/NAME.rs` with a unit type that is an [`Experiment`], name it in [`ALL`], and put the
//! documents' tables that it repeats into [`crate::published`]. Then `ferry lab NAME` is there, with help, progress,
//! `--quick`, `--as-published`, `--json`, `--resume`, tables, plots and its part of the report.
//!
//! In `run`, make what is needed in [`Session::work`], build a [`crate::session::Subject`] for each cell, and give those
//! that are to be compared to [`Session::interleave`] together: a group for each tree and cache state, say. A cell is
//! named by its parameters, the most general first (`small/cold/ferry`); `against` names the cell that it is compared
//! with. The first measure is the one that matters most; [`Experiment::judged`] names those that verdicts are about. Skip a group that [`Session::has_taken`] already. What can't
//! be measured here is a cell too, with the reason ([`Session::leave_out`]). `verdicts` compares with the documents'
//! findings by the interval of a ratio, and says both in a sentence.

mod cache;
mod copies;
mod copy;
mod disk;
mod evict;
mod ring;
mod strategies;
mod syscalls;
mod tree;
mod when;
mod write;

use std::path::PathBuf;

use crate::error::Failure;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Cell, Measure, Record, Scale};
use crate::session::Session;
use crate::settings::{Parameter, Settings};
use crate::table::{self, Table};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// Every experiment, in the order of the help.
pub const ALL: &[&dyn Experiment] = &[
    &tree::Tree,
    &copy::Copy,
    &strategies::Strategies,
    &write::Write,
    &ring::Ring,
    &disk::Disk,
    &cache::Cache,
    &syscalls::Syscalls,
    &when::When,
    &evict::Evict,
];

/// The experiment of that name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().find(|experiment| experiment.name() == name).copied()
}

/// One thing that the documents measured, and how it is measured here.
pub trait Experiment: Sync {
    /// The command's name.
    fn name(&self) -> &'static str;

    /// What it does, in a line.
    fn about(&self) -> &'static str;

    /// What the help says after the options.
    fn manual(&self) -> &'static str;

    /// What it can be told.
    fn parameters(&self) -> &'static [Parameter];

    /// Parameters that are given without their name, in this order.
    fn operands(&self) -> &'static [&'static str] {
        &[]
    }

    /// Runs of each cell.
    fn runs(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Default => 10,
            Scale::Quick => 3,
            Scale::AsPublished => 100,
        }
    }

    /// Runs before those, which are not counted.
    fn warm_ups(&self, scale: Scale) -> u64 {
        u64::from(scale != Scale::Quick)
    }

    /// Whether figures are compared: then they are judged, and a record is kept when it is interrupted.
    fn is_measured(&self) -> bool {
        true
    }

    /// The folder that it works in, if that is not a work folder of its own.
    fn place(&self, _settings: &Settings) -> Option<PathBuf> {
        None
    }

    /// What its figures mean, the most important first.
    fn measures(&self) -> Vec<Measure>;

    /// By which of them a cell is judged in the verdicts: those are checked for noise and for too few runs. None: by the
    /// most important one.
    fn judged(&self, _cell: &Cell) -> &'static [&'static str] {
        &[]
    }

    /// What must be there. Checked before anything is written.
    ///
    /// # Errors
    /// If the settings contradict each other.
    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure>;

    /// Measures.
    ///
    /// # Errors
    /// Whatever keeps it from going on.
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure>;

    /// Its tables.
    fn tables(&self, record: &Record) -> Vec<Table> {
        vec![table::of_record(record)]
    }

    /// Its pictures.
    fn plots(&self, record: &Record) -> Vec<Plot>;

    /// What the documents found, and whether that held here.
    fn verdicts(&self, record: &Record) -> Vec<Verdict>;
}

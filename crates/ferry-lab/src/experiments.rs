//! The experiments: one type each, in its own file, listed in [`ALL`].
//!
//! To add one, write `experiments/NAME.rs` with a unit type that implements [`Experiment`], add it to [`ALL`], and add
//! the document's tables to [`crate::published`]. `ferry lab NAME` then has help, progress, `--quick`,
//! `--as-published`, `--json`, `--resume`, tables, plots and a section in the report.
//!
//! `run` creates its files in `Session::work`, builds a [`crate::session::Subject`] for each cell, and passes subjects
//! that are compared with each other to `Session::interleave` together: for example one group for each tree and cache
//! state. A cell is named after its parameters, the most general one first (`small/cold/ferry`); `Cell::against` names
//! the cell to compare with. Groups for which `Session::has_taken` returns true are skipped. Cells that cannot be
//! measured here are passed to `Session::leave_out` with the reason.
//!
//! `verdicts` compares the interval of a ratio with the documents' finding, and states both in a sentence.
//! `headline` answers the experiment's main question (`headlines.rs`).

mod cache;
mod copies;
pub(crate) mod copy;
mod disk;
mod evict;
mod handovers;
mod headlines;
mod limits;
mod ring;
mod run;
mod strategies;
mod syscalls;
mod tree;
mod when;
mod write;

use crate::experiment::Experiment;

#[cfg(test)]
mod tests;

/// All experiments, in the order of the help.
pub const ALL: &[&dyn Experiment] = &[
    &tree::Tree,
    &copy::Copy,
    &limits::Limits,
    &strategies::Strategies,
    &write::Write,
    &ring::Ring,
    &disk::Disk,
    &cache::Cache,
    &syscalls::Syscalls,
    &handovers::Handovers,
    &when::When,
    &evict::Evict,
    &run::Run,
];

/// Returns the experiment with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().find(|experiment| experiment.spec().name == name).copied()
}

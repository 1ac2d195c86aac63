//! Names in the record of `lab ring`, and its figures by them.

use crate::record::{Cell, Figures, Record};

pub(super) const READS: &str = "reads_1_s";
pub(super) const LATENCY_MEAN: &str = "latency_s_mean";
pub(super) const LATENCY_P99: &str = "latency_s_p99";
pub(super) const COMPUTATIONS: &str = "computations_1_s";
/// Time from a submission until another thread saw the completion.
pub(super) const SEEN_P50: &str = "seen_s_p50";
pub(super) const SEEN_P99: &str = "seen_s_p99";
/// Share of the completions that it saw while the submitting thread still computed.
pub(super) const SEEN_DURING: &str = "seen_during";

pub(super) const ALONE: &str = "alone";
pub(super) const PROCESS: &str = "process";
pub(super) const COMPUTATION: &str = "computation";
pub(super) const WATCHED: &str = "watched";
pub(super) const FIO: &str = "fio";

/// The values of a parameter, in the order of the cells that read as fast as they can.
pub(super) fn groups(record: &Record, parameter: &str) -> Vec<String> {
    let mut found = Vec::new();
    for value in reading(record).map(|cell| cell.text(parameter)) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The cells that read as fast as they can.
pub(super) fn reading(record: &Record) -> impl Iterator<Item = &Cell> {
    record.cells.iter().filter(|cell| cell.text("load") != WATCHED)
}

/// The cells in which another thread looks for completions.
pub(super) fn watched(record: &Record) -> impl Iterator<Item = &Cell> {
    record.cells.iter().filter(|cell| cell.text("load") == WATCHED)
}

pub(super) fn figures(reads: f64, mean: f64, p99: f64) -> Figures {
    let figures = [(READS, reads), (LATENCY_MEAN, mean), (LATENCY_P99, p99)];
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

//! Names in the record of `lab ring`, and its figures by them.

use crate::record::{Figures, Record};

pub(super) const READS: &str = "reads_1_s";
pub(super) const LATENCY_MEAN: &str = "latency_s_mean";
pub(super) const LATENCY_P99: &str = "latency_s_p99";
pub(super) const COMPUTATIONS: &str = "computations_1_s";

pub(super) const ALONE: &str = "alone";
pub(super) const PROCESS: &str = "process";
pub(super) const COMPUTATION: &str = "computation";
pub(super) const FIO: &str = "fio";

/// The values of a parameter, in the order of the cells.
pub(super) fn groups(record: &Record, parameter: &str) -> Vec<String> {
    let mut found = Vec::new();
    for value in record.cells.iter().map(|cell| cell.text(parameter)) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

pub(super) fn figures(reads: f64, mean: f64, p99: f64) -> Figures {
    let figures = [(READS, reads), (LATENCY_MEAN, mean), (LATENCY_P99, p99)];
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

//! Parts of the answers of several experiments.

use crate::headline::Speed;
use crate::record::{Cell, Record};
use crate::statistics::Interval;

/// Time until the last call returned, in seconds.
pub(super) const RETURNED: &str = "returned_s";

/// A comparison in one sentence.
pub(super) fn stated(
    record: &Record,
    (subject, base): (&str, &str),
    place: &str,
    ratio: Interval,
    published: Option<&str>,
) -> String {
    Speed { subject, base, place, ratio, published, scale: record.scale }.sentence()
}

/// Median of a cell.
pub(super) fn median(record: &Record, cell: &Cell, measure: &str) -> Option<f64> {
    record.summary(cell, measure).map(|found| found.median.middle)
}

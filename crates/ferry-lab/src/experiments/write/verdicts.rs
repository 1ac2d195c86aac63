//! Findings of document 001 about sinks.

use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::verdict::{Verdict, interval};

/// Limits for "as fast as".
const SAME: (f64, f64) = (0.95, 1.05);

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (operation, published) in [("overwrite", "1.33"), ("download", "1.66")] {
        if record.find(&[("operation", operation)]).is_some() {
            verdicts.extend(of_document(record, operation, published));
            verdicts.extend(of_depth(record, operation));
        }
    }
    verdicts
}

/// The cell of a sink with the first block size and depth.
fn cell<'r>(record: &'r Record, operation: &str, sink: &str) -> Option<&'r Cell> {
    record.find(&[("operation", operation), ("sink", sink)])
}

/// The ratio of one sink's time to another's.
fn times(record: &Record, operation: &str, base: &str, other: &str, measure: &str) -> Option<Interval> {
    record.ratio(cell(record, operation, base)?, cell(record, operation, other)?, measure)
}

fn of_document(record: &Record, operation: &str, published: &str) -> Vec<Verdict> {
    let durable = |sink: &str| {
        let ratio = times(record, operation, "control", sink, "durable_s");
        ratio.map(|ratio| format!("; {} times as long until durable", interval(&ratio))).unwrap_or_default()
    };
    let mut verdicts = vec![
        Verdict::above(
            "001",
            &format!("{operation}: O_DIRECT with one write at a time is slower than plain writes"),
            times(record, operation, "control", "direct", "returned_s"),
            1.0,
            |ratio| {
                let durable = durable("direct");
                format!("O_DIRECT took {} times as long (published: {published}){durable}", interval(ratio))
            },
        ),
        Verdict::within(
            "001",
            &format!("{operation}: io_uring is as fast as plain writes"),
            times(record, operation, "control", "ring", "returned_s"),
            SAME,
            |ratio| {
                format!(
                    "io_uring took {} times as long (published: 1.00){}",
                    interval(ratio),
                    durable("ring")
                )
            },
        ),
    ];
    if operation == "overwrite" {
        verdicts.push(Verdict::within(
            "001",
            "overwrite: dd is as fast as plain writes",
            times(record, operation, "control", "dd", "returned_s"),
            SAME,
            |ratio| format!("dd took {} times as long (published: 0.97){}", interval(ratio), durable("dd")),
        ));
    }
    verdicts
}

/// Not in the document: O_DIRECT is slow because only one write is in flight.
fn of_depth(record: &Record, operation: &str) -> Vec<Verdict> {
    let sinks = [("direct-pipelined", "by threads"), ("ring-direct", "on the ring")];
    sinks
        .into_iter()
        .map(|(sink, how)| {
            Verdict::below(
                "",
                &format!(
                    "{operation}: O_DIRECT with several writes in flight ({how}) is faster than one at a time"
                ),
                times(record, operation, "direct", sink, "returned_s"),
                1.0,
                |ratio| format!("several in flight took {} of the time", interval(ratio)),
            )
        })
        .collect()
}

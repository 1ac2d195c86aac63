//! Findings of document 001 about sinks.

use super::beside::OVERWRITE;
use super::cells::Workload;
use crate::record::{Cell, Record};
use crate::statistics::{self, Interval};
use crate::units::{figure, size};
use crate::verdict::{Verdict, interval};

/// Limits for "as fast as".
const SAME: (f64, f64) = (0.95, 1.05);

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for workload in Workload::all(record) {
        let its = Its { record, title: workload.title(), workload };
        // A limited server can make all sinks equal, which says nothing about them.
        if !its.workload.is_limited() {
            verdicts.extend(of_document(&its));
        }
        verdicts.extend(of_queue(&its));
        verdicts.extend(of_depth(&its));
    }
    verdicts
}

/// A workload of a record.
struct Its<'r> {
    record: &'r Record,
    workload: Workload,
    title: String,
}

impl Its<'_> {
    fn is_overwrite(&self) -> bool {
        self.workload.operation == OVERWRITE
    }

    fn cell(&self, sink: &str) -> Option<&Cell> {
        self.workload.cell(self.record, sink)
    }

    /// The ratio of one sink's time to another's.
    fn times(&self, base: &str, other: &str, measure: &str) -> Option<Interval> {
        self.record.ratio(self.cell(base)?, self.cell(other)?, measure)
    }

    /// The time of a sink relative to plain writes, in words.
    fn words(&self, subject: &str, sink: &str) -> impl FnOnce(&Interval) -> String {
        let durable = self.times("control", sink, "durable_s");
        let durable = durable.map(|ratio| format!("; {} times as long until durable", interval(&ratio)));
        move |ratio: &Interval| {
            let durable = durable.unwrap_or_default();
            format!("{subject} took {} times as long{durable}", interval(ratio))
        }
    }
}

fn of_document(its: &Its<'_>) -> Vec<Verdict> {
    let title = &its.title;
    let direct = Verdict::above(
        "001",
        &format!("{title}: O_DIRECT with one write at a time is slower than plain writes"),
        its.times("control", "direct", "returned_s"),
        1.0,
        its.words("O_DIRECT", "direct"),
    );
    let ring = Verdict::within(
        "001",
        &format!("{title}: io_uring is as fast as plain writes"),
        its.times("control", "ring", "returned_s"),
        SAME,
        its.words("io_uring", "ring"),
    );
    let dd = its.is_overwrite().then(|| {
        let verdict = Verdict::within(
            "001",
            &format!("{title}: dd is as fast as plain writes"),
            its.times("control", "dd", "returned_s"),
            SAME,
            its.words("dd", "dd"),
        );
        verdict.published("0.97")
    });
    let direct = direct.published(if its.is_overwrite() { "1.33" } else { "1.66" });
    [direct, ring.published("1.00")].into_iter().chain(dd).collect()
}

/// The document observed that writing requests of 5 GiB to the submission queue takes double-digit milliseconds. There
/// is no verdict in records without the sink that does so.
fn of_queue(its: &Its<'_>) -> Option<Verdict> {
    let cell = its.cell("ring-all")?;
    let pairs: Vec<(f64, f64)> = cell
        .runs
        .iter()
        .filter_map(|run| Some((*run.figures.get("returned_s")?, *run.figures.get("queued_s")?)))
        .collect();
    let queued = its.record.summary(cell, "queued_s").map(|found| found.median.middle);
    let bytes = its.record.parameters.get("size").and_then(crate::record::Value::as_number);
    Some(Verdict::below(
        "001",
        &format!(
            "{}: queueing all writes on the ring takes less than a tenth of the time until they complete",
            its.title
        ),
        statistics::ratio(&pairs, its.record.seed),
        0.1,
        |ratio| {
            format!(
                "queueing took {} of the time, {} for {} (published: double-digit milliseconds for 5 GiB)",
                interval(ratio),
                queued.map(|seconds| figure(seconds, "s")).unwrap_or_default(),
                bytes.map(size).unwrap_or_default(),
            )
        },
    ))
}

/// Not in the document: O_DIRECT is slow because only one write is in flight.
fn of_depth(its: &Its<'_>) -> Vec<Verdict> {
    let sinks = [("direct-pipelined", "by threads"), ("ring-direct", "on the ring")];
    let verdict = |(sink, how): (&str, &str)| {
        Verdict::below(
            "",
            &format!(
                "{}: O_DIRECT with several writes in flight ({how}) is faster than one at a time",
                its.title
            ),
            its.times("direct", sink, "returned_s"),
            1.0,
            |ratio| format!("several in flight took {} of the time", interval(ratio)),
        )
    };
    sinks.into_iter().map(verdict).collect()
}

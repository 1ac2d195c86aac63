//! Compares document 002's findings about COOP_TASKRUN, and its open questions, with the figures.

use super::names::{ALONE, COMPUTATION, FIO, LATENCY_P99, PROCESS, READS, groups};
use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::verdict::{Outcome, Verdict, interval};

/// Accepted ratio of our figure to fio's.
const AGREES: (f64, f64) = (0.85, 1.15);

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for depth in &groups(record, "depth") {
        verdicts.extend(of_document(record, depth));
        for mode in ["coop", "defer"] {
            verdicts.extend(of_loads(record, depth, mode));
        }
        verdicts.push(of_fio(record, depth));
    }
    verdicts
}

fn cell<'r>(record: &'r Record, depth: &str, load: &str, mode: &str) -> Option<&'r Cell> {
    record.find(&[("depth", depth), ("load", load), ("mode", mode)])
}

/// A mode's figure by the plain ring's under the same load.
fn by_plain(record: &Record, depth: &str, load: &str, mode: &str, measure: &str) -> Option<Interval> {
    record.ratio(cell(record, depth, load, "plain")?, cell(record, depth, load, mode)?, measure)
}

/// A mode's figure under a load by its own without.
fn by_alone(record: &Record, depth: &str, load: &str, mode: &str, measure: &str) -> Option<Interval> {
    record.ratio(cell(record, depth, ALONE, mode)?, cell(record, depth, load, mode)?, measure)
}

fn of_document(record: &Record, depth: &str) -> Vec<Verdict> {
    let p99 = by_plain(record, depth, PROCESS, "coop", LATENCY_P99);
    vec![
        Verdict::above(
            "002",
            &format!("COOP does more reads a second than the plain ring (depth {depth})"),
            by_plain(record, depth, ALONE, "coop", READS),
            1.0,
            |ratio| format!("COOP did {} times as many (published: 1.15 to 1.20)", interval(ratio)),
        ),
        Verdict::within(
            "002",
            &format!(
                "A busy process on the same processor about halves the plain ring's reads a second (depth {depth})"
            ),
            by_alone(record, depth, PROCESS, "plain", READS),
            (0.35, 0.65),
            |ratio| format!("the rate was {} of that without load (published: about 0.5)", interval(ratio)),
        ),
        Verdict::below(
            "002",
            &format!("Beside a busy process, COOP's latency is lower than the plain ring's (depth {depth})"),
            p99,
            1.0,
            |ratio| format!("COOP's 99th percentile was {} times the plain ring's", interval(ratio)),
        ),
    ]
}

/// Verdicts on each load's effect on a mode, in either direction.
fn of_loads(record: &Record, depth: &str, mode: &str) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (load, what) in [(PROCESS, "A busy process"), (COMPUTATION, "A computation in the same thread")] {
        let name = mode.to_uppercase();
        verdicts.push(Verdict::below(
            "",
            &format!("{what} reduces the reads a second of {name} (depth {depth})"),
            by_alone(record, depth, load, mode, READS),
            1.0,
            |ratio| {
                let p99 = by_alone(record, depth, load, mode, LATENCY_P99);
                let p99 = p99.map(|p99| {
                    format!("; the 99th percentile of their latency was {} times as high", interval(&p99))
                });
                format!("the rate was {} of that without load{}", interval(ratio), p99.unwrap_or_default())
            },
        ));
    }
    verdicts.push(Verdict::above(
        "",
        &format!(
            "If a thread computes between submissions, latency is higher with {} than with the plain ring \
             (depth {depth})",
            mode.to_uppercase()
        ),
        by_plain(record, depth, COMPUTATION, mode, LATENCY_P99),
        1.0,
        |ratio| {
            let reads = by_plain(record, depth, COMPUTATION, mode, READS);
            let reads =
                reads.map(|reads| format!("; the rate was {} times the plain ring's", interval(&reads)));
            format!(
                "the 99th percentile was {} times the plain ring's{}",
                interval(ratio),
                reads.unwrap_or_default()
            )
        },
    ));
    verdicts.retain(|verdict| verdict.outcome != Outcome::NotMeasured);
    verdicts
}

fn of_fio(record: &Record, depth: &str) -> Verdict {
    let ratio = cell(record, depth, ALONE, FIO)
        .zip(cell(record, depth, ALONE, "defer"))
        .and_then(|(fio, ours)| record.ratio(fio, ours, READS));
    Verdict::within(
        "",
        &format!("DEFER and fio reach the same number of reads a second, within 15 % (depth {depth})"),
        ratio,
        AGREES,
        |ratio| format!("DEFER did {} times as many as fio", interval(ratio)),
    )
}

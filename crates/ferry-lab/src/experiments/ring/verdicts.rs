//! Compares document 002's findings about COOP_TASKRUN, and its open questions, with the figures.

use super::names::{
    ALONE, COMPUTATION, FIO, LATENCY_MEAN, LATENCY_P99, PROCESS, READS, SEEN_DURING, SEEN_P50, WATCHED,
    groups,
};
use super::shares::{BUSY, READERS};
use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::units::figure;
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
        verdicts.extend(of_registered(record, depth));
    }
    verdicts.extend(["coop", "defer"].into_iter().filter_map(|mode| of_sightings(record, mode)));
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
    let beside = |measure| by_plain(record, depth, PROCESS, "coop", measure);
    vec![
        Verdict::above(
            "002",
            &format!("COOP does more reads a second than the plain ring (depth {depth})"),
            by_plain(record, depth, ALONE, "coop", READS),
            1.0,
            |ratio| format!("COOP did {} times as many", interval(ratio)),
        )
        .published("1.15-1.20"),
        Verdict::within(
            "002",
            &format!(
                "A busy process on the same processor about halves the plain ring's reads a second (depth {depth})"
            ),
            by_alone(record, depth, PROCESS, "plain", READS),
            (0.35, 0.65),
            |ratio| format!("the rate was {} of that without load{}", interval(ratio), shares(record, depth)),
        )
        .published("about 0.5"),
        Verdict::below(
            "002",
            &format!("Beside a busy process, COOP's mean latency is lower than the plain ring's (depth {depth})"),
            beside(LATENCY_MEAN),
            1.0,
            |ratio| format!("COOP's mean latency was {} times the plain ring's", interval(ratio)),
        ),
        Verdict::below(
            "002",
            &format!(
                "Beside a busy process, COOP's 99th percentile is lower than the plain ring's (depth {depth})"
            ),
            beside(LATENCY_P99),
            1.0,
            |ratio| format!("COOP's 99th percentile was {} times the plain ring's", interval(ratio)),
        ),
    ]
}

/// The shares of the processors that explain the effect of a busy process.
fn shares(record: &Record, depth: &str) -> String {
    let median = |load: &str, measure: &str| {
        let found = record.summary(cell(record, depth, load, "plain")?, measure)?;
        Some(figure(found.median.middle, "x"))
    };
    let known = (median(ALONE, READERS), median(PROCESS, READERS), median(PROCESS, BUSY));
    let (Some(alone), Some(beside), Some(busy)) = known else { return String::new() };
    format!(
        "; of the processors' time readers ran for {alone} alone and {beside} beside the busy processes, which ran \
         for {busy}"
    )
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

/// Registered buffers beside the same ring without, if both were measured.
fn of_registered(record: &Record, depth: &str) -> Option<Verdict> {
    let (usual, registered) =
        (cell(record, depth, ALONE, "defer")?, cell(record, depth, ALONE, "registered")?);
    Some(Verdict::above(
        "",
        &format!("Registered buffers raise the reads a second of DEFER (depth {depth})"),
        record.ratio(usual, registered, READS),
        1.0,
        |ratio| format!("with registered buffers it did {} times as many", interval(ratio)),
    ))
}

/// The bad case of a mode: another thread waits for completions of a thread that computes.
fn of_sightings(record: &Record, mode: &str) -> Option<Verdict> {
    let (plain, other) = (cell(record, "1", WATCHED, "plain")?, cell(record, "1", WATCHED, mode)?);
    let median = |cell: &Cell, measure: &str, unit: &str| {
        let found = record.summary(cell, measure);
        found.map(|found| figure(found.median.middle, unit)).unwrap_or_default()
    };
    // The document asks for a scenario in which COOP is worse.
    let document = if mode == "coop" { "002" } else { "" };
    Some(Verdict::above(
        document,
        &format!(
            "If the submitting thread computes, another thread sees completions later with {} than with the plain \
             ring",
            mode.to_uppercase()
        ),
        record.ratio(plain, other, SEEN_P50),
        1.0,
        |ratio| {
            let [of_plain, of_other] =
                [plain, other].map(|cell| [median(cell, SEEN_P50, "s"), median(cell, SEEN_DURING, "x")]);
            format!(
                "{} times as late: after {} (plain: {}); a share of {} was seen before the computation ended (plain: \
                 {})",
                interval(ratio),
                of_other[0],
                of_plain[0],
                of_other[1],
                of_plain[1]
            )
        },
    ))
}

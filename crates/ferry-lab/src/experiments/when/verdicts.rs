//! Statements of document 003 about where asynchronous I/O helps.

use super::cases::{ALONE, BESIDE_READ, BESIDE_SYNC, CASES, LATENCY};
use crate::record::Record;
use crate::statistics::Interval;
use crate::units::{figure, plain};
use crate::verdict::{Outcome, Verdict, interval};

/// Maximum ratio of `auto`'s time to the fastest route's.
const CLOSE: f64 = 1.15;

/// The main measure of a case.
pub(super) fn measure_of(case: &str) -> &'static str {
    measures_of(case)[0]
}

/// The main measure, as a list.
pub(super) fn measures_of(case: &str) -> &'static [&'static str; 1] {
    match case {
        "two-devices" => &["durable_s"],
        LATENCY => &["read_p99_s"],
        BESIDE_READ | BESIDE_SYNC => &["tick_p99_s"],
        _ => &["returned_s"],
    }
}

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let claims = [
        ("two-devices", "Asynchronous I/O helps when copying between two disks"),
        ("small-memory", "Asynchronous I/O helps when memory is short and writes wait for flushing"),
        ("durable", "Asynchronous I/O helps when writes must be durable"),
    ];
    let mut verdicts = vec![Verdict::above(
        "003",
        "In other cases asynchronous copying is no faster than the kernel's buffering",
        ratio(record, "buffered", "inline", "ring"),
        1.0,
        |ratio| {
            format!(
                "the ring took {} times as long as plain calls; kernel workers perform the ring's writes, \
                 on another processor if there is one",
                interval(ratio)
            )
        },
    )];
    verdicts.extend(claims.map(|(case, finding)| {
        Verdict::below("003", finding, ratio(record, case, "inline", "ring"), 1.0, |ratio| {
            let what = what_of(case);
            format!(
                "{what} on the ring was {} times that of plain calls{}",
                interval(ratio),
                pool(record, case)
            )
        })
    }));
    verdicts.extend(latency(record));
    verdicts.extend(same_worker(record, BESIDE_READ, "A long cold read"));
    verdicts.extend(same_worker(record, BESIDE_SYNC, "An fsync(2)"));
    verdicts.extend(CASES.iter().filter_map(|case| choice(record, case)));
    verdicts
}

/// The copy's effect on the reader, and the ring's effect on that.
fn latency(record: &Record) -> [Verdict; 2] {
    let by_alone = |route: &str| ratio(record, LATENCY, ALONE, route);
    let blocked = Verdict::above(
        "003",
        "A long copy by plain calls delays a reader on the same device",
        by_alone("inline"),
        1.0,
        |ratio| {
            let alone = record.find(&[("case", LATENCY), ("route", ALONE)]);
            let p99 = alone.and_then(|cell| record.summary(cell, measure_of(LATENCY)));
            let alone = p99.map(|found| figure(found.median.middle, "s")).unwrap_or_default();
            format!(
                "the 99th percentile was {} times that without a copy ({alone}), with at least {} reads a run",
                interval(ratio),
                plain(fewest_reads(record))
            )
        },
    );
    let mut helped = Verdict::below(
        "003",
        "Asynchronous I/O lowers latency: long writes do not block a reader",
        ratio(record, LATENCY, "inline", "ring"),
        1.0,
        |ratio| {
            let times = by_alone("ring");
            let times = times.map(|times| format!("; it was {} times that without a copy", interval(&times)));
            let what = what_of(LATENCY);
            let (times, pool) = (times.unwrap_or_default(), pool(record, LATENCY));
            format!("{what} on the ring was {} times that of plain calls{pool}{times}", interval(ratio))
        },
    );
    not_unless(&blocked, &mut helped, "; inline calls may not have blocked the reader at all");
    [blocked, helped]
}

/// The effect of a long operation on the other fibers of its worker, and the ring's effect on that.
fn same_worker(record: &Record, case: &str, what: &str) -> [Verdict; 2] {
    let by_alone = |route: &str| ratio(record, case, ALONE, route);
    let median = |route: &str| {
        let cell = record.find(&[("case", case), ("route", route)]);
        let p99 = cell.and_then(|cell| record.summary(cell, measure_of(case)));
        p99.map(|found| figure(found.median.middle, "s")).unwrap_or_default()
    };
    let delayed = Verdict::above(
        "003",
        &format!("{what} by a plain call delays the other fibers of its worker"),
        by_alone("inline"),
        1.0,
        |ratio| {
            format!(
                "{} was {} times that alone ({}, alone {})",
                what_of(case),
                interval(ratio),
                median("inline"),
                median(ALONE)
            )
        },
    );
    let mut helped = Verdict::below(
        "003",
        &format!("{what} on the ring delays the other fibers of its worker less than a plain call"),
        ratio(record, case, "inline", "ring"),
        1.0,
        |ratio| {
            let times = by_alone("ring");
            let times = times.map(|times| format!("; it was {} times that alone", interval(&times)));
            let (pool, times) = (pool(record, case), times.unwrap_or_default());
            format!(
                "{} on the ring was {} times that of plain calls{pool}{times}",
                what_of(case),
                interval(ratio)
            )
        },
    );
    not_unless(&delayed, &mut helped, "; plain calls may not have delayed them at all");
    [delayed, helped]
}

/// If plain calls delay nothing, a better figure says nothing about delays.
fn not_unless(delayed: &Verdict, helped: &mut Verdict, words: &str) {
    let is_delayed = !matches!(delayed.outcome, Outcome::DidNotHold | Outcome::Unclear);
    if helped.outcome == Outcome::Held && !is_delayed {
        helped.outcome = Outcome::Unclear;
        helped.words += words;
    }
}

/// Reads in the run with the fewest.
fn fewest_reads(record: &Record) -> f64 {
    let cells = record.cells.iter().filter(|cell| cell.text("case") == LATENCY);
    cells.flat_map(|cell| cell.figures("reads")).fold(f64::INFINITY, f64::min)
}

fn ratio(record: &Record, case: &str, base: &str, other: &str) -> Option<Interval> {
    let cell = |route: &str| record.find(&[("case", case), ("route", route)]);
    record.ratio(cell(base)?, cell(other)?, measure_of(case))
}

fn what_of(case: &str) -> &'static str {
    match measure_of(case) {
        "read_p99_s" => "a reader's 99th percentile beside the copy",
        "tick_p99_s" => "the 99th percentile of a tick's delay",
        "durable_s" => "the time until it was durable",
        _ => "the time",
    }
}

fn pool(record: &Record, case: &str) -> String {
    let found = ratio(record, case, "inline", "pool");
    found.map(|ratio| format!(", on the pool {}", interval(&ratio))).unwrap_or_default()
}

/// Compares `auto` with the fastest of the other routes.
fn choice(record: &Record, case: &str) -> Option<Verdict> {
    let median = |route: &'static str| {
        let cell = record.find(&[("case", case), ("route", route)])?;
        Some((route, record.summary(cell, measure_of(case))?.median.middle))
    };
    let known = ["inline", "ring", "pool"];
    let (best, _) = known.into_iter().filter_map(median).min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Verdict::below(
        "",
        &format!("ferry's own choice of routes is at most 15 % slower than the best route ({case})"),
        ratio(record, case, best, "auto"),
        CLOSE,
        |ratio| format!("{} was {} times that with the best route, {best}", what_of(case), interval(ratio)),
    ))
}

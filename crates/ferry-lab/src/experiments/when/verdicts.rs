//! What document 003 says about when asynchronous I/O helps, and whether that held here.

use super::CASES;
use crate::record::Record;
use crate::statistics::Interval;
use crate::verdict::{Verdict, interval};

/// Ferry's own choice may be so much slower than the best route.
const CLOSE: f64 = 1.15;

/// What matters in a case.
pub(super) fn measure_of(case: &str) -> &'static str {
    match case {
        "two-devices" => "durable_s",
        "latency" => "read_p99_s",
        _ => "returned_s",
    }
}

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let claims = [
        ("two-devices", "Asynchronous I/O is useful when two separate disks take part"),
        (
            "small-memory",
            "Asynchronous I/O is useful without a lot of memory, where writes wait for flushing",
        ),
        ("durable", "Asynchronous I/O is useful where writes must be durable"),
        ("latency", "Asynchronous I/O is useful for good latency: a reader is not blocked by long writes"),
    ];
    let mut verdicts = vec![Verdict::above(
        "003",
        "Otherwise the kernel's buffering is a good default: asynchronous copying is no faster",
        ratio(record, "buffered", "inline", "ring"),
        1.0,
        |ratio| {
            format!(
                "on the ring it took {} times as long as plain calls; writes on the ring are done by kernel workers, \
                 on another processor if there is one",
                interval(ratio)
            )
        },
    )];
    verdicts.extend(claims.map(|(case, finding)| {
        Verdict::below("003", finding, ratio(record, case, "inline", "ring"), 1.0, |ratio| {
            let what = what_of(case);
            format!("{what} on the ring was {} of that of plain calls{}", interval(ratio), pool(record, case))
        })
    }));
    verdicts.extend(CASES.iter().filter_map(|case| choice(record, case)));
    verdicts
}

fn ratio(record: &Record, case: &str, base: &str, other: &str) -> Option<Interval> {
    let cell = |route: &str| record.find(&[("case", case), ("route", route)]);
    record.ratio(cell(base)?, cell(other)?, measure_of(case))
}

fn what_of(case: &str) -> &'static str {
    match measure_of(case) {
        "read_p99_s" => "a reader's 99th percentile beside the copy",
        "durable_s" => "the time until it was durable",
        _ => "the time",
    }
}

fn pool(record: &Record, case: &str) -> String {
    let found = ratio(record, case, "inline", "pool");
    found.map(|ratio| format!(", on the pool {}", interval(&ratio))).unwrap_or_default()
}

/// Ferry's own choice beside the fastest of the routes that it chooses from.
fn choice(record: &Record, case: &str) -> Option<Verdict> {
    let median = |route: &'static str| {
        let cell = record.find(&[("case", case), ("route", route)])?;
        Some((route, record.summary(cell, measure_of(case))?.median.middle))
    };
    let known = ["inline", "ring", "pool"];
    let (best, _) = known.into_iter().filter_map(median).min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Verdict::below(
        "",
        &format!("Ferry's own choice of routes comes close to the best of them ({case})"),
        ratio(record, case, best, "auto"),
        CLOSE,
        |ratio| format!("{} with it was {} of that with all on {best}", what_of(case), interval(ratio)),
    ))
}

//! The answer of `lab when`: the ring beside plain calls, in the first case that was measured.

use super::common::{RETURNED, stated};
use crate::headline::{Headline, confidence, others, speed};
use crate::record::Record;
use crate::statistics::Interval;
use crate::verdict::middle;

/// Quantity that a case compares.
enum Compared {
    /// Time of a copy, made `in a copy with little memory`.
    Copy(&'static str),
    /// 99th percentile of the time that others wait during a long operation: who waits, and when.
    Waits(&'static str, &'static str),
}

const FIBERS: &str = "other fibers of the worker wait";

/// Cases with their measure; the first one that was measured is the answer.
const CASES: [(&str, &str, Compared); 7] = [
    ("two-devices", "durable_s", Compared::Copy("in a durable copy between two devices")),
    ("durable", RETURNED, Compared::Copy("in a durable copy of small files")),
    ("small-memory", RETURNED, Compared::Copy("in a copy with little memory")),
    ("latency", "read_p99_s", Compared::Waits("another reader of the device waits", "during a copy")),
    ("beside-read", "tick_p99_s", Compared::Waits(FIBERS, "during a long read")),
    ("beside-sync", "tick_p99_s", Compared::Waits(FIBERS, "during an fsync(2)")),
    ("buffered", RETURNED, Compared::Copy("in a copy with enough memory")),
];

/// The ring beside plain calls in the first case that was measured, and the other cases counted.
pub(in crate::experiments) fn when(record: &Record) -> Headline {
    let route = |case: &str, route: &str| record.find(&[("case", case), ("route", route)]);
    let measured = |(case, measure, compared): &'static (&str, &str, Compared)| {
        let (plain, ring) = (route(case, "inline")?, route(case, "ring")?);
        let speed = speed(record, plain, ring, measure)?;
        let sentence = match compared {
            Compared::Copy(place) => stated(record, ("The ring", "plain calls"), place, speed, None),
            Compared::Waits(who, during) => waits(record, (who, during), record.ratio(plain, ring, measure)?),
        };
        Some((*case, speed, sentence))
    };
    let mut found = CASES.iter().filter_map(measured);
    let Some((case, _, answer)) = found.next() else { return Headline::none("the ring and plain calls") };
    let rest: Vec<Interval> = found.map(|(_, speed, _)| speed).collect();
    Headline::new(answer).and(others(&rest, ["case", "cases"])).shown_by(case.to_owned())
}

/// Waiting time of others with the ring, relative to plain calls.
fn waits(record: &Record, (who, during): (&str, &str), ratio: Interval) -> String {
    let aside = format!("99th percentile; {}", confidence(&ratio, record.scale));
    let times = middle(&ratio);
    if ratio.is_enough() && !ratio.is_above(1.0) && !ratio.is_below(1.0) {
        return format!(
            "The ring and plain calls can't be told apart by how long {who} {during}: {times} ({aside})"
        );
    }
    format!("With the ring, {who} {times}x as long {during} as with plain calls ({aside})")
}

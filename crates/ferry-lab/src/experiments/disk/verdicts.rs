//! Statements of document 003 about devices.

use crate::load::RequestKind;
use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::verdict::{Verdict, interval};

const DEEP: u64 = 64;

/// The cell of a pattern; sequential ones have any block size.
pub(super) fn find<'r>(record: &'r Record, pattern: &str, depth: u64, kind: RequestKind) -> Option<&'r Cell> {
    record.cells.iter().find(|cell| {
        cell.text("pattern") == pattern
            && cell.number("depth") == Some(depth)
            && cell.text("operation") == kind.name()
    })
}

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let rate = |base: (&str, u64, RequestKind), other: (&str, u64, RequestKind)| {
        let (base, other) = (find(record, base.0, base.1, base.2)?, find(record, other.0, other.1, other.2)?);
        record.ratio(base, other, "throughput_b_s")
    };
    let times = |found: &Interval| format!("throughput was {} times as much", interval(found));
    let mut verdicts = Vec::new();
    for (kind, small, deep, share) in [
        (RequestKind::Read, "0.04", "16.5", "0.61"),
        (RequestKind::Write, "0.21", "4.3", "0.89"),
        (RequestKind::Mixed, "0.07", "9.9", "0.73"),
    ] {
        let name = kind.name();
        verdicts.extend([
            Verdict::below(
                "003",
                &format!(
                    "At depth 1, random requests of 4 KiB reach less than half the throughput of sequential ones ({name})"
                ),
                rate(("sequential", 1, kind), ("random", 1, kind)),
                0.5,
                times,
            )
            .published(small),
            Verdict::above(
                "003",
                &format!(
                    "With {DEEP} requests in flight, random requests reach more than twice the throughput of one at a \
                     time ({name})"
                ),
                rate(("random", 1, kind), ("random", DEEP, kind)),
                2.0,
                times,
            )
            .published(deep),
            Verdict::below(
                "003",
                &format!(
                    "Even with {DEEP} in flight, random requests reach less throughput than sequential ones at depth 1 \
                     ({name})"
                ),
                rate(("sequential", 1, kind), ("random", DEEP, kind)),
                1.0,
                times,
            )
            .published(share),
        ]);
    }
    verdicts.extend([
        Verdict::above(
            "003",
            "At depth 1 random writes of 4 KiB are faster than random reads",
            rate(("random", 1, RequestKind::Read), ("random", 1, RequestKind::Write)),
            1.0,
            times,
        )
        .published("3.7"),
        Verdict::below(
            "003",
            "Sequential writes are slower than sequential reads",
            rate(("sequential", 1, RequestKind::Read), ("sequential", 1, RequestKind::Write)),
            1.0,
            times,
        )
        .published("0.66"),
    ]);
    verdicts
}

//! Goals of ferry's own cache.

use super::access::Access;
use crate::record::{Cell, Record, Value};
use crate::statistics::Interval;
use crate::units::size;
use crate::verdict::{Verdict, interval};

/// Minimum share of the device's rate.
const OF_DEVICE: f64 = 0.95;
/// Hit ratios that differ only by rounding count as equal.
const AT_LEAST: f64 = 0.999;

fn cell<'r>(record: &'r Record, access: Access, way: &str, cache: Option<u64>) -> Option<&'r Cell> {
    record.cells.iter().find(|cell| {
        cell.text("access") == access.name() && cell.text("way") == way && cell.number("cache_bytes") == cache
    })
}

/// The faster way without a cache. On devices as fast as memory, a queue can be slower than one request at a time.
fn fastest(record: &Record, access: Access) -> &'static str {
    let rate = |way: &str| {
        let summary = record.summary(cell(record, access, way, None)?, "throughput_b_s")?;
        Some(summary.median.middle)
    };
    if rate("one-at-a-time") > rate("device") { "one-at-a-time" } else { "device" }
}

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let caches = match record.parameters.get("cache-sizes") {
        Some(Value::Numbers(caches)) => caches.clone(),
        _ => Vec::new(),
    };
    let ratio = |access, base: (&str, Option<u64>), other: (&str, Option<u64>), measure| {
        let (base, other) = (cell(record, access, base.0, base.1)?, cell(record, access, other.0, other.1)?);
        record.ratio(base, other, measure)
    };
    let times = |what: &'static str| move |found: &Interval| format!("{} times {what}", interval(found));
    let mut verdicts = Vec::new();
    let is_taken = |access: Access| record.find(&[("access", access.name())]).is_some();
    for access in [Access::Sequential, Access::Overwrite].into_iter().filter(|access| is_taken(*access)) {
        for &cache in &caches {
            verdicts.push(Verdict::above(
                "",
                &format!(
                    "With a cache of {}, {} reaches at least {OF_DEVICE} times the throughput of O_DIRECT without \
                    one \
                     (with a deep queue or one request at a time, whichever is faster)",
                    size(cache),
                    access.name()
                ),
                ratio(access, (fastest(record, access), None), ("own-cache", Some(cache)), "throughput_b_s"),
                OF_DEVICE,
                times("its throughput"),
            ));
        }
        verdicts.push(Verdict::below(
            "001",
            &format!("O_DIRECT with one request in flight is slower than the page cache ({})", access.name()),
            ratio(access, ("page-cache", None), ("one-at-a-time", None), "throughput_b_s"),
            1.0,
            times("its throughput"),
        ));
    }
    if is_taken(Access::Zipf) {
        for &cache in &caches {
            verdicts.push(Verdict::above(
                "",
                &format!(
                    "With zipf reads, a cache of {} reaches at least the hit ratio of LRU of the same size",
                    size(cache)
                ),
                ratio(Access::Zipf, ("lru", Some(cache)), ("own-cache", Some(cache)), "hit_ratio"),
                AT_LEAST,
                times("LRU's hit ratio"),
            ));
        }
    }
    for access in [Access::Random, Access::Zipf, Access::Mixed].into_iter().filter(|a| is_taken(*a)) {
        for &cache in &caches {
            verdicts.push(Verdict::above(
                "",
                &format!(
                    "With a cache of {}, {} is faster than O_DIRECT without one",
                    size(cache),
                    access.name()
                ),
                ratio(access, ("one-at-a-time", None), ("own-cache", Some(cache)), "throughput_b_s"),
                1.0,
                times("its requests a second"),
            ));
        }
    }
    verdicts
}

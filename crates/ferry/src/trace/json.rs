//! Formats a summary as one JSON object in one line; times are in nanoseconds.

use std::fmt::Write;

use ferry_io::Route;
use ferry_trace::Summary;
use ferry_trace::answer::{Answer, Awaited, Busy, Threads, Wait};
use ferry_trace::model::{Operation, Trace};
use ferry_trace::summary::{Basis, Phases, Place, PoolTime, Times, duration};
use serde_json::{Map, Value, json};

use super::reasons::because;

#[cfg(test)]
mod tests;

/// Number of intervals for depths over time.
const SLOTS: usize = 46;

pub(super) fn of(trace: &Trace) -> String {
    let about = &trace.about;
    let summary = &Summary::of(trace, SLOTS);
    let object = json!({
        "answer": answer(trace, summary),
        "command": about.command,
        "run": about.run,
        "recorder": about.recorder,
        "kernel": about.kernel,
        "processors": about.processors,
        "backend": about.backend,
        "began_ns": about.began,
        "took_ns": about.took,
        "missing": about.missing,
        "lost": { "program": trace.lost.program, "kernel": trace.lost.kernel },
        "events": summary.events,
        "operations": summary.operations,
        "unfinished": summary.unfinished,
        "abandoned": summary.abandoned,
        "fibers": summary.fibers,
        "cancelled_scopes": summary.cancelled,
        "routes": routes(summary),
        "reasons": summary.reasons.iter().map(|(route, reason, n)| {
            json!({ "route": route.name(), "reason": reason.name(), "why": reason.why(), "operations": n })
        }).collect::<Vec<_>>(),
        "kinds": kinds(summary),
        "longest": longest(trace, summary),
        "ways": ways(summary),
        "errors": summary.errors.iter().map(|(error, n)| json!({ "errno": error, "operations": n })).collect::<Vec<_>>(),
        "requests": requests(summary),
        "batches": batches(summary),
        "enters": summary.enters.map(|its| json!({ "count": its.count, "waits": its.waits, "slept": its.slept })),
        "depths": summary.depths.iter().map(|depth| {
            json!({ "of": depth.series.name(), "most": depth.peak, "mean": ratio(depth.area, about.took), "peaks": depth.peaks })
        }).collect::<Vec<_>>(),
        "threads": threads(trace, summary),
        "pool_threads": PoolTime::of(trace, &summary.threads).map(|its| pool(&its)),
        "task_work": summary.causes.iter().map(|its| {
            json!({ "cause": its.cause.name(), "runs": its.runs, "units": its.units })
        }).collect::<Vec<_>>(),
        "timelines": timelines(summary),
        "devices": devices(trace, summary),
        "kernel_worker_handovers": summary.hand_overs.map(|its| its.handed_over),
    });
    without_controls(&object.to_string())
}

/// Escapes control characters from U+007F on, which JSON allows and terminals obey.
pub(super) fn without_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default();
        } else {
            out.push(c);
        }
    }
    out
}

fn answer(trace: &Trace, summary: &Summary) -> Value {
    let found = Answer::of(trace, summary, SLOTS);
    let in_flight: Map<String, Value> = found
        .in_flight
        .iter()
        .map(|its| {
            let share = ratio(its.time.into(), trace.about.took);
            (its.activity.name().to_owned(), json!({ "time_ns": its.time, "share": share }))
        })
        .collect();
    json!({
        "in_flight": in_flight,
        "most_in_flight": found.depth.peak,
        "busy": found.busy.map(|its| busy(&its)),
        "longest_wait": found.longest_wait.map(|its| wait(trace, its)),
    })
}

fn busy(busy: &Busy) -> Value {
    let of = match busy.of {
        Threads::Workers => "workers",
        Threads::Others => "threads",
    };
    let share = ratio(busy.time.into(), busy.lived);
    json!({ "of": of, "threads": busy.threads, "time_ns": busy.time, "lived_ns": busy.lived, "share": share })
}

fn wait(trace: &Trace, wait: Wait) -> Value {
    match wait.on {
        Awaited::Operation(index) => trace.operations.get(index).map(|its| operation(trace, its)),
        Awaited::Request(index) => {
            trace.requests.get(index).map(|its| json!({ "opcode": its.opcode, "took_ns": wait.took }))
        }
    }
    .into()
}

fn times(times: &Times) -> Map<String, Value> {
    let Times { count, total, median, p99, max } = *times;
    let fields =
        [("count", count), ("total_ns", total), ("median_ns", median), ("p99_ns", p99), ("max_ns", max)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn with(mut object: Map<String, Value>, more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    object.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(object)
}

fn routes(summary: &Summary) -> Vec<Value> {
    let one = |its: &ferry_trace::summary::RouteTimes| {
        with(times(&its.times), [("route", its.route.name().into()), ("phases", phases(&its.phases))])
    };
    summary.routes.iter().map(one).collect()
}

fn phases(phases: &Phases) -> Value {
    let Phases { queued, running, untaken, unknown } = *phases;
    json!({ "queued_ns": queued, "running_ns": running, "untaken_ns": untaken, "unknown_ns": unknown })
}

fn kinds(summary: &Summary) -> Vec<Value> {
    let one = |its: &ferry_trace::summary::KindTimes| {
        let by_route: Map<String, Value> = Route::ALL
            .iter()
            .zip(its.by_route)
            .map(|(route, n)| (route.name().to_owned(), n.into()))
            .collect();
        let more =
            [("kind", its.kind.name().into()), ("failed", its.failed.into()), ("by_route", by_route.into())];
        with(times(&its.times), more)
    };
    summary.kinds.iter().map(one).collect()
}

fn longest(trace: &Trace, summary: &Summary) -> Vec<Value> {
    let found = summary.longest.iter().filter_map(|&index| trace.operations.get(index));
    found.map(|its| operation(trace, its)).collect()
}

fn operation(trace: &Trace, operation: &Operation) -> Value {
    let fiber = operation.fiber.and_then(|index| trace.fibers.get(usize::try_from(index).ok()?));
    json!({
        "kind": operation.kind.name(),
        "name": operation.name,
        "fiber": fiber.map(|fiber| fiber.name.as_str()),
        "path": Place::of(trace, operation).path(),
        "size": operation.size,
        "offset": operation.offset,
        "route": operation.route.name(),
        "reason": operation.reason.name(),
        "why": operation.reason.why(),
        "asked_ns": operation.asked,
        "took_ns": duration(operation),
        "phases": Phases::of_one(operation).map(|its| phases(&its)),
    })
}

fn ways(summary: &Summary) -> Vec<Value> {
    let one = |its: &ferry_trace::summary::WayTimes| {
        json!({
            "way": its.way.name(),
            "pieces": its.pieces,
            "trials": its.trials,
            "bytes": its.bytes,
            "took_ns": its.took,
        })
    };
    summary.ways.iter().map(one).collect()
}

fn requests(summary: &Summary) -> Vec<Value> {
    let one = |its: &ferry_trace::summary::OpcodeTimes| {
        json!({
            "opcode": its.opcode,
            "requests": its.count,
            "handed_over": its.handed_over,
            "failed": its.failed,
            "times": its.times.as_ref().map(times),
        })
    };
    summary.requests.iter().map(one).collect()
}

fn devices(trace: &Trace, summary: &Summary) -> Option<Value> {
    let devices = summary.devices.as_ref()?;
    let one = |its: &ferry_trace::summary::DeviceTimes| {
        let device = usize::try_from(its.device).ok().and_then(|index| trace.threads.get(index));
        json!({
            "device": device.map(|device| device.name.as_str()),
            "kind": its.kind.name(),
            "requests": its.count,
            "own": its.own,
            "bytes": its.bytes,
            "failed": its.failed,
            "without_completion": its.open,
            "times": its.times.as_ref().map(times),
        })
    };
    Some(json!({
        "requests": devices.rows.iter().map(one).collect::<Vec<_>>(),
        "in_flight_ns": devices.time,
        "operations_in_flight_ns": devices.operations,
        "both_in_flight_ns": devices.both,
    }))
}

fn batches(summary: &Summary) -> Option<Value> {
    let batches = summary.batches.as_ref()?;
    let sizes = batches.histogram.iter();
    let sizes: Vec<Value> =
        sizes.map(|bar| json!({ "least": bar.least, "most": bar.most, "batches": bar.count })).collect();
    let why: Map<String, Value> =
        batches.why.iter().map(|(why, n)| (because(*why).0.to_owned(), (*n).into())).collect();
    Some(json!({
        "count": batches.count,
        "requests": batches.requests,
        "largest": batches.largest,
        "sizes": sizes,
        "why": why,
    }))
}

fn threads(trace: &Trace, summary: &Summary) -> Vec<Value> {
    let name = |index: u32| usize::try_from(index).ok().and_then(|index| trace.threads.get(index));
    let one = |its: &ferry_trace::summary::ThreadTime| {
        json!({
            "name": name(its.thread).map(|thread| thread.name.as_str()),
            "tid": name(its.thread).map(|thread| thread.tid),
            "lived_ns": its.lived,
            "busy_ns": its.busy,
            "operations": its.operations,
        })
    };
    summary.threads.iter().map(one).collect()
}

fn pool(pool: &PoolTime) -> Value {
    let [least, median, most] = pool.shares.map(|(busy, lived)| ratio(busy.into(), lived));
    json!({
        "threads": pool.threads,
        "operations": pool.operations,
        "lived_ns": pool.lived,
        "busy_ns": pool.busy,
        "least_share": least,
        "median_share": median,
        "most_share": most,
    })
}

fn timelines(summary: &Summary) -> Option<Value> {
    let found = summary.timelines.as_ref()?;
    let of = match found.basis {
        Basis::Operations => "operations",
        Basis::TaskWork => "units of task work",
    };
    Some(json!({
        "of": of,
        "peek": found.peek,
        "at_once": found.at_once,
        "slept": found.slept,
        "unknown": found.unknown,
    }))
}

/// Quotient, rounded down to three decimals; 0 for a divisor of 0.
fn ratio(part: u128, whole: u64) -> f64 {
    let thousandths = (part * 1000).checked_div(u128::from(whole)).unwrap_or(0);
    crate::units::real(u64::try_from(thousandths).unwrap_or(u64::MAX)) / 1000.0
}

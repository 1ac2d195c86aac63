//! Summary of a recording: times by route and kind, batches, depth, task work, and how completions were found.
//!
//! It is a pure function of a [`Trace`]. Times of operations run from the request until the worker took the result.
//! Operations without a result are counted, but have no time.

mod counts;
mod depth;
mod devices;
mod place;
mod rings;
mod times;
mod ways;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ferry_io::{Operation as Kind, Reason, Route};

pub use depth::{Depth, Series, in_flight};
pub(crate) use depth::{span, span_of_device, span_of_request};
pub use devices::{DeviceTimes, Devices};
pub use place::Place;
pub use rings::{Bar, Basis, Batches, CauseCount, Enters, HandOvers, OpcodeTimes, Timelines};
pub use times::{Phases, PoolTime, ThreadTime, Times};
pub use ways::WayTimes;

use crate::Trace;
use crate::model::{Nanos, Operation};
use counts::{count, size};

/// Number of longest operations in a summary.
pub const LONGEST: usize = 10;

/// Summary of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Number of entries in the trace's vectors.
    pub events: u64,
    /// Number of operations.
    pub operations: u64,
    /// Operations without a result at the end of the recording.
    pub unfinished: u64,
    /// Operations whose fiber no longer waited for them.
    pub abandoned: u64,
    /// Number of fibers.
    pub fibers: u64,
    /// Number of cancelled scopes.
    pub cancelled: u64,
    /// Times by route, in the order of [`Route::ALL`]; unused routes are left out.
    pub routes: Vec<RouteTimes>,
    /// Number of operations by route and reason, descending.
    pub reasons: Vec<(Route, Reason, u64)>,
    /// Times by kind of operation, by total time, descending.
    pub kinds: Vec<KindTimes>,
    /// Longest operations, in [`Trace::operations`], descending.
    pub longest: Vec<usize>,
    /// Ways that moved pieces of large files, by bytes, descending.
    pub ways: Vec<WayTimes>,
    /// Error numbers with their counts, descending.
    pub errors: Vec<(i32, u64)>,
    /// Batches submitted to rings, if any.
    pub batches: Option<Batches>,
    /// Calls of io_uring_enter(2), if any.
    pub enters: Option<Enters>,
    /// Operations in flight and resources in use over time.
    pub depths: Vec<Depth>,
    /// Time use of workers and pool threads.
    pub threads: Vec<ThreadTime>,
    /// Ring requests as the kernel saw them by opcode, by total time, descending.
    pub requests: Vec<OpcodeTimes>,
    /// Runs of task work by cause; causes without runs are left out.
    pub causes: Vec<CauseCount>,
    /// Ways in which completions were found, if known.
    pub timelines: Option<Timelines>,
    /// Requests handed to workers of the kernel, if the kernel was recorded.
    pub hand_overs: Option<HandOvers>,
    /// Requests of block devices, if any.
    pub devices: Option<Devices>,
}

/// Times of the operations on one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTimes {
    /// The route.
    pub route: Route,
    /// Time from request to result.
    pub times: Times,
    /// Phases of that time.
    pub phases: Phases,
}

/// Times of the operations of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindTimes {
    /// The kind.
    pub kind: Kind,
    /// Time from request to result.
    pub times: Times,
    /// Number of operations on each route, in the order of [`Route::ALL`].
    pub by_route: [u64; Route::ALL.len()],
    /// Number of operations that failed.
    pub failed: u64,
}

impl Summary {
    /// Summarises a recording; depths over time are given for `slots` equal parts of it.
    #[must_use]
    pub fn of(trace: &Trace, slots: usize) -> Self {
        let has_kernel = !trace.requests.is_empty() || !trace.kernel.is_empty();
        Self {
            events: events(trace),
            operations: size(trace.operations.len()),
            unfinished: count(&trace.operations, |operation| operation.taken.is_none()),
            abandoned: count(&trace.operations, |operation| operation.abandoned),
            fibers: size(trace.fibers.len()),
            cancelled: count(&trace.scopes, |scope| scope.cancelled.is_some()),
            routes: routes(&trace.operations),
            reasons: reasons(&trace.operations),
            kinds: kinds(&trace.operations),
            longest: longest(&trace.operations),
            ways: ways::of(&trace.pieces),
            errors: errors(&trace.operations),
            batches: Batches::of(&trace.submissions),
            enters: Enters::of(&trace.enters),
            depths: depth::of(trace, slots),
            threads: times::threads(trace),
            requests: rings::opcodes(&trace.requests),
            causes: rings::causes(&trace.kernel),
            timelines: Timelines::of(trace),
            hand_overs: has_kernel.then(|| HandOvers::of(trace)),
            devices: Devices::of(trace),
        }
    }

    /// Total time of all operations.
    #[must_use]
    pub fn time(&self) -> Nanos {
        times::together(self.routes.iter().map(|route| route.times.total))
    }
}

/// Time from request to result, if there is a result.
#[must_use]
pub fn duration(operation: &Operation) -> Option<Nanos> {
    operation.taken.map(|taken| taken.saturating_sub(operation.asked))
}

fn events(trace: &Trace) -> u64 {
    let program = [
        trace.scopes.len(),
        trace.fibers.len(),
        trace.operations.len(),
        trace.submissions.len(),
        trace.enters.len(),
        trace.rests.len(),
        trace.pieces.len(),
        trace.samples.len(),
    ];
    let kernel = [trace.requests.len(), trace.device_requests.len(), trace.kernel.len()];
    size(program.iter().chain(&kernel).sum())
}

fn routes(operations: &[Operation]) -> Vec<RouteTimes> {
    let of_route = |route| {
        let its: Vec<&Operation> = operations.iter().filter(|operation| operation.route == route).collect();
        let times = Times::of(its.iter().filter_map(|operation| duration(operation)).collect())?;
        Some(RouteTimes { route, times, phases: Phases::of(&its) })
    };
    Route::ALL.into_iter().filter_map(of_route).collect()
}

fn reasons(operations: &[Operation]) -> Vec<(Route, Reason, u64)> {
    let mut counts = [[0_u64; Reason::ALL.len()]; Route::ALL.len()];
    for operation in operations {
        counts[operation.route as usize][operation.reason as usize] += 1;
    }
    let rows = Route::ALL.into_iter().zip(counts);
    let cells =
        rows.flat_map(|(route, row)| Reason::ALL.into_iter().zip(row).map(move |(why, n)| (route, why, n)));
    let mut reasons: Vec<_> = cells.filter(|(.., n)| *n > 0).collect();
    reasons.sort_by_key(|(.., n)| std::cmp::Reverse(*n));
    reasons
}

fn kinds(operations: &[Operation]) -> Vec<KindTimes> {
    let mut durations: Vec<Vec<Nanos>> = vec![Vec::new(); Kind::ALL.len()];
    let mut found = [([0; Route::ALL.len()], 0); Kind::ALL.len()];
    for operation in operations {
        let kind = operation.kind as usize;
        let (by_route, failed) = &mut found[kind];
        by_route[operation.route as usize] += 1;
        *failed += u64::from(matches!(operation.result, Some(Err(_))));
        durations[kind].extend(duration(operation));
    }
    let all = Kind::ALL.into_iter().zip(durations).zip(found);
    let mut kinds: Vec<KindTimes> = all
        .filter_map(|((kind, durations), (by_route, failed))| {
            Some(KindTimes { kind, times: Times::of(durations)?, by_route, failed })
        })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.times.total));
    kinds
}

fn longest(operations: &[Operation]) -> Vec<usize> {
    let timed = operations.iter().enumerate();
    let mut timed: Vec<(Nanos, usize)> =
        timed.filter_map(|(index, operation)| Some((duration(operation)?, index))).collect();
    let order = |&(took, index): &(Nanos, usize)| (std::cmp::Reverse(took), index);
    if timed.len() > LONGEST {
        timed.select_nth_unstable_by_key(LONGEST, order);
        timed.truncate(LONGEST);
    }
    timed.sort_by_key(order);
    timed.into_iter().map(|(_, index)| index).collect()
}

fn errors(operations: &[Operation]) -> Vec<(i32, u64)> {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for error in operations.iter().filter_map(|operation| operation.result?.err()) {
        *counts.entry(error).or_default() += 1;
    }
    let mut errors: Vec<(i32, u64)> = counts.into_iter().collect();
    errors.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    errors
}

//! Operations in flight and resources in use: maxima in equal parts of the recording.

use ferry_io::Route;

use crate::Trace;
use crate::model::{DeviceRequest, Gauge, Nanos, Operation, Request};

/// Counted quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// The runtime's operations on any route, from submission to completion; see [`in_flight`].
    Operations,
    /// The runtime's operations on rings, from submission to completion, or to the result where the completion is
    /// unknown.
    Ring,
    /// The runtime's operations on the pool, from the queue to completion.
    Pool,
    /// Ring requests of another program as the kernel saw them.
    Requests,
    /// Requests of block devices of any program, as far as their completions were recorded.
    Devices,
    /// Fibers that had begun and not ended.
    Fibers,
    /// Blocks in use.
    Blocks,
    /// Open descriptors.
    Descriptors,
}

impl Series {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Ring => "ring",
            Self::Pool => "pool",
            Self::Requests => "requests",
            Self::Devices => "devices",
            Self::Fibers => "fibers",
            Self::Blocks => "blocks",
            Self::Descriptors => "descriptors",
        }
    }
}

/// A quantity over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depth {
    /// The quantity.
    pub series: Series,
    /// Maximum in each part of the recording.
    pub peaks: Vec<u64>,
    /// Maximum.
    pub peak: u64,
    /// Integral over time; divided by the duration it is the mean.
    pub area: u128,
}

/// Time and amount of a change.
type Step = (Nanos, i64);

/// Time in which an operation is in flight: from its submission until its completion. An inline operation is submitted
/// when its call begins, an operation of the pool when it enters the queue, and an operation of a ring with its batch.
/// Without a recorded completion, the operation ends when its result is taken, or at the latest with the recording.
pub(crate) fn span(operation: &Operation, took: Nanos) -> (Nanos, Nanos) {
    let began = operation.submitted.unwrap_or(operation.asked);
    (began, operation.completed.or(operation.taken).unwrap_or(took))
}

/// Time in which a ring's request is in flight, as the kernel saw it.
pub(crate) fn span_of_request(request: &Request, took: Nanos) -> (Nanos, Nanos) {
    (request.submitted, request.completed.unwrap_or(took))
}

/// Time in which a request of a block device is in flight; none if its completion was not recorded, because it may have
/// been complete ever since.
pub(crate) fn span_of_device(request: &DeviceRequest) -> (Nanos, Nanos) {
    (request.issued, request.completed.unwrap_or(request.issued))
}

/// Returns the number of operations in flight over time, or of a ring's requests if there are no operations. Maxima are
/// given for `slots` equal parts of the recording.
#[must_use]
pub fn in_flight(trace: &Trace, slots: usize) -> Depth {
    let took = trace.about.took;
    if trace.operations.is_empty() {
        let spans = trace.requests.iter().map(|request| span_of_request(request, took));
        return depth(Series::Requests, spans.flat_map(between).collect(), took, slots);
    }
    let spans = trace.operations.iter().map(|operation| span(operation, took));
    depth(Series::Operations, spans.flat_map(between).collect(), took, slots)
}

pub(super) fn of(trace: &Trace, slots: usize) -> Vec<Depth> {
    let took = trace.about.took;
    let on = |route: Route| {
        let its = trace.operations.iter().filter(move |operation| operation.route == route);
        its.flat_map(move |operation| between(span(operation, took)))
    };
    let is_ours = !trace.operations.is_empty();
    let requests = trace.requests.iter().filter(|_| !is_ours);
    let requests = requests.flat_map(|request| between(span_of_request(request, took)));
    let fibers = trace.fibers.iter().flat_map(|fiber| between((fiber.began, fiber.ended.unwrap_or(took))));
    let devices = trace.device_requests.iter().flat_map(|request| between(span_of_device(request)));
    let all: [(Series, Vec<Step>); 7] = [
        (Series::Ring, on(Route::Ring).collect()),
        (Series::Pool, on(Route::Pool).collect()),
        (Series::Requests, requests.collect()),
        (Series::Devices, devices.collect()),
        (Series::Fibers, fibers.collect()),
        (Series::Blocks, sampled(trace, Gauge::Blocks)),
        (Series::Descriptors, sampled(trace, Gauge::Descriptors)),
    ];
    let some = all.into_iter().filter(|(_, steps)| !steps.is_empty());
    some.map(|(series, steps)| depth(series, steps, took, slots)).collect()
}

/// Changes of an interval: one more, then one less; none if it took no time.
fn between((began, ended): (Nanos, Nanos)) -> impl Iterator<Item = Step> {
    [(began, 1), (ended, -1)].into_iter().filter(move |_| began < ended)
}

/// Changes of a gauge, computed for each thread.
fn sampled(trace: &Trace, gauge: Gauge) -> Vec<Step> {
    let mut last = vec![0; trace.threads.len()];
    let samples = trace.samples.iter().filter(|sample| sample.gauge == gauge);
    samples
        .filter_map(|sample| {
            let last = last.get_mut(usize::try_from(sample.thread).ok()?)?;
            let value = i64::try_from(sample.value).unwrap_or(i64::MAX);
            Some((sample.at, value - std::mem::replace(last, value)))
        })
        .collect()
}

fn depth(series: Series, mut steps: Vec<Step>, took: Nanos, slots: usize) -> Depth {
    // Decreases come first, because intervals that only touch do not overlap.
    steps.sort_unstable();
    let mut peaks = vec![0; slots.max(1)];
    let (mut level, mut since, mut slot, mut area) = (0_i64, 0, 0, 0_u128);
    for (at, change) in steps {
        let at = at.min(took);
        let until = slot_of(at, took, peaks.len());
        let now = u64::try_from(level).unwrap_or(0);
        if at > since {
            // The old level counts in this part only if it lasted into it.
            let lasted = if starts(until, took, peaks.len()) == at { until } else { until + 1 };
            peaks[slot..lasted.max(slot + 1)].iter_mut().for_each(|peak| *peak = now.max(*peak));
            area += u128::from(now) * u128::from(at - since);
        }
        level = level.saturating_add(change);
        (since, slot) = (at, until);
    }
    let now = u64::try_from(level).unwrap_or(0);
    if took > since {
        peaks[slot..].iter_mut().for_each(|peak| *peak = now.max(*peak));
        area += u128::from(now) * u128::from(took - since);
    }
    let peak = peaks.iter().copied().max().unwrap_or(0);
    Depth { series, peaks, peak, area }
}

/// Part that contains a time.
fn slot_of(at: Nanos, took: Nanos, slots: usize) -> usize {
    let slots_wide = u128::try_from(slots).unwrap_or(u128::MAX);
    let index = (u128::from(at) * slots_wide).checked_div(u128::from(took)).unwrap_or(0);
    usize::try_from(index).unwrap_or(usize::MAX).min(slots - 1)
}

fn starts(slot: usize, took: Nanos, slots: usize) -> Nanos {
    let wide = |n: usize| u128::try_from(n).unwrap_or(u128::MAX);
    let at = (u128::from(took) * wide(slot)).div_ceil(wide(slots));
    Nanos::try_from(at).unwrap_or(Nanos::MAX)
}

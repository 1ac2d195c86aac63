//! Requests of block devices: counts, sizes and durations, and how much of the operations' time they cover.

use std::collections::BTreeMap;

use ferry_io::sampling::DeviceKind;

use super::counts::{count, size};
use super::depth::{span, span_of_device, span_of_request};
use super::times::Times;
use crate::Trace;
use crate::model::{DeviceRequest, Nanos};

/// Requests of block devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices {
    /// Requests by device and kind.
    pub rows: Vec<DeviceTimes>,
    /// Time in which at least one request was in flight.
    pub time: Nanos,
    /// Time in which at least one operation was in flight; of a ring's requests if there are no operations.
    pub operations: Nanos,
    /// Part of the operations' time in which a request of a device was in flight, too.
    pub both: Nanos,
}

/// Requests of one kind to one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTimes {
    /// The device, in [`Trace::threads`].
    pub device: u32,
    /// Their kind.
    pub kind: DeviceKind,
    /// Number of requests.
    pub count: u64,
    /// Number of them that threads of the program gave to the device.
    pub own: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Number of requests whose completion was not recorded.
    pub open: u64,
    /// Times from being issued to completion; `None` if no completion was recorded.
    pub times: Option<Times>,
}

impl Devices {
    /// Sums up the requests; `None` without any.
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        if trace.device_requests.is_empty() {
            return None;
        }
        let mut groups: BTreeMap<(u32, DeviceKind), Vec<&DeviceRequest>> = BTreeMap::new();
        for request in &trace.device_requests {
            groups.entry((request.device, request.kind)).or_default().push(request);
        }
        let took = trace.about.took;
        let devices = union(trace.device_requests.iter().map(span_of_device), took);
        let operations = if trace.operations.is_empty() {
            union(trace.requests.iter().map(|request| span_of_request(request, took)), took)
        } else {
            union(trace.operations.iter().map(|operation| span(operation, took)), took)
        };
        Some(Self {
            rows: groups
                .into_iter()
                .map(|((device, kind), its)| DeviceTimes::of(device, kind, &its))
                .collect(),
            time: length(&devices),
            operations: length(&operations),
            both: length(&common(&devices, &operations)),
        })
    }

    /// Number of requests.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }

    /// Number of requests whose completion was not recorded.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.rows.iter().map(|row| row.open).sum()
    }
}

impl DeviceTimes {
    fn of(device: u32, kind: DeviceKind, its: &[&DeviceRequest]) -> Self {
        let took = |request: &&DeviceRequest| Some(request.completed?.saturating_sub(request.issued));
        Self {
            device,
            kind,
            count: size(its.len()),
            own: count(its, |request| request.thread.is_some()),
            bytes: its.iter().fold(0, |sum, request| sum.saturating_add(request.bytes)),
            failed: count(its, |request| request.is_failed),
            open: count(its, |request| request.completed.is_none()),
            times: Times::of(its.iter().filter_map(took).collect()),
        }
    }
}

/// Intervals in order of time, without overlaps, as far as they are within the recording.
fn union(spans: impl Iterator<Item = (Nanos, Nanos)>, took: Nanos) -> Vec<(Nanos, Nanos)> {
    let mut spans: Vec<(Nanos, Nanos)> = spans.map(|(began, ended)| (began, ended.min(took))).collect();
    spans.sort_unstable();
    let mut found: Vec<(Nanos, Nanos)> = Vec::new();
    for (began, ended) in spans.into_iter().filter(|(began, ended)| began < ended) {
        match found.last_mut() {
            Some(last) if began <= last.1 => last.1 = last.1.max(ended),
            Some(_) | None => found.push((began, ended)),
        }
    }
    found
}

/// Times that are within an interval of both lists, each without overlaps.
fn common(first: &[(Nanos, Nanos)], second: &[(Nanos, Nanos)]) -> Vec<(Nanos, Nanos)> {
    let (mut found, mut rest) = (Vec::new(), second);
    for &(began, ended) in first {
        rest = &rest[rest.partition_point(|other| other.1 <= began)..];
        let within = rest.iter().take_while(|other| other.0 < ended);
        found.extend(within.map(|other| (began.max(other.0), ended.min(other.1))));
    }
    found
}

fn length(spans: &[(Nanos, Nanos)]) -> Nanos {
    spans.iter().map(|(began, ended)| ended - began).sum()
}

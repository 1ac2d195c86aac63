//! Requests of block devices, from being issued to completion.
//!
//! A request is identified by its device, kind and first sector. Among requests in flight that are equal in these, the
//! last one is taken to complete first: the completion of an earlier one may not have been sampled, and then it has
//! none.

use std::collections::HashMap;

use ferry_io::sampling::{DeviceKind, Event, SampleKind, Summary};

use crate::model::{DeviceRequest, Nanos, Role, Thread, Trace};

/// Device number, kind and first sector.
type Key = (u32, DeviceKind, u64);

/// Devices seen so far, and their requests in flight.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// Places of devices in [`Trace::threads`].
    places: HashMap<u32, u32>,
    /// Requests in flight, in [`Trace::device_requests`].
    open: HashMap<Key, Vec<u32>>,
}

impl Devices {
    /// Adds a request of a thread of the program, or of another thread.
    pub(super) fn issue(
        &mut self,
        trace: &mut Trace,
        summary: &Summary,
        event: &Event,
        issued: Nanos,
        thread: Option<u32>,
    ) {
        let SampleKind::DeviceIssue { device: number, sector, kind, bytes } = event.what else { return };
        let device = *self.places.entry(number).or_insert_with(|| {
            let known = summary.devices.iter().find(|(known, _)| *known == number);
            let name = known.map_or_else(|| format!("device {number}"), |(_, name)| name.clone());
            trace.threads.push(Thread { tid: 0, role: Role::Device, name });
            u32::try_from(trace.threads.len() - 1).unwrap_or(u32::MAX)
        });
        let place = u32::try_from(trace.device_requests.len()).unwrap_or(u32::MAX);
        self.open.entry((number, kind, sector)).or_default().push(place);
        trace.device_requests.push(DeviceRequest {
            device,
            kind,
            sector,
            bytes: bytes.into(),
            thread,
            issued,
            completed: None,
            is_failed: false,
        });
    }

    /// Completes a request; ignores one that was issued before the recording.
    pub(super) fn complete(&mut self, trace: &mut Trace, event: &Event, completed: Nanos) {
        let SampleKind::DeviceComplete { device, sector, kind, is_failed } = event.what else { return };
        let key = (device, kind, sector);
        let Some(open) = self.open.get_mut(&key) else { return };
        let last = open.pop();
        if open.is_empty() {
            self.open.remove(&key);
        }
        if let Some(request) = last.and_then(|place| trace.device_requests.get_mut(place as usize)) {
            request.completed = Some(completed);
            request.is_failed = is_failed;
        }
    }
}

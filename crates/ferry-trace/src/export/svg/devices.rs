//! Requests of block devices in flight over the whole recording.

use super::axis::{Axis, grouped};
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, count};
use super::text::shortened;
use super::whole::{COLUMNS, Columns, steps};
use crate::model::{DeviceRequest, Trace};
use crate::summary::span_of_device;

/// Maximum number of devices drawn, the busiest; the others are only counted.
const DEVICES: usize = 3;
/// Heights of a device's name and of its picture, in pixels.
const NAME: f64 = 18.0;
const AREA: f64 = 34.0;

/// Draws the devices one beneath the other, and returns the bottom.
pub(super) fn draw(canvas: &mut Canvas, trace: &Trace, axis: Axis, top: f64) -> f64 {
    let devices = busiest(trace);
    if devices.is_empty() {
        return top;
    }
    let mut y = top + 18.0;
    let heading = "Requests of block devices in flight, of every program: mean.";
    canvas.text((8.0, y), "head", Anchor::Start, heading);
    y += 6.0;
    let shown = devices.get(..DEVICES).unwrap_or(&devices);
    axis.draw(canvas, y, y + (NAME + AREA) * count(shown.len()));
    for (device, requests) in shown {
        draw_device(canvas, trace, *device, *requests, axis, y + NAME);
        y += NAME + AREA;
    }
    y += 20.0;
    if devices.len() > shown.len() {
        y += 12.0;
        let text = format!("{} more devices are not drawn.", grouped((devices.len() - shown.len()) as u64));
        canvas.text((8.0, y), "faint", Anchor::Start, &text);
    }
    y
}

/// Devices by number of requests, descending.
fn busiest(trace: &Trace) -> Vec<(u32, u64)> {
    let mut counts = vec![0_u64; trace.threads.len()];
    for request in &trace.device_requests {
        if let Some(count) = counts.get_mut(request.device as usize) {
            *count += 1;
        }
    }
    let mut found: Vec<(u32, u64)> = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
    found.sort_by_key(|(device, count)| (std::cmp::Reverse(*count), *device));
    found
}

fn draw_device(canvas: &mut Canvas, trace: &Trace, device: u32, requests: u64, axis: Axis, top: f64) {
    let mut columns = Columns::of(axis);
    for request in own(trace, device) {
        let (began, ended) = span_of_device(request);
        columns.add(began, ended);
    }
    let means = columns.averages();
    let most = means.iter().copied().fold(0.0, f64::max);
    let name = trace.threads.get(device as usize).map_or("", |thread| &thread.name);
    let text = format!("{name}: {} requests, up to {most:.1} in flight", grouped(requests));
    canvas.text((LEFT, top - 5.0), "small", Anchor::Start, &shortened(&text));
    let bottom = top + AREA;
    canvas.path("rule", [(LEFT, bottom), (RIGHT, bottom)]);
    if most <= 0.0 {
        return;
    }
    let x = |column: usize| LEFT + (RIGHT - LEFT) * count(column) / count(COLUMNS);
    let y = |mean: f64| bottom - AREA * mean / most;
    let shape = steps(&means, x, y).into_iter().chain([(RIGHT, bottom), (LEFT, bottom)]);
    canvas.path("device", shape);
}

fn own(trace: &Trace, device: u32) -> impl Iterator<Item = &DeviceRequest> {
    trace.device_requests.iter().filter(move |request| request.device == device)
}

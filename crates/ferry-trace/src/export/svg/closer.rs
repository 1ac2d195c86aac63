//! Part of the recording in which each operation is visible, with its waiting and its batch.

use super::axis::{Axis, grouped, words};
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, count};
use super::spans::{Span, class, end, spans};
use super::text::{ROOM, cut};
use crate::export::parts::Doing;
use crate::export::rows::Rows;
use crate::model::{IDLE, Nanos, Submission, SubmitReason, Trace};

/// Maximum number of operations drawn, which is also the desired number.
pub(super) const MOST: usize = 500;
const WANTED: usize = 100;
/// Desired number of submissions.
const BATCHES: usize = 8;
/// Maximum number of rows; operations without a row are counted.
const ROWS: usize = 160;
/// Numbers of rows up to which names, and bars of two heights, fit.
const NAMED_ROWS: usize = 20;
const LARGE_ROWS: usize = 64;
/// Room for the number of a submission in pixels.
const NUMBER: f64 = 18.0;
/// Maximum number of calls and sleeps drawn.
const CALLS: usize = 600;

/// Returns a period around the middle of a thread's operations with a suitable number of them; everything, if there
/// are few.
pub(super) fn window(trace: &Trace, thread: u32, all: Axis) -> Axis {
    let own = spans(trace).filter(|span| span.thread == thread);
    let own: Vec<(Nanos, Nanos)> = own.map(|span| (span.began, span.ended)).collect();
    if own.len() <= MOST {
        return all;
    }
    let middle = own.get(own.len() / 2).map_or(0, |(began, _)| *began);
    let within = |axis: Axis| {
        let overlapping = own.iter().take_while(|(began, _)| *began < axis.ended);
        overlapping.filter(|(_, ended)| axis.began < *ended).take(MOST + 1).count()
    };
    let batches: Vec<Nanos> =
        trace.submissions.iter().filter(|batch| batch.thread == thread).map(|batch| batch.at).collect();
    let wanted = batches.len().min(BATCHES);
    let has_all = |axis: Axis| {
        let found = batches.iter().filter(|at| (axis.began..=axis.ended).contains(at));
        within(axis) >= WANTED && found.take(wanted).count() == wanted
    };
    let mut found = Axis::of(middle, middle.saturating_add(1_000));
    while !has_all(found) && found.ended < all.ended {
        let end = middle.saturating_add(found.length() + found.length() / 4).min(all.ended);
        let longer = Axis::of(middle, end);
        if within(longer) > MOST {
            break;
        }
        found = longer;
    }
    found
}

fn is_within(batch: &Submission, thread: u32, axis: Axis) -> bool {
    batch.thread == thread && (axis.began..=axis.ended).contains(&batch.at)
}

/// Draws a period of one thread, and returns the bottom.
pub(super) fn draw(canvas: &mut Canvas, trace: &Trace, thread: u32, axis: Axis, top: f64) -> f64 {
    let mut rows = Rows::default();
    let own = spans(trace).filter(|span| span.thread == thread && span.is_within(axis.began, axis.ended));
    // One pixel between consecutive operations.
    let gap = axis.length() / 600;
    let found: Vec<(usize, Span<'_>)> =
        own.take(MOST).map(|span| (rows.take(span.began, span.ended.saturating_add(gap)), span)).collect();
    let shown = found.iter().map(|(row, _)| row + 1).max().unwrap_or(0).clamp(1, ROWS);
    let row_height = if shown <= NAMED_ROWS {
        13.0
    } else if shown <= LARGE_ROWS {
        5.0
    } else {
        3.0
    };
    let name = trace.threads.get(thread as usize).map_or("", |thread| &thread.name);
    let heading = heading(&cut(name, ROOM / 2.0), axis, end(trace));
    let mut y = top + 20.0;
    canvas.text((8.0, y), "head", Anchor::Start, &heading);
    let lines = "Each bar is an operation. Each line across is a submission, with its number of requests.";
    y += 16.0;
    canvas.text((8.0, y), "faint", Anchor::Start, lines);
    y += 6.0;
    let bottom = y + 14.0 + row_height * count(shown) + 18.0;
    axis.draw(canvas, y + 12.0, bottom);
    calls(canvas, trace, (thread, axis), bottom - 14.0);
    for (row, span) in found.iter().filter(|(row, _)| *row < ROWS) {
        bar(canvas, span, axis, (y + 14.0 + row_height * count(*row), row_height));
    }
    submissions(canvas, trace, (thread, axis), (y + 10.0, bottom));
    y = bottom + 20.0;
    let hidden = found.iter().filter(|(row, _)| *row >= ROWS).count();
    if hidden > 0 {
        y += 12.0;
        let text = format!("{} more operations at the same time are not drawn.", grouped(hidden as u64));
        canvas.text((8.0, y), "faint", Anchor::Start, &text);
    }
    y
}

fn heading(name: &str, axis: Axis, end: Nanos) -> String {
    let length = words(axis.length());
    if axis == Axis::of(0, end) {
        format!("All of {name}: {length}.")
    } else {
        format!("Closer: {length} of {name}, from {} on.", words(axis.began))
    }
}

/// Draws an operation: low while waiting, high while executed.
fn bar(canvas: &mut Canvas, span: &Span<'_>, axis: Axis, (top, height): (f64, f64)) {
    for part in span.parts.iter().flatten() {
        let (left, right) = (axis.place(part.began), axis.place(part.ended));
        if part.ended <= axis.began || part.began >= axis.ended {
            continue;
        }
        let class = format!("{}{}", span.route.name(), class(part.doing));
        let full = height * 0.8;
        let (y, height) = match part.doing {
            Doing::Queued | Doing::Done => (top + full / 4.0, full / 2.0),
            Doing::InRing | Doing::Runs => (top, full),
        };
        canvas.rect(&class, (left, y), ((right - left).max(0.4), height));
        let room = count(span.name.chars().count()) * 5.2 + 4.0;
        if full >= 10.0 && full <= height && right - left > room {
            let class = if part.doing == Doing::Runs { "within on-solid" } else { "within" };
            canvas.text((left + 3.0, top + 9.0), class, Anchor::Start, span.name);
        }
    }
}

/// Draws calls of io_uring_enter(2) and idle time beneath the operations.
fn calls(canvas: &mut Canvas, trace: &Trace, (thread, axis): (u32, Axis), top: f64) {
    let is_seen = |whose: u32, began, ended| whose == thread && began <= axis.ended && axis.began <= ended;
    let rests = trace.rests.iter().filter(|rest| is_seen(rest.thread, rest.began, rest.ended));
    for rest in rests.take(CALLS) {
        let (left, right) = (axis.place(rest.began), axis.place(rest.ended));
        canvas.rect("idle", (left, top), ((right - left).max(0.4), 9.0));
    }
    let enters = trace.enters.iter().filter(|enter| is_seen(enter.thread, enter.began, enter.ended));
    for enter in enters.take(CALLS) {
        let (left, right) = (axis.place(enter.began), axis.place(enter.ended));
        canvas.rect("enter", (left, top), ((right - left).max(0.4), 9.0));
    }
    let text = if trace.enters.is_empty() { IDLE } else { "enter" };
    canvas.text((LEFT - 5.0, top + 8.0), "faint small", Anchor::End, text);
}

pub(super) fn mark(why: SubmitReason) -> &'static str {
    match why {
        SubmitReason::Full => "mark full",
        SubmitReason::Idle => "mark",
        SubmitReason::Forced => "mark forced",
    }
}

fn submissions(canvas: &mut Canvas, trace: &Trace, (thread, axis): (u32, Axis), (top, bottom): (f64, f64)) {
    let mut last = f64::NEG_INFINITY;
    for batch in trace.submissions.iter().filter(|batch| is_within(batch, thread, axis)).take(MOST) {
        let x = axis.place(batch.at);
        canvas.path(mark(batch.why), [(x, top + 2.0), (x, bottom)]);
        if x - last > NUMBER && x < RIGHT - 4.0 {
            last = x;
            canvas.text((x, top), "small", Anchor::Middle, &grouped(u64::from(batch.requests)));
        }
    }
}

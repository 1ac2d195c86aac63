//! Details of the cell and the item under the cursor.

use std::ops::Range;

use ferry_trace::model::{
    CompletionMet, DeviceRequest, Did, IDLE, KernelEvent, Nanos, Operation, Request, Trace,
};
use ferry_trace::summary::{Phases, Place, duration};
use ferry_trace::timeline::{Class, Item, Row, RowKind};

use super::scale::exact;
use super::view::View;
use crate::layout::wrapped;
use crate::trace::figures::{self, Glyphs, printable, share, time};
use crate::trace::reasons::because;
use crate::units::count;

/// Times are shown with digits down to one part in this many of a cell, or of an operation's duration.
const OF_CELL: Nanos = 10;
const OF_DURATION: Nanos = 100;

/// Describes the cell and the item; later lines matter less.
pub(super) fn lines(view: &View, width: usize) -> Vec<String> {
    let Some(row) = view.timeline.rows.get(view.row) else {
        return vec!["the recording has no rows".to_owned()];
    };
    let piece = view.cell(view.cell_of(view.cursor));
    let mut texts = vec![cell(view, row, &piece)];
    if let Some(item) = view.under_cursor() {
        texts.extend(of_item(view.trace, item, width, (piece.end - piece.start) / OF_CELL));
    }
    let lines = texts.iter().map(|text| wrapped("", text, 2, width));
    lines.flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Formats `worker 0, ring: 12.0 µs from 1.234 ms: 3.4 in flight, 12 start`.
fn cell(view: &View, row: &Row, piece: &Range<Nanos>) -> String {
    let length = piece.end - piece.start;
    let (thread, what) = (thread(view.trace, row.thread), name(row.kind));
    let begins = exact(piece.start, length / OF_CELL);
    let head = format!("{thread}, {what}: {} from {begins}", time(length));
    let parts: Vec<String> = row
        .parts(piece)
        .iter()
        .map(|part| match part.class {
            Class::Route(_) if row.peak().is_some() => depth(part.time, length, part.count),
            Class::Requests | Class::Device => depth(part.time, length, part.count),
            Class::Route(route) => {
                format!(
                    "{} {}, {} of the time",
                    count(size(part.count)),
                    route.name(),
                    share(part.time, length)
                )
            }
            Class::Idle => format!("{IDLE} {} of the time", share(part.time, length)),
            Class::Awake => format!("awake {} of the time", share(part.time, length)),
            Class::SubmitReason(why) => {
                let (short, meaning) = because(why);
                format!("{} {short}: {meaning}", count(size(part.count)))
            }
            Class::Cause(cause) => format!("{} by {}", count(size(part.count)), cause.name()),
        })
        .collect();
    if parts.is_empty() { format!("{head}: nothing") } else { format!("{head}: {}", parts.join("; ")) }
}

fn depth(area: Nanos, length: Nanos, begun: usize) -> String {
    let tenths = area.saturating_mul(10).checked_div(length).unwrap_or(0);
    format!("{}.{} in flight, {} start", tenths / 10, tenths % 10, count(size(begun)))
}

fn size(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

pub(super) fn thread(trace: &Trace, index: u32) -> String {
    let thread = usize::try_from(index).ok().and_then(|index| trace.threads.get(index));
    thread.map(|thread| printable(&thread.name)).unwrap_or_default()
}

pub(super) fn name(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Calls => "calls",
        RowKind::Ring => "ring",
        RowKind::Submissions => "batches",
        RowKind::TaskWork => "task work",
        RowKind::Pool => "pool",
        RowKind::Requests => "requests",
        RowKind::Awake => "awake",
        RowKind::Device => "device",
    }
}

/// Describes an item; the times of events have digits down to `apart`.
fn of_item(trace: &Trace, (class, index): Item, width: usize, apart: Nanos) -> Vec<String> {
    match class {
        Class::Route(_) => trace.operations.get(index).map(|its| operation(trace, its, width)),
        Class::Requests => trace.requests.get(index).map(request),
        Class::Device => trace.device_requests.get(index).map(|its| device_request(trace, its)),
        Class::Idle => {
            trace.rests.get(index).map(|rest| vec![format!("{IDLE} for {}", time(rest.ended - rest.began))])
        }
        Class::SubmitReason(why) => trace.submissions.get(index).map(|batch| {
            let (requests, flight) = (count(batch.requests.into()), count(batch.in_flight.into()));
            let (at, (short, meaning)) = (exact(batch.at, apart), because(why));
            vec![format!("batch of {requests} at {at}, {short}: {meaning}; {flight} in flight")]
        }),
        Class::Awake | Class::Cause(_) => trace.kernel.get(index).map(|event| kernel(trace, event, apart)),
    }
    .unwrap_or_default()
}

/// Formats `read 'folder/file'` in up to `width` characters, but at least some of the name.
fn title(trace: &Trace, operation: &Operation, width: usize) -> String {
    let (kind, path) = (operation.kind.name(), Place::of(trace, operation).path());
    if path.is_empty() {
        return kind.to_owned();
    }
    let room = width.saturating_sub(kind.chars().count() + 1).max(12);
    format!("{kind} {}", figures::name(&path, room, Glyphs::Blocks))
}

fn operation(trace: &Trace, operation: &Operation, width: usize) -> Vec<String> {
    let result = match operation.result {
        None => "pending when the recording ended".to_owned(),
        Some(Ok(n)) => format!("result {}", count(n)),
        Some(Err(error)) => std::io::Error::from_raw_os_error(error).to_string(),
    };
    let asked: String = figures::extent(operation).iter().map(|part| format!(" {part}")).collect();
    let ended = if operation.abandoned { ", abandoned" } else { "" };
    let begin =
        title(trace, operation, width.saturating_sub(asked.len() + result.chars().count() + ended.len() + 3));
    let comma = if asked.is_empty() { "" } else { "," };
    let mut lines = vec![format!("{begin}{comma}{asked}: {result}{ended}")];
    if let (Some(took), Some(phases)) = (duration(operation), Phases::of_one(operation)) {
        let Phases { queued, running, untaken, unknown } = phases;
        let rest = if unknown > 0 {
            format!("then {} until the result was taken", time(unknown))
        } else {
            format!("running {}, then {} until the result was taken", time(running), time(untaken))
        };
        let asked = exact(operation.asked, took / OF_DURATION);
        lines.push(format!("{} from {asked}: queued {}, {rest}", time(took), time(queued)));
    }
    let met = operation.met.map_or("", |met| match met {
        CompletionMet::Peek => "; completion already in the queue",
        CompletionMet::AtOnce => "; completion found by GETEVENTS at once",
        CompletionMet::Slept => "; worker slept until completion",
    });
    lines.push(format!("{}: {}{met}", operation.route.name(), operation.reason.why()));
    lines
}

fn request(request: &Request) -> Vec<String> {
    let took = request.completed.map(|completed| time(completed.saturating_sub(request.submitted)));
    let took =
        took.map_or_else(|| "pending when the recording ended".to_owned(), |took| format!("took {took}"));
    let result = request.result.map_or(String::new(), |result| format!(", result {result}"));
    let handed = request.handed_over.map(|at| at.saturating_sub(request.submitted));
    let handed =
        handed.map_or(String::new(), |after| format!(", handed to a kernel worker after {}", time(after)));
    let (opcode, ring) = (printable(&request.opcode), request.ring);
    let duration = request.completed.map_or(0, |completed| completed.saturating_sub(request.submitted));
    let submitted = exact(request.submitted, duration / OF_DURATION);
    vec![
        format!("{opcode} on ring {ring}, user data {:#x}", request.user_data),
        format!("submitted at {submitted}, {took}{result}{handed}"),
    ]
}

fn device_request(trace: &Trace, request: &DeviceRequest) -> Vec<String> {
    let took = request.completed.map(|completed| completed.saturating_sub(request.issued));
    let issued = exact(request.issued, took.unwrap_or(0) / OF_DURATION);
    let by = request
        .thread
        .map_or_else(|| "a thread of another program or of the kernel".to_owned(), |by| thread(trace, by));
    let end = match took {
        None => "its completion was not recorded".to_owned(),
        Some(took) if request.is_failed => format!("failed after {}", time(took)),
        Some(took) => format!("took {}", time(took)),
    };
    let (kind, bytes) = (request.kind.name(), count(request.bytes));
    vec![
        format!(
            "{kind} of {bytes} bytes at sector {} of {}",
            count(request.sector),
            thread(trace, request.device)
        ),
        format!("issued at {issued} by {by}, {end}"),
    ]
}

fn kernel(trace: &Trace, event: &KernelEvent, apart: Nanos) -> Vec<String> {
    let what = match event.did {
        Did::TaskWork { cause, count: units } => {
            format!("{} units of task work, cause: {}", count(units.into()), cause.name())
        }
        Did::Wake { by } => match by {
            Some(by) => format!("woken by {}", thread(trace, by)),
            None => "woken".to_owned(),
        },
        Did::TaskAdd => "added task work to this thread".to_owned(),
        Did::HandOver(_) => "received a request".to_owned(),
        Did::Sleep => "fell asleep".to_owned(),
        Did::Run => "ran again, woken by an unknown thread".to_owned(),
        Did::Began => "started".to_owned(),
        Did::Ended => "ended".to_owned(),
    };
    let mut lines = vec![format!("{what}, at {} on processor {}", exact(event.at, apart), event.processor)];
    let chain = event.chain.and_then(|chain| trace.chains.get(usize::try_from(chain).ok()?));
    if let Some(chain) = chain {
        let chain: Vec<String> = chain.iter().map(|function| printable(function)).collect();
        lines.push(format!("call chain: {}", chain.join(" < ")));
    }
    lines
}

//! A recording as rows of a picture. Questions about any piece of time are answered without a pass over all events.
//!
//! It serves drawings made of cells. The answer for a cell is exact and costs a few binary searches, so a million
//! operations cost a frame as much as a thousand. A row keeps its spans sorted with their sums, or its depth with its
//! integral. Items of a cell are enumerated only on request ([`Row::items`]).

mod depth;
mod own;
mod spans;

#[cfg(test)]
mod tests;

use std::ops::Range;

use ferry_io::Route;

use crate::Trace;
use crate::model::{Cause, Did, KernelEvent, Nanos, Operation, Role, SubmitReason};
use crate::summary::{duration, span_of_device};
use depth::Depth;
use own::OfThreads;
use spans::{Span, Spans};

/// A recording as rows.
#[derive(Debug)]
pub struct Timeline {
    /// Duration of the recording.
    pub took: Nanos,
    /// Rows by thread; empty ones are left out.
    pub rows: Vec<Row>,
    /// Operations with a result, or completed requests if there are no operations; the longest first.
    pub longest: Vec<Item>,
}

/// Content of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Operations executed by a worker itself or offloaded to the kernel, and its idle time.
    Calls,
    /// Number of a worker's operations on its ring.
    Ring,
    /// Batches of a worker.
    Submissions,
    /// Task work of a thread by cause.
    TaskWork,
    /// Operations executed by a pool thread.
    Pool,
    /// Number of a thread's ring requests as the kernel saw them.
    Requests,
    /// Time when a thread was not asleep, as far as the kernel recorded it.
    Awake,
    /// Number of a block device's requests.
    Device,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    /// Its thread, in [`Trace::threads`].
    pub thread: u32,
    /// Its content.
    pub kind: RowKind,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Spans(Vec<(Class, Spans)>),
    Depth(Class, Depth),
    Marks(Vec<(Class, Vec<(Nanos, usize)>)>),
}

/// Class of items in a row, which determines the trace's vector that they are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Operations of a route, in [`Trace::operations`].
    Route(Route),
    /// Idle time of a worker ([`IDLE`](crate::model::IDLE)), in [`Trace::rests`].
    Idle,
    /// Time when a thread was awake, by its first event in [`Trace::kernel`]: beginning, wake-up, or running again.
    Awake,
    /// Requests, in [`Trace::requests`].
    Requests,
    /// Batches with this reason, in [`Trace::submissions`].
    SubmitReason(SubmitReason),
    /// Task work with this cause, in [`Trace::kernel`].
    Cause(Cause),
    /// Requests of a block device, in [`Trace::device_requests`].
    Device,
}

/// Class of an item, and its index in the vector of the class.
pub type Item = (Class, usize);

/// Items of one class in a piece of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The class.
    pub class: Class,
    /// Total duration within the piece; 0 for marks.
    pub time: Nanos,
    /// Number of items that touch the piece; for depths, of those that begin in it.
    pub count: usize,
}

impl Timeline {
    /// Arranges a recording in rows.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let own = OfThreads::of(trace);
        let threads = (0_u32..).zip(&trace.threads);
        let rows = threads.flat_map(|(thread, its)| match its.role {
            Role::Worker => vec![
                RowKind::Calls,
                RowKind::Ring,
                RowKind::Submissions,
                RowKind::Requests,
                RowKind::TaskWork,
            ]
            .into_iter()
            .map(|kind| (thread, kind))
            .collect::<Vec<_>>(),
            Role::Pool => vec![(thread, RowKind::Pool)],
            Role::Device => vec![(thread, RowKind::Device)],
            Role::Kernel | Role::Other => {
                [RowKind::Awake, RowKind::Requests, RowKind::TaskWork].map(|kind| (thread, kind)).to_vec()
            }
        });
        let rows =
            rows.map(|(thread, kind)| Row { thread, kind, content: content(trace, &own, thread, kind) });
        Self {
            took: trace.about.took,
            rows: rows.filter(|row| !row.is_empty()).collect(),
            longest: longest(trace),
        }
    }

    /// Returns the row of an operation or a request; `None` if its thread is unknown.
    #[must_use]
    pub fn row_of(&self, trace: &Trace, (class, index): Item) -> Option<usize> {
        let operation = || trace.operations.get(index);
        let (thread, kind) = match class {
            Class::Route(Route::Inline | Route::Offload) => (operation()?.thread, RowKind::Calls),
            Class::Route(Route::Ring) => (operation()?.thread, RowKind::Ring),
            Class::Route(Route::Pool) => (operation()?.ran_on?, RowKind::Pool),
            Class::Requests => (trace.requests.get(index)?.thread, RowKind::Requests),
            Class::Device => (trace.device_requests.get(index)?.device, RowKind::Device),
            Class::Idle | Class::Awake | Class::SubmitReason(_) | Class::Cause(_) => return None,
        };
        // Rows are in the order of threads.
        let first = self.rows.partition_point(|row| row.thread < thread);
        let mut its = self.rows[first..].iter().take_while(|row| row.thread == thread);
        its.position(|row| row.kind == kind).map(|place| first + place)
    }
}

fn longest(trace: &Trace) -> Vec<Item> {
    let operations = trace.operations.iter().enumerate();
    let operations = operations.filter_map(|(index, operation)| {
        Some((duration(operation)?, (Class::Route(operation.route), index)))
    });
    let requests = trace.requests.iter().enumerate().filter(|_| trace.operations.is_empty());
    let requests = requests.filter_map(|(index, request)| {
        Some((request.completed?.saturating_sub(request.submitted), (Class::Requests, index)))
    });
    let mut longest: Vec<(Nanos, Item)> = operations.chain(requests).collect();
    longest.sort_unstable_by_key(|&(took, (_, index))| (std::cmp::Reverse(took), index));
    longest.into_iter().map(|(_, item)| item).collect()
}

/// Returns beginning and end of an item as drawn: the execution of an operation as far as known, or the time of a
/// mark.
#[must_use]
pub fn extent(trace: &Trace, (class, index): Item) -> Option<(Nanos, Nanos)> {
    let took = trace.about.took;
    Some(match class {
        Class::Route(_) => ran(trace.operations.get(index)?, took),
        Class::Requests => {
            let request = trace.requests.get(index)?;
            (request.submitted, request.completed.unwrap_or(took).max(request.submitted))
        }
        Class::Device => {
            let (began, ended) = span_of_device(trace.device_requests.get(index)?);
            (began, ended.max(began))
        }
        Class::Idle => trace.rests.get(index).map(|rest| (rest.began, rest.ended))?,
        Class::Awake | Class::Cause(_) => trace.kernel.get(index).map(|event| (event.at, event.at))?,
        Class::SubmitReason(_) => trace.submissions.get(index).map(|batch| (batch.at, batch.at))?,
    })
}

fn ran(operation: &Operation, took: Nanos) -> (Nanos, Nanos) {
    let began = operation.started.or(operation.submitted).unwrap_or(operation.asked);
    let ended = operation.completed.or(operation.taken).unwrap_or(took);
    (began, ended.max(began))
}

impl Row {
    fn is_empty(&self) -> bool {
        match &self.content {
            Content::Spans(parts) => parts.iter().all(|(_, spans)| spans.is_empty()),
            Content::Depth(_, depth) => depth.is_empty(),
            Content::Marks(parts) => parts.iter().all(|(_, marks)| marks.is_empty()),
        }
    }

    /// Returns the classes that occur in a piece of time.
    #[must_use]
    pub fn parts(&self, piece: &Range<Nanos>) -> Vec<Part> {
        let parts: Vec<Part> = match &self.content {
            Content::Spans(parts) => parts
                .iter()
                .map(|(class, spans)| Part {
                    class: *class,
                    time: spans.covered(piece),
                    count: spans.within(piece).len(),
                })
                .collect(),
            Content::Depth(class, depth) => {
                vec![Part { class: *class, time: depth.area(piece), count: depth.begun(piece).len() }]
            }
            Content::Marks(parts) => parts
                .iter()
                .map(|(class, marks)| Part { class: *class, time: 0, count: marks_in(marks, piece).len() })
                .collect(),
        };
        parts.into_iter().filter(|part| part.time > 0 || part.count > 0).collect()
    }

    /// Returns the maximum depth, if the row shows a depth.
    #[must_use]
    pub fn peak(&self) -> Option<u64> {
        match &self.content {
            Content::Depth(_, depth) => Some(depth.peak),
            Content::Spans(_) | Content::Marks(_) => None,
        }
    }

    /// Returns up to `most` items in a piece of time.
    #[must_use]
    pub fn items(&self, piece: &Range<Nanos>, most: usize) -> Vec<Item> {
        match &self.content {
            Content::Spans(parts) => {
                let each = parts
                    .iter()
                    .flat_map(|(class, spans)| spans.items(piece).take(most).map(move |item| (*class, item)));
                each.take(most).collect()
            }
            Content::Depth(class, depth) => depth.items(piece, most).map(|item| (*class, item)).collect(),
            Content::Marks(parts) => {
                let each = parts.iter().flat_map(|(class, marks)| {
                    marks[marks_in(marks, piece)].iter().map(move |(_, item)| (*class, *item))
                });
                each.take(most).collect()
            }
        }
    }

    /// Returns when the next item begins after a time, or the previous one before it.
    #[must_use]
    pub fn neighbour(&self, at: Nanos, is_next: bool) -> Option<Nanos> {
        let found: Vec<Nanos> = match &self.content {
            Content::Spans(parts) => {
                parts.iter().filter_map(|(_, spans)| spans.neighbour(at, is_next)).collect()
            }
            Content::Depth(_, depth) => depth.neighbour(at, is_next).into_iter().collect(),
            Content::Marks(parts) => parts
                .iter()
                .filter_map(|(_, marks)| spans::neighbour(marks, |mark| mark.0, at, is_next))
                .collect(),
        };
        if is_next { found.into_iter().min() } else { found.into_iter().max() }
    }
}

fn marks_in(marks: &[(Nanos, usize)], piece: &Range<Nanos>) -> Range<usize> {
    marks.partition_point(|mark| mark.0 < piece.start)..marks.partition_point(|mark| mark.0 < piece.end)
}

fn content(trace: &Trace, own: &OfThreads, thread: u32, kind: RowKind) -> Content {
    let asked = |route| operations(trace, own.operations.its(thread), route);
    match kind {
        RowKind::Calls => Content::Spans(vec![
            (Class::Idle, Spans::new(rests(trace, own.rests.its(thread)))),
            (Class::Route(Route::Inline), Spans::new(asked(Route::Inline))),
            (Class::Route(Route::Offload), Spans::new(asked(Route::Offload))),
        ]),
        RowKind::Pool => {
            let its = operations(trace, own.ran.its(thread), Route::Pool);
            Content::Spans(vec![(Class::Route(Route::Pool), Spans::new(its))])
        }
        RowKind::Ring => Content::Depth(Class::Route(Route::Ring), Depth::new(asked(Route::Ring))),
        RowKind::Requests => {
            // Rows of operations already show the same requests.
            let is_ours = !own.operations.its(thread).is_empty();
            let its = if is_ours { &[] } else { own.requests.its(thread) };
            Content::Depth(Class::Requests, Depth::new(requests(trace, its)))
        }
        RowKind::Device => {
            Content::Depth(Class::Device, Depth::new(device_requests(trace, own.devices.its(thread))))
        }
        RowKind::Submissions => {
            let its = own.submissions.its(thread).iter();
            let its = its.filter_map(|&item| Some((trace.submissions.get(item)?, item)));
            let its: Vec<_> =
                its.map(|(batch, item)| (Class::SubmitReason(batch.why), batch.at, item)).collect();
            Content::Marks(marks(
                [SubmitReason::Full, SubmitReason::Idle, SubmitReason::Forced].map(Class::SubmitReason),
                &its,
            ))
        }
        RowKind::TaskWork => {
            let its: Vec<_> = events(trace, own.kernel.its(thread))
                .filter_map(|(item, event)| Some((Class::Cause(event.did.task_work()?.0), event.at, item)))
                .collect();
            Content::Marks(marks(Cause::ALL.map(Class::Cause), &its))
        }
        RowKind::Awake => {
            Content::Spans(vec![(Class::Awake, Spans::new(awake(trace, own.kernel.its(thread))))])
        }
    }
}

fn operations(trace: &Trace, its: &[usize], route: Route) -> Vec<Span> {
    let its = its.iter().filter_map(|&item| Some((item, trace.operations.get(item)?)));
    its.filter(|(_, operation)| operation.route == route)
        .map(|(item, operation)| {
            let (began, ended) = ran(operation, trace.about.took);
            Span { began, ended, item }
        })
        .collect()
}

fn requests(trace: &Trace, its: &[usize]) -> Vec<Span> {
    let its = its.iter().filter_map(|&item| Some((item, trace.requests.get(item)?)));
    its.map(|(item, request)| {
        let ended = request.completed.unwrap_or(trace.about.took).max(request.submitted);
        Span { began: request.submitted, ended, item }
    })
    .collect()
}

fn device_requests(trace: &Trace, its: &[usize]) -> Vec<Span> {
    let its = its.iter().filter_map(|&item| Some((item, trace.device_requests.get(item)?)));
    its.map(|(item, request)| {
        let (began, ended) = span_of_device(request);
        Span { began, ended: ended.max(began), item }
    })
    .collect()
}

fn rests(trace: &Trace, its: &[usize]) -> Vec<Span> {
    let its = its.iter().filter_map(|&item| Some((item, trace.rests.get(item)?)));
    its.map(|(item, rest)| Span { began: rest.began, ended: rest.ended.max(rest.began), item }).collect()
}

fn events<'t>(trace: &'t Trace, its: &'t [usize]) -> impl Iterator<Item = (usize, &'t KernelEvent)> {
    its.iter().filter_map(|&item| Some((item, trace.kernel.get(item)?)))
}

/// Spans from beginning, wake-up or running again to the next sleep or the thread's end.
fn awake(trace: &Trace, its: &[usize]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut woken = None;
    for (item, event) in events(trace, its) {
        match event.did {
            Did::Wake { .. } | Did::Run | Did::Began => woken = woken.or(Some((event.at, item))),
            Did::Sleep | Did::Ended => {
                spans.extend(woken.take().map(|(began, item)| Span { began, ended: event.at, item }));
            }
            Did::TaskWork { .. } | Did::TaskAdd | Did::HandOver(_) => {}
        }
    }
    spans.extend(woken.map(|(began, item)| Span { began, ended: trace.about.took.max(began), item }));
    spans
}

fn marks<const N: usize>(
    classes: [Class; N],
    all: &[(Class, Nanos, usize)],
) -> Vec<(Class, Vec<(Nanos, usize)>)> {
    let of_class = |class| {
        let its = all.iter().filter(|(its, ..)| *its == class).map(|(_, at, item)| (*at, *item));
        let mut its: Vec<(Nanos, usize)> = its.collect();
        its.sort_unstable();
        (class, its)
    };
    classes.map(of_class).to_vec()
}

//! Drawn spans: operations, or the requests of a program without operations.

use ferry_io::Route;

use crate::export::parts::{self, Doing, Part, parts};
use crate::model::{Nanos, Trace};

/// An operation, or a request of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'t> {
    /// Its thread, in [`Trace::threads`].
    pub(super) thread: u32,
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
    pub(super) name: &'t str,
    pub(super) route: Route,
    pub(super) parts: [Option<Part>; 3],
}

impl Span<'_> {
    pub(super) fn is_within(&self, began: Nanos, ended: Nanos) -> bool {
        self.began < ended && began < self.ended.max(self.began.saturating_add(1))
    }
}

pub(super) fn class(doing: Doing) -> &'static str {
    match doing {
        Doing::Queued | Doing::Done => " waits",
        Doing::InRing => " in-ring",
        Doing::Runs => "",
    }
}

/// All spans of a trace by beginning.
pub(super) fn spans(trace: &Trace) -> impl Iterator<Item = Span<'_>> {
    let took = trace.about.took;
    let operations = trace.operations.iter().map(move |operation| {
        let mut own = parts(operation, took);
        Span {
            thread: operation.thread,
            began: operation.asked,
            ended: parts::end(operation, took),
            name: operation.kind.name(),
            route: operation.route,
            parts: [own.next(), own.next(), own.next()],
        }
    });
    let requests = if trace.operations.is_empty() { trace.requests.as_slice() } else { &[] };
    let requests = requests.iter().map(move |request| {
        let (began, ended) = (request.submitted, request.completed.unwrap_or(took).max(request.submitted));
        Span {
            thread: request.thread,
            began,
            ended,
            name: &request.opcode,
            route: Route::Ring,
            parts: [Some(Part { doing: Doing::InRing, began, ended }), None, None],
        }
    });
    operations.chain(requests)
}

/// End of the last span. The recording itself takes longer because sampling must be shut down.
pub(super) fn end(trace: &Trace) -> u64 {
    spans(trace).map(|span| span.ended).max().unwrap_or(0)
}

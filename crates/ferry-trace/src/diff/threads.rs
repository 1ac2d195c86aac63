//! Times in which threads run or are ready to run, and the operations that these times lead to.

use std::ops::Range;

use ferry_io::{Reason, Route};

use super::sweep::{Interval, State};
use crate::Trace;
use crate::model::{Did, Enter, Nanos, Operation, Role, ScopeKind};

/// Evidence for what threads did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The kernel recorded when threads slept.
    Kernel,
    /// Only the program's own events: long calls count as sleeps.
    Program,
}

impl Basis {
    /// Returns the evidence that a recording has.
    pub(super) fn of(trace: &Trace) -> Self {
        let is_refused = |line: &String| line.starts_with("nothing of the kernel's side");
        // A simulation has no kernel.
        if trace.about.monotonic == 0 || trace.about.missing.iter().any(is_refused) {
            return Self::Program;
        }
        Self::Kernel
    }
}

/// Begin and end.
pub(super) type Span = (Nanos, Nanos);

/// Longest call in nanoseconds that counts as work of the processor, besides 1 ns for each byte. The router uses the
/// same limit.
const LONGEST_WORK: Nanos = 50_000;

/// Returns the spans in which each thread ran or was ready to run.
pub(super) fn awake(trace: &Trace, basis: Basis, period: &Range<Nanos>) -> Vec<Vec<Span>> {
    let lives = lives(trace, period);
    match basis {
        Basis::Kernel => by_kernel(trace, &lives, period),
        Basis::Program => by_program(trace, &lives),
    }
}

/// Time from the begin of each worker's outermost scope to its end; `None` for other threads.
fn lives(trace: &Trace, period: &Range<Nanos>) -> Vec<Option<Span>> {
    let mut lives = vec![None; trace.threads.len()];
    for scope in trace.scopes.iter().filter(|scope| scope.kind == ScopeKind::Run) {
        let Some(life) = lives.get_mut(scope.thread as usize) else { continue };
        let ended = scope.ended.unwrap_or(period.end);
        let (began, until) = life.unwrap_or((scope.began, ended));
        *life = Some((began.min(scope.began), until.max(ended)));
    }
    lives
}

/// A thread as the kernel saw it.
#[derive(Default)]
struct Seen {
    awake_since: Option<Nanos>,
    is_seen: bool,
    spans: Vec<Span>,
}

impl Seen {
    fn wakes(&mut self, at: Nanos) {
        self.is_seen = true;
        self.awake_since.get_or_insert(at);
    }

    /// A thread whose first event this is was awake since `start`.
    fn sleeps(&mut self, at: Nanos, start: Nanos) {
        let began = self.awake_since.take().or((!self.is_seen).then_some(start));
        self.is_seen = true;
        self.spans.extend(began.filter(|began| *began < at).map(|began| (began, at)));
    }
}

fn by_kernel(trace: &Trace, lives: &[Option<Span>], period: &Range<Nanos>) -> Vec<Vec<Span>> {
    let since = lives.iter().map(|life| life.map(|(began, _)| began));
    let mut seen: Vec<Seen> = since.map(|awake_since| Seen { awake_since, ..Seen::default() }).collect();
    for event in &trace.kernel {
        let Some(its) = seen.get_mut(event.thread as usize) else { continue };
        match event.did {
            Did::Wake { .. } | Did::Run | Did::Began => its.wakes(event.at),
            Did::Sleep | Did::Ended => its.sleeps(event.at, period.start),
            Did::TaskWork { .. } | Did::TaskAdd | Did::HandOver(_) => {}
        }
    }
    let all = seen.into_iter().zip(lives).zip(&trace.threads);
    all.map(|((mut its, life), thread)| {
        // The kernel's polling thread (SQPOLL) is awake while it looks for work.
        if thread.role == Role::Kernel && thread.name.starts_with("iou-sqp-") {
            return Vec::new();
        }
        let ended = life.map_or(period.end, |(_, ended)| ended);
        its.sleeps(ended, ended);
        its.spans
    })
    .collect()
}

/// Workers are awake unless they are idle or in a call that seems to block. Of pool threads only calls are known.
fn by_program(trace: &Trace, lives: &[Option<Span>]) -> Vec<Vec<Span>> {
    let mut away: Vec<Vec<Span>> = vec![Vec::new(); lives.len()];
    let mut leave = |thread: u32, span: Span| {
        if let Some(its) = away.get_mut(thread as usize) {
            its.push(span);
        }
    };
    trace.rests.iter().for_each(|rest| leave(rest.thread, (rest.began, rest.ended)));
    for operation in trace.operations.iter().filter(|operation| seems_to_block(operation)) {
        leave(operation.thread, call(operation));
    }
    for enter in trace.enters.iter().filter(|enter| enter.slept || submits_slowly(enter)) {
        leave(enter.thread, (enter.began, enter.ended));
    }
    away.into_iter()
        .zip(lives)
        .map(|(away, life)| life.map_or_else(Vec::new, |life| without(life, away)))
        .collect()
}

/// Returns true for a call on a worker that takes too long to be work of the processor.
pub(super) fn seems_to_block(operation: &Operation) -> bool {
    let is_here = matches!(operation.route, Route::Inline | Route::Offload);
    let (began, ended) = call(operation);
    let limit = LONGEST_WORK.saturating_add(operation.size);
    is_here && operation.reason != Reason::Asked && ended.saturating_sub(began) > limit
}

/// Returns true for a call of io_uring_enter(2) in which a request blocked: not every filesystem can refuse to.
fn submits_slowly(enter: &Enter) -> bool {
    let limit = LONGEST_WORK.saturating_mul(u64::from(enter.submitted).max(1));
    enter.ended.saturating_sub(enter.began) > limit
}

/// Begin and end of a call on a worker.
fn call(operation: &Operation) -> Span {
    let began = operation.started.unwrap_or(operation.asked);
    (began, operation.completed.or(operation.taken).unwrap_or(began))
}

/// Returns a span without some parts.
fn without((began, ended): Span, mut parts: Vec<Span>) -> Vec<Span> {
    parts.sort_unstable();
    let mut spans = Vec::with_capacity(parts.len() + 1);
    let mut at = began;
    for (left, back) in parts {
        if left > at {
            spans.push((at, left.min(ended)));
        }
        at = at.max(back);
    }
    spans.push((at, ended));
    spans.retain(|(began, ended)| began < ended);
    spans
}

/// Arrival of a thread at an operation: it has requested or submitted it, ended its call, or taken its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival {
    /// Time of arrival.
    pub(super) at: Nanos,
    /// Time from which the thread did nothing else: the begin of a call, otherwise the time of arrival. Of arrivals
    /// at one moment, a call's is therefore the first in order.
    pub(super) since: Nanos,
    /// Holder of the time that leads to the arrival.
    pub(super) holder: usize,
}

/// Divides spans of a thread among holders. Time belongs to the next arrival in `led`, which is sorted, and to `last`
/// after all of them. Arrivals at one moment share it, such as the requests of a batch, unless a call ends then.
pub(super) fn divide(spans: &[Span], led: &[Arrival], last: usize, into: &mut Vec<Interval>) {
    let mut next = 0;
    for &(began, ended) in spans {
        let mut began = began;
        while began < ended {
            next += led[next..].iter().take_while(|arrival| arrival.at <= began).count();
            let Some(first) = led.get(next) else {
                into.push(Interval { began, ended, state: State::Processor, holder: last, is_late: false });
                break;
            };
            let until = first.at.min(ended);
            let is_shared = |arrival: &&Arrival| (arrival.at, arrival.since) == (first.at, first.since);
            let count = led[next..].iter().take_while(is_shared).count();
            share((began, until), &led[next..next + count], into);
            began = until;
        }
    }
}

/// Gives each arrival an equal part of a span.
fn share((began, ended): Span, arrivals: &[Arrival], into: &mut Vec<Interval>) {
    let (mut at, mut left) = (began, arrivals.len());
    for same in arrivals.chunk_by(|one, other| one.holder == other.holder) {
        let part = u128::from(ended - at) * same.len() as u128 / left as u128;
        let until = at + Nanos::try_from(part).unwrap_or(0);
        into.push(Interval {
            began: at,
            ended: until,
            state: State::Processor,
            holder: same[0].holder,
            is_late: false,
        });
        (at, left) = (until, left - same.len());
    }
}

//! Joins the events of the program's threads into fibers, scopes and operations.
//!
//! Recorded fibers and scopes are numbered by worker, and operations in flight are identified by worker and key. These
//! are replaced by indices into the lists sorted by time. A reference to a lost event becomes `None`; a fiber falls
//! back to its worker's outermost scope.

use std::collections::HashMap;

use ferry_io::Route;
use ferry_io::event::file::Chunk;
use ferry_io::event::{
    Asked, CompletionMet as How, Decoder, Event, Gauge as Measured, Key, Opener, SubmitReason as Cause,
};

use super::names::Names;
use crate::Trace;
use crate::model::{
    CompletionMet, Enter, Fiber, Gauge, Nanos, Operation, Piece, Rest, Sample, Scope, ScopeKind, Submission,
    SubmitReason,
};

/// Maximum duration of a recording (36 years). Sums and products of a few times cannot overflow.
pub(super) const LONGEST: Nanos = 1 << 60;

/// Worker and number of a fiber or scope.
type Numbered = (u32, u32);

/// A pool thread's events of an operation.
#[derive(Default)]
struct Run {
    thread: u32,
    started: Option<Nanos>,
    finished: Option<Nanos>,
}

/// Everything collected so far, in the clock's times.
pub(super) struct Program {
    names: Names,
    events: u64,
    pub(super) scopes: Vec<Scope>,
    scope_places: HashMap<Numbered, u32>,
    pub(super) fibers: Vec<Fiber>,
    fiber_places: HashMap<Numbered, u32>,
    pub(super) operations: Vec<Operation>,
    operation_places: HashMap<(u32, Key), u32>,
    /// Keys by which rings identify operations. Until the kernel's events are joined, [`Operation::request`] is an
    /// index here.
    keys: Vec<u64>,
    /// Events of pool threads by worker and key of the operation.
    runs: HashMap<(u32, Key), Run>,
    /// Operations queued for a ring but not submitted yet, by worker.
    fresh: HashMap<u32, Vec<u32>>,
    pub(super) submissions: Vec<Submission>,
    pub(super) enters: Vec<Enter>,
    pub(super) rests: Vec<Rest>,
    pub(super) pieces: Vec<Piece>,
    pub(super) samples: Vec<Sample>,
    last_thread: u32,
}

impl Program {
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            events: 0,
            scopes: Vec::new(),
            scope_places: HashMap::new(),
            fibers: Vec::new(),
            fiber_places: HashMap::new(),
            operations: Vec::new(),
            operation_places: HashMap::new(),
            keys: Vec::new(),
            runs: HashMap::new(),
            fresh: HashMap::new(),
            submissions: Vec::new(),
            enters: Vec::new(),
            rests: Vec::new(),
            pieces: Vec::new(),
            samples: Vec::new(),
            last_thread: 0,
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Adds a chunk; `None` if it is malformed.
    pub(super) fn take(&mut self, chunk: &Chunk, bytes: &[u8]) -> Option<()> {
        if chunk.lost > 0 {
            // After lost events it is unknown which queued operations were submitted.
            self.fresh.remove(&chunk.thread);
        }
        self.last_thread = self.last_thread.max(chunk.thread);
        let mut decoder = Decoder::new(bytes, chunk.base);
        for _ in 0..chunk.events {
            let (time, event) = decoder.next_event()?;
            self.add(chunk.thread, time, &event)?;
            self.events += 1;
        }
        decoder.is_at_end().then_some(())
    }

    fn add(&mut self, thread: u32, time: Nanos, event: &Event<'_>) -> Option<()> {
        match *event {
            Event::FiberBegan { fiber, scope } => self.add_fiber((thread, fiber), (thread, scope), time)?,
            Event::FiberNamed { fiber, name } => {
                if let Some(fiber) = self.fiber((thread, fiber)) {
                    fiber.name = text(name);
                }
            }
            Event::FiberEnded { fiber } => {
                if let Some(fiber) = self.fiber((thread, fiber)) {
                    fiber.ended = Some(time);
                }
            }
            Event::ScopeOpened { scope, opener, fiber } => {
                let fiber = self.fiber_places.get(&(thread, fiber)).copied();
                self.add_scope((thread, scope), opener, fiber, time)?;
            }
            Event::ScopeCancelled { scope } => {
                if let Some(scope) = self.scope((thread, scope)) {
                    scope.cancelled = Some(time);
                }
            }
            Event::ScopeEnded { scope } => {
                if let Some(scope) = self.scope((thread, scope)) {
                    scope.ended = Some(time);
                }
            }
            Event::Sampled { gauge, value } => {
                let gauge = match gauge {
                    Measured::InFlight => Gauge::InFlight,
                    Measured::Blocks => Gauge::Blocks,
                    Measured::Descriptors => Gauge::Descriptors,
                };
                self.samples.push(Sample { thread, at: time, gauge, value });
            }
            Event::Entered { took, submitted, waits, slept, found, taken } => {
                let ended = time.saturating_add(took);
                self.enters.push(Enter { thread, began: time, ended, submitted, waits, slept, found, taken });
            }
            Event::Rested { took } => {
                self.rests.push(Rest { thread, began: time, ended: time.saturating_add(took) });
            }
            Event::Moved { way, bytes, took, is_trial } => {
                let (way, ended) = (self.names.way(way)?, time.saturating_add(took));
                self.pieces.push(Piece { thread, began: time, ended, way, bytes, is_trial });
            }
            Event::Submitted { requests, why, in_flight } => {
                self.submit(Submission { thread, at: time, requests, why: why_of(why), in_flight })?;
            }
            Event::Ran { .. }
            | Event::Queued { .. }
            | Event::Sent { .. }
            | Event::PassedOn { .. }
            | Event::Started { .. }
            | Event::Finished { .. }
            | Event::CompletionMet { .. }
            | Event::Taken { .. } => self.add_of_operation(thread, time, event)?,
        }
        Some(())
    }

    fn add_of_operation(&mut self, thread: u32, time: Nanos, event: &Event<'_>) -> Option<()> {
        match *event {
            Event::Ran { asked, took, result } => {
                let mut operation = self.operation(thread, &asked, time)?;
                let ended = Some(time.saturating_add(took));
                operation.submitted = Some(time);
                operation.started = Some(time);
                (operation.completed, operation.taken) = (ended, ended);
                operation.result = Some(result_of(result)?);
                self.operations.push(operation);
            }
            Event::Queued { key, asked, waited } => {
                let mut operation = self.operation(thread, &asked, time.saturating_sub(waited))?;
                let place = u32::try_from(self.operations.len()).ok()?;
                if operation.route == Route::Ring {
                    operation.request = Some(u32::try_from(self.keys.len()).ok()?);
                    self.keys.push(key.user_data());
                    self.fresh.entry(thread).or_default().push(place);
                }
                self.operation_places.insert((thread, key), place);
                self.operations.push(operation);
            }
            Event::Started { worker, key } => {
                let run = self.runs.entry((worker, key)).or_default();
                run.thread = thread;
                // An operation that may block indefinitely is started by several threads.
                run.started.get_or_insert(time);
            }
            Event::Finished { worker, key } => {
                let run = self.runs.entry((worker, key)).or_default();
                run.thread = thread;
                run.finished = Some(time);
            }
            Event::Sent { key } => self.follow((thread, key), |operation| operation.submitted = Some(time)),
            Event::PassedOn { key, reason } => {
                let reason = self.names.reason(reason)?;
                self.follow((thread, key), |operation| {
                    operation.submitted = Some(time);
                    (operation.route, operation.reason, operation.submission) = (Route::Pool, reason, None);
                });
            }
            Event::CompletionMet { key, how } => self.follow((thread, key), |operation| {
                operation.met = Some(match how {
                    How::Peek => CompletionMet::Peek,
                    How::AtOnce => CompletionMet::AtOnce,
                    How::Slept => CompletionMet::Slept,
                });
            }),
            Event::Taken { key, result, abandoned } => {
                let result = result_of(result)?;
                self.follow((thread, key), |operation| {
                    operation.taken = Some(time);
                    operation.result = Some(result);
                    operation.abandoned = abandoned;
                });
            }
            Event::FiberBegan { .. }
            | Event::FiberNamed { .. }
            | Event::FiberEnded { .. }
            | Event::ScopeOpened { .. }
            | Event::ScopeCancelled { .. }
            | Event::ScopeEnded { .. }
            | Event::Submitted { .. }
            | Event::Entered { .. }
            | Event::Rested { .. }
            | Event::Moved { .. }
            | Event::Sampled { .. } => return None,
        }
        Some(())
    }

    /// Changes a queued operation, unless its request was lost.
    fn follow(&mut self, asked: (u32, Key), change: impl FnOnce(&mut Operation)) {
        let place = self.operation_places.get(&asked);
        if let Some(operation) = place.and_then(|&place| self.operations.get_mut(place as usize)) {
            change(operation);
        }
    }

    fn operation(&self, thread: u32, asked: &Asked<'_>, time: Nanos) -> Option<Operation> {
        Some(Operation {
            kind: self.names.kind(asked.kind)?,
            thread,
            fiber: self.fiber_places.get(&(thread, asked.fiber)).copied(),
            name: text(asked.name),
            size: asked.size,
            offset: asked.offset,
            route: self.names.route(asked.route)?,
            reason: self.names.reason(asked.reason)?,
            asked: time,
            submitted: None,
            started: None,
            completed: None,
            taken: None,
            result: None,
            abandoned: false,
            ran_on: None,
            submission: None,
            request: None,
            met: None,
        })
    }

    /// A batch consists of everything queued since the previous batch.
    fn submit(&mut self, submission: Submission) -> Option<()> {
        let place = u32::try_from(self.submissions.len()).ok()?;
        for operation in self.fresh.remove(&submission.thread).unwrap_or_default() {
            let operation = self.operations.get_mut(operation as usize)?;
            if operation.route == Route::Ring {
                operation.submission = Some(place);
                operation.submitted = Some(submission.at);
            }
        }
        self.submissions.push(submission);
        Some(())
    }

    fn add_fiber(&mut self, number: Numbered, scope: Numbered, began: Nanos) -> Option<()> {
        let outermost = (scope.0, 1);
        let known = self.scope_places.get(&scope).or_else(|| self.scope_places.get(&outermost)).copied();
        let scope = match known {
            Some(place) => place,
            None => {
                self.add_scope(outermost, Opener::Run, None, began)?;
                u32::try_from(self.scopes.len() - 1).ok()?
            }
        };
        self.fiber_places.insert(number, u32::try_from(self.fibers.len()).ok()?);
        self.fibers.push(Fiber { scope, name: String::new(), began, ended: None });
        Some(())
    }

    fn add_scope(
        &mut self,
        number: Numbered,
        opener: Opener,
        fiber: Option<u32>,
        began: Nanos,
    ) -> Option<()> {
        let kind = match opener {
            Opener::Run => ScopeKind::Run,
            Opener::Scope => ScopeKind::Scope,
            Opener::ForEach => ScopeKind::ForEach,
            Opener::Join => ScopeKind::Join,
        };
        self.scope_places.insert(number, u32::try_from(self.scopes.len()).ok()?);
        let thread = number.0;
        let (ended, cancelled) = (None, None);
        self.scopes.push(Scope { kind, thread, fiber, name: String::new(), began, ended, cancelled });
        Some(())
    }

    fn fiber(&mut self, number: Numbered) -> Option<&mut Fiber> {
        self.fibers.get_mut(*self.fiber_places.get(&number)? as usize)
    }

    fn scope(&mut self, number: Numbered) -> Option<&mut Scope> {
        self.scopes.get_mut(*self.scope_places.get(&number)? as usize)
    }

    /// Joins and sorts everything into the trace, with times relative to the beginning. `None` if a thread is unknown
    /// or a time is beyond [`LONGEST`]. Returns the keys by which rings identify operations.
    pub(super) fn put_into(mut self, trace: &mut Trace, began: Nanos) -> Option<Vec<u64>> {
        let runs = std::mem::take(&mut self.runs);
        for (asked, run) in runs {
            let Some(&place) = self.operation_places.get(&asked) else { continue };
            let operation = self.operations.get_mut(place as usize)?;
            (operation.started, operation.completed) = (run.started, run.finished);
            operation.ran_on = Some(run.thread);
            self.last_thread = self.last_thread.max(run.thread);
        }
        if self.events > 0 && self.last_thread as usize >= trace.threads.len() {
            return None;
        }
        self.name_scopes();
        if self.shift(began) > LONGEST {
            return None;
        }
        self.sort();
        trace.scopes = self.scopes;
        trace.fibers = self.fibers;
        trace.operations = self.operations;
        trace.submissions = self.submissions;
        trace.enters = self.enters;
        trace.rests = self.rests;
        trace.pieces = self.pieces;
        trace.samples = self.samples;
        Some(self.keys)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn result_of(result: i64) -> Option<Result<u64, i32>> {
    match u64::try_from(result) {
        Ok(count) => Some(Ok(count)),
        Err(_) => Some(Err(i32::try_from(result.checked_neg()?).ok()?)),
    }
}

fn why_of(why: Cause) -> SubmitReason {
    match why {
        Cause::Full => SubmitReason::Full,
        Cause::Idle => SubmitReason::Idle,
        Cause::Forced => SubmitReason::Forced,
    }
}

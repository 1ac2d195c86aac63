//! Nested activities of each thread: executed operations, pieces of large files, calls of io_uring_enter(2), sleeps,
//! submissions.

use std::cmp::Reverse;
use std::io::{self, Write};

use ferry_io::Route;

use super::drawing::{Beneath, Drawing};
use super::flows::Step;
use super::packets::{Event, Value};
use crate::export::rows::Rows;
use crate::model::{IDLE, Nanos, SubmitReason};

/// Activity of a thread. The order decides the nesting of activities with equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// In [`crate::model::Trace::enters`].
    Enter(usize),
    /// In [`crate::model::Trace::rests`].
    Rest(usize),
    /// In [`crate::model::Trace::operations`].
    Run(usize),
    /// In [`crate::model::Trace::pieces`].
    Move(usize),
}

/// Beginning, end (the later first) and activity.
type Stretch = (Nanos, Reverse<Nanos>, Doing);

impl<W: Write> Drawing<'_, '_, W> {
    pub(super) fn threads(&mut self) -> io::Result<()> {
        for (thread, stretches) in (0..).zip(self.stretches()) {
            self.thread(thread, stretches)?;
        }
        self.submissions()
    }

    fn stretches(&self) -> Vec<Vec<Stretch>> {
        let trace = self.trace;
        let mut found = vec![Vec::new(); trace.threads.len()];
        let mut add = |thread: u32, began: Nanos, ended: Nanos, doing| {
            if let Some(list) = found.get_mut(thread as usize) {
                list.push((began, Reverse(ended.max(began)), doing));
            }
        };
        for (index, operation) in trace.operations.iter().enumerate() {
            let ran_here = operation.route == Route::Inline || operation.route == Route::Offload;
            let thread = operation.ran_on.or(ran_here.then_some(operation.thread));
            if let (Some(thread), Some(started)) = (thread, operation.started) {
                let ended = operation.completed.or(operation.taken).unwrap_or(trace.about.took);
                add(thread, started, ended, Doing::Run(index));
            }
        }
        for (index, enter) in trace.enters.iter().enumerate() {
            add(enter.thread, enter.began, enter.ended, Doing::Enter(index));
        }
        for (index, rest) in trace.rests.iter().enumerate() {
            add(rest.thread, rest.began, rest.ended, Doing::Rest(index));
        }
        for (index, piece) in trace.pieces.iter().enumerate() {
            add(piece.thread, piece.began, piece.ended, Doing::Move(index));
        }
        for list in &mut found {
            list.sort_unstable();
        }
        found
    }

    /// Writes beginnings and ends in order. Partial overlaps, for example from clocks that disagree, get another
    /// track.
    fn thread(&mut self, thread: u32, stretches: Vec<Stretch>) -> io::Result<()> {
        let Some(track) = self.threads.get(thread as usize).copied() else { return Ok(()) };
        let mut open: Vec<Nanos> = Vec::new();
        let mut others = Rows::default();
        let mut tracks = Vec::new();
        for (began, Reverse(ended), doing) in stretches {
            while let Some(until) = open.last().copied()
                && until <= began
                && (until < began || ended > until)
            {
                open.pop();
                self.packets.end(track, until)?;
            }
            if open.last().is_none_or(|until| ended <= *until) {
                self.begin(track, began, doing)?;
                open.push(ended);
                continue;
            }
            let row = others.take(began, ended);
            if row == tracks.len() {
                tracks.extend(self.beneath(thread, Beneath::Overlapping)?);
            }
            if let Some(other) = tracks.get(row).copied() {
                self.begin(other, began, doing)?;
                self.packets.end(other, ended)?;
            }
        }
        open.iter().rev().try_for_each(|until| self.packets.end(track, *until))
    }

    fn begin(&mut self, track: u64, at: Nanos, doing: Doing) -> io::Result<()> {
        let trace = self.trace;
        let event = |name| Event::new(track, at, "thread", name);
        let event = match doing {
            Doing::Enter(index) => {
                let Some(enter) = trace.enters.get(index) else { return Ok(()) };
                let mut event = event("io_uring_enter");
                event.arguments = vec![
                    ("submitted", Value::Count(u64::from(enter.submitted))),
                    ("completions before", Value::Count(u64::from(enter.found))),
                    ("completions after", Value::Count(u64::from(enter.taken))),
                ];
                event.arguments.extend(enter.waits.then_some(("waits", Value::Yes)));
                event.arguments.extend(enter.slept.then_some(("slept", Value::Yes)));
                event
            }
            Doing::Rest(_) => event(IDLE),
            Doing::Move(index) => {
                let Some(piece) = trace.pieces.get(index) else { return Ok(()) };
                let mut event = event(piece.way.name());
                event.arguments = vec![("bytes", Value::Count(piece.bytes))];
                event.arguments.extend(piece.is_trial.then_some(("trial", Value::Yes)));
                event
            }
            Doing::Run(index) => {
                let Some(operation) = trace.operations.get(index) else { return Ok(()) };
                let mut event = event(operation.kind.name());
                if !operation.name.is_empty() {
                    event.arguments.push(("name", Value::Text(&operation.name)));
                }
                if operation.ran_on.is_some() {
                    self.flows.join(&mut event, index, Step::Run);
                }
                event
            }
        };
        self.packets.begin(event)
    }

    fn submissions(&mut self) -> io::Result<()> {
        let trace = self.trace;
        for (index, submission) in trace.submissions.iter().enumerate() {
            let Some(track) = self.threads.get(submission.thread as usize) else { continue };
            let why = match submission.why {
                SubmitReason::Full => "the ring was full",
                SubmitReason::Idle => "nothing else could run",
                SubmitReason::Forced => "forced",
            };
            let mut event = Event::new(*track, submission.at, "submission", "submit");
            event.arguments = vec![
                ("requests", Value::Count(u64::from(submission.requests))),
                ("why", Value::Word(why)),
                ("in flight", Value::Count(u64::from(submission.in_flight))),
            ];
            for operation in self.flows.of_submission(index) {
                self.flows.join(&mut event, *operation, Step::Submission);
            }
            self.packets.instant(event)?;
        }
        Ok(())
    }
}

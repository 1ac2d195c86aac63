//! The future of one operation: routed when it is first polled, handed over when there is room, then awaited.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;

use super::{HandedOver, Worker, current};
use crate::cancel;
use crate::error::{Error, Operation, Result};
use crate::event;
use crate::op::{Op, Outcome};
use crate::route::Choice;
use crate::slots::Key;
use crate::time::Sleep;

/// Pause between two tries, and number of tries, for an operation that lacks a descriptor.
const PAUSE: Duration = Duration::from_millis(10);
const MOST_PAUSES: u16 = 100;
/// Number of tries for opening a leased file: longer than the default `fs.lease-break-time` of 45 s.
const MOST_LEASE_PAUSES: u16 = 4600;

/// Runs an operation and returns the request with its result.
pub(crate) fn submit(op: Op) -> Submit {
    Submit { state: State::New(op), overlaps: false, pauses: 0, asked: 0 }
}

/// Runs an operation for a fiber that has other work meanwhile.
pub(crate) fn submit_overlapping(op: Op) -> Submit {
    Submit { state: State::New(op), overlaps: true, pauses: 0, asked: 0 }
}

impl Submit {
    /// Hands over an operation that was asked at `asked`, and refused.
    pub(crate) fn routed(op: Op, choice: Choice, asked: u64) -> Self {
        Self { state: State::Routed { op, choice }, overlaps: false, pauses: 0, asked }
    }
}

pub(crate) struct Submit {
    state: State,
    overlaps: bool,
    /// Tries that ended for want of a descriptor or because of a lease.
    pauses: u16,
    /// Time of the first try, for a recording.
    asked: u64,
}

#[allow(clippy::large_enum_variant, reason = "a request moves once, to where it runs")]
enum State {
    New(Op),
    /// Its route is chosen.
    Routed {
        op: Op,
        choice: Choice,
    },
    /// The ring had no room.
    Crowded {
        worker: Rc<Worker>,
        op: Op,
        choice: Choice,
        place: u64,
    },
    Waiting {
        worker: Rc<Worker>,
        key: Key,
        operation: Operation,
        cancelled: bool,
    },
    /// No descriptor was free (EMFILE); others may close theirs meanwhile.
    Pausing {
        op: Op,
        pause: Sleep,
    },
    Over,
}

impl Future for Submit {
    type Output = (Option<Op>, Result<Outcome>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Waiting { .. } => return self.poll_waiting(cx),
            State::Pausing { pause, .. } => {
                // A cancellation is seen below.
                std::task::ready!(Pin::new(pause).poll(cx)).ok();
            }
            State::New(_) | State::Routed { .. } | State::Crowded { .. } | State::Over => {}
        }
        let worker = current();
        let is_cancelled = cancel::is_cancelled();
        if !is_cancelled && self.gives_way(&worker) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let overlaps = self.overlaps;
        let (op, choice, mut place) = match std::mem::replace(&mut self.state, State::Over) {
            State::New(op) | State::Routed { op, .. } | State::Pausing { op, .. } if is_cancelled => {
                return refused(op);
            }
            State::Routed { op, choice } => (op, choice, None),
            State::New(mut op) | State::Pausing { mut op, .. } => {
                self.asked = event::clock();
                match worker.run_inline(&mut op, overlaps, self.asked) {
                    Ok(Ok(outcome)) => return Poll::Ready((Some(op), Ok(outcome))),
                    Ok(Err(errno)) => {
                        let error = Error::errno(op.operation(), errno);
                        return self.end(&worker, op, Err(error), cx);
                    }
                    Err(choice) => (op, choice, None),
                }
            }
            State::Crowded { op, choice, place, .. } => {
                worker.leave_crowd(place, is_cancelled);
                if is_cancelled {
                    return refused(op);
                }
                (op, choice, Some(place))
            }
            State::Waiting { .. } | State::Over => return Poll::Pending,
        };
        let operation = op.operation();
        match worker.hand_over(op, choice, self.asked) {
            HandedOver::InFlight(key) => {
                self.state = State::Waiting { worker, key, operation, cancelled: false };
                self.poll_waiting(cx)
            }
            HandedOver::NoRoom(op, choice) => {
                let place = worker.crowd.borrow_mut().join(&mut place, cx.waker());
                self.state = State::Crowded { worker, op, choice, place };
                Poll::Pending
            }
        }
    }
}

/// The answer of an operation that was cancelled before it began.
fn refused(op: Op) -> Poll<(Option<Op>, Result<Outcome>)> {
    let operation = op.operation();
    Poll::Ready((Some(op), Err(Error::cancelled(operation))))
}

impl Submit {
    /// Returns true if other fibers run first. A fiber that has begun to change a file gives way only when others are
    /// long overdue, so that few files are unfinished at a time.
    fn gives_way(&self, worker: &Worker) -> bool {
        match &self.state {
            State::New(op) | State::Pausing { op, .. } if op.goes_on() => worker.is_overdue(),
            State::Routed { .. } => false,
            State::New(_)
            | State::Pausing { .. }
            | State::Crowded { .. }
            | State::Waiting { .. }
            | State::Over => worker.is_due(),
        }
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<(Option<Op>, Result<Outcome>)> {
        let State::Waiting { worker, key, operation, cancelled } = &mut self.state else {
            return Poll::Pending;
        };
        if !*cancelled && cancel::is_cancelled() {
            *cancelled = true;
            worker.cancel(*key);
        }
        let Some((op, result)) = worker.slots.borrow_mut().poll(*key, cx.waker()) else {
            return Poll::Pending;
        };
        let result = match result {
            _ if *cancelled => Err(Error::cancelled(*operation)),
            // The run has ended and given up its operations.
            Err(Errno::CANCELED) => Err(Error::cancelled(*operation)),
            Err(errno) => Err(Error::errno(*operation, errno)),
            Ok(outcome) => Ok(outcome),
        };
        let worker = Rc::clone(worker);
        self.state = State::Over;
        self.end(&worker, op, result, cx)
    }

    /// Ends the operation, or tries it again: for a second if no descriptor was free, for 46 s if the file is leased.
    fn end(
        &mut self,
        worker: &Rc<Worker>,
        op: Op,
        result: Result<Outcome>,
        cx: &mut Context<'_>,
    ) -> Poll<(Option<Op>, Result<Outcome>)> {
        let is_short = result.as_ref().is_err_and(|error| error.is(Errno::MFILE) || error.is(Errno::NFILE));
        // Of an open file, EAGAIN is about its bytes.
        let is_opening = matches!(op, Op::Open { .. } | Op::Load { opened: None, .. });
        let is_leased = is_opening && result.as_ref().is_err_and(|error| error.is(Errno::AGAIN));
        let most = if is_leased { MOST_LEASE_PAUSES } else { MOST_PAUSES };
        if !(is_short || is_leased) || self.pauses >= most {
            return Poll::Ready((Some(op), result));
        }
        self.pauses += 1;
        self.state = State::Pausing { op, pause: Sleep::begin(worker, PAUSE) };
        Pin::new(self).poll(cx)
    }
}

impl Drop for Submit {
    fn drop(&mut self) {
        // The worker that the operation belongs to, even if its run is over.
        match &self.state {
            State::Waiting { worker, key, .. } => {
                let unwanted = worker.slots.borrow_mut().abandon(*key);
                if unwanted.is_none() {
                    worker.cancel(*key);
                }
            }
            State::Crowded { worker, place, .. } => worker.leave_crowd(*place, true),
            State::New(_) | State::Routed { .. } | State::Pausing { .. } | State::Over => {}
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;

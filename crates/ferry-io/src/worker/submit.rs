//! The future of one operation: begun when it is first polled, perhaps when there is room for it, and awaited.

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

/// How long, and how often, an operation waits for a descriptor.
const PAUSE: Duration = Duration::from_millis(10);
const MOST_PAUSES: u16 = 100;
/// The same for a file that is leased.
const MOST_LEASE_PAUSES: u16 = 4600;

/// Runs an operation and gives back the request with its result.
pub(crate) fn submit(op: Op) -> Submit {
    Submit { state: State::New(op), overlaps: false, pauses: 0, asked: 0 }
}

/// The same for a fiber that has more to do than wait for it.
pub(crate) fn submit_overlapping(op: Op) -> Submit {
    Submit { state: State::New(op), overlaps: true, pauses: 0, asked: 0 }
}

/// The future of [`submit`].
pub(crate) struct Submit {
    state: State,
    overlaps: bool,
    /// How often it has waited for a descriptor.
    pauses: u16,
    /// When it was, for a recording.
    asked: u64,
}

#[allow(clippy::large_enum_variant, reason = "a request moves once, to where it runs")]
enum State {
    New(Op),
    /// The ring had no room when it was its turn.
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
    /// No descriptor was to be had (EMFILE): others may close theirs meanwhile.
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
                // Whether it is cancelled is seen below.
                std::task::ready!(Pin::new(pause).poll(cx)).ok();
            }
            State::New(_) | State::Crowded { .. } | State::Over => {}
        }
        let worker = current();
        let is_cancelled = cancel::is_cancelled();
        if !is_cancelled && self.gives_way(&worker) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let overlaps = self.overlaps;
        let (op, choice, place) = match std::mem::replace(&mut self.state, State::Over) {
            State::New(op) | State::Pausing { op, .. } if is_cancelled => return refused(op),
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
                let was_woken = worker.crowd.borrow_mut().waiting.remove(&place).is_none();
                if is_cancelled {
                    if was_woken {
                        worker.thin_crowd(1);
                    }
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
                let place = worker.join_crowd(place, cx.waker());
                self.state = State::Crowded { worker, op, choice, place };
                Poll::Pending
            }
        }
    }
}

/// What was cancelled before it began.
fn refused(op: Op) -> Poll<(Option<Op>, Result<Outcome>)> {
    let operation = op.operation();
    Poll::Ready((Some(op), Err(Error::cancelled(operation))))
}

impl Submit {
    /// Returns true if other fibers get their turn first. Where the operation goes on with a file that its fiber has
    /// begun to change, they have to be long overdue: so as few files as possible are unfinished at a time.
    fn gives_way(&self, worker: &Worker) -> bool {
        match &self.state {
            State::New(op) | State::Pausing { op, .. } if op.goes_on() => worker.is_overdue(),
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
            // The run has ended, and gave up what was in flight.
            Err(Errno::CANCELED) => Err(Error::cancelled(*operation)),
            Err(errno) => Err(Error::errno(*operation, errno)),
            Ok(outcome) => Ok(outcome),
        };
        let worker = Rc::clone(worker);
        self.state = State::Over;
        self.end(&worker, op, result, cx)
    }

    /// The end of the operation, unless it failed for want of a descriptor, which is tried again for a second, or because
    /// someone holds a lease on the file, whom the kernel gives `fs.lease-break-time`, by default 45 s, to let go.
    fn end(
        &mut self,
        worker: &Rc<Worker>,
        op: Op,
        result: Result<Outcome>,
        cx: &mut Context<'_>,
    ) -> Poll<(Option<Op>, Result<Outcome>)> {
        let is_short = result.as_ref().is_err_and(|error| error.is(Errno::MFILE) || error.is(Errno::NFILE));
        // Once it is open, EAGAIN is about its bytes.
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
        // Its own worker, even if the run that it belonged to is over.
        match &self.state {
            State::Waiting { worker, key, .. } => {
                let unwanted = worker.slots.borrow_mut().abandon(*key);
                if unwanted.is_none() {
                    worker.cancel(*key);
                }
            }
            State::Crowded { worker, place, .. } => {
                // The room that it was woken for is another's now.
                if worker.crowd.borrow_mut().waiting.remove(place).is_none() {
                    worker.thin_crowd(1);
                }
            }
            State::New(_) | State::Pausing { .. } | State::Over => {}
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;

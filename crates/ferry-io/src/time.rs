//! Time: sleeping, and giving up when time is up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::cancel::{self, Within};
use crate::error::{Cause, Error, Operation, Result};
use crate::worker;

/// One worker's timers.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
}

struct Timer {
    at: Instant,
    waker: Waker,
}

impl Timers {
    /// How long until the next one is due.
    pub(crate) fn until_next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse(timer)| timer.at.saturating_duration_since(Instant::now()))
    }

    /// Wakes whoever's time has come.
    pub(crate) fn fire(&mut self) {
        if self.heap.is_empty() {
            return;
        }
        let now = Instant::now();
        while self.heap.peek().is_some_and(|Reverse(timer)| timer.at <= now) {
            if let Some(Reverse(timer)) = self.heap.pop() {
                timer.waker.wake();
            }
        }
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// Waits for `duration`.
///
/// # Errors
/// If the scope around it is cancelled first.
pub async fn sleep(duration: Duration) -> Result<()> {
    Sleep { until: Instant::now() + duration, armed: false }.await
}

struct Sleep {
    until: Instant,
    armed: bool,
}

impl Future for Sleep {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if cancel::is_cancelled() {
            return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
        }
        if Instant::now() >= self.until {
            return Poll::Ready(Ok(()));
        }
        if !self.armed {
            self.armed = true;
            let timer = Timer { at: self.until, waker: cx.waker().clone() };
            worker::current().timers.borrow_mut().heap.push(Reverse(timer));
        }
        Poll::Pending
    }
}

/// Runs `future`, and cancels it if it takes longer than `limit`. Returns when it has ended, either way.
///
/// # Errors
/// [`Cause::TimedOut`] if its time was up, else its own.
pub async fn timeout<T>(limit: Duration, future: impl Future<Output = Result<T>>) -> Result<T> {
    let context = cancel::Context::child();
    let mut future = Within { future: Box::pin(future), context: std::rc::Rc::clone(&context) };
    let mut timer = Box::pin(sleep(limit));
    let mut timed_out = false;
    std::future::poll_fn(move |cx| {
        if !timed_out && timer.as_mut().poll(cx).is_ready() {
            timed_out = true;
            context.cancel();
        }
        match Pin::new(&mut future).poll(cx) {
            Poll::Ready(Err(error)) if timed_out && error.is_cancelled() => {
                Poll::Ready(Err(Error { operation: error.operation, cause: Cause::TimedOut }))
            }
            answer => answer,
        }
    })
    .await
}

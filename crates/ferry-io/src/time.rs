//! Sleeping, and time limits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::cancel::{self, Within};
use crate::error::{Cause, Error, Operation, Result};
use crate::event::Branch;
use crate::worker::{self, Worker};

/// One worker's timers, by time and then in the order in which they were set.
#[derive(Default)]
pub(crate) struct Timers {
    queue: BTreeMap<Timer, Waker>,
    set: u64,
}

/// The time, and a number that tells equal times apart.
type Timer = (Instant, u64);

impl Timers {
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|(&(at, _), _)| at)
    }

    pub(crate) fn fire(&mut self, now: impl FnOnce() -> Instant) {
        if self.queue.is_empty() {
            return;
        }
        let now = now();
        while self.next().is_some_and(|at| at <= now) {
            if let Some((_, waker)) = self.queue.pop_first() {
                waker.wake();
            }
        }
    }

    fn add(&mut self, at: Instant, waker: Waker) -> Timer {
        self.set += 1;
        self.queue.insert((at, self.set), waker);
        (at, self.set)
    }
}

/// Waits for `duration`.
///
/// ```
/// use std::time::Duration;
/// use ferry_io::{Error, Options, now, run, sleep};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let begun = now();
///     sleep(Duration::from_millis(1)).await?;
///     assert!(now() - begun >= Duration::from_millis(1));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the scope is cancelled first.
pub async fn sleep(duration: Duration) -> Result<()> {
    Sleep::begin(&worker::current(), duration).await
}

/// The time of this run. Virtual time, in a simulation, passes only while all fibers wait.
#[must_use]
pub fn now() -> Instant {
    worker::current().now()
}

pub(crate) struct Sleep {
    worker: Rc<Worker>,
    /// `None` if the time is too far in the future to be represented.
    until: Option<Instant>,
    timer: Option<Timer>,
}

impl Sleep {
    pub(crate) fn begin(worker: &Rc<Worker>, duration: Duration) -> Self {
        Self { worker: Rc::clone(worker), until: worker.now().checked_add(duration), timer: None }
    }
}

impl Future for Sleep {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if cancel::is_cancelled() {
            return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
        }
        let Some(until) = self.until else { return Poll::Pending };
        if self.worker.now() >= until {
            return Poll::Ready(Ok(()));
        }
        let timer = self.timer.take();
        let mut timers = self.worker.timers.borrow_mut();
        let timer = match timer {
            Some(timer) => {
                timers.queue.insert(timer, cx.waker().clone());
                timer
            }
            None => timers.add(until, cx.waker().clone()),
        };
        drop(timers);
        self.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.worker.timers.borrow_mut().queue.remove(&timer);
        }
    }
}

/// Runs `future` and cancels it after `limit`. Returns when it has ended.
///
/// ```
/// use std::time::Duration;
/// use ferry_io::{Cause, Error, Options, run, sleep, timeout};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let late = timeout(Duration::from_millis(1), sleep(Duration::from_secs(3600))).await;
///     assert!(late.is_err_and(|error| error.cause == Cause::TimedOut));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Cause::TimedOut`] if the limit was reached, else those of `future`.
pub async fn timeout<T>(limit: Duration, future: impl Future<Output = Result<T>>) -> Result<T> {
    let context = cancel::Context::child();
    let mut future =
        Within { future: Box::pin(future), context: std::rc::Rc::clone(&context), branch: Branch::untold() };
    let mut timer = Sleep::begin(&worker::current(), limit);
    let mut timed_out = false;
    std::future::poll_fn(move |cx| {
        // A cancellation from outside is not a timeout.
        if !timed_out && matches!(Pin::new(&mut timer).poll(cx), Poll::Ready(Ok(()))) {
            timed_out = true;
            context.cancel();
        }
        match Pin::new(&mut future).poll(cx) {
            Poll::Ready(Err(error)) if timed_out && error.is_cancelled() => {
                Poll::Ready(Err(Error { operation: error.operation, cause: Cause::TimedOut }))
            }
            answer @ (Poll::Ready(_) | Poll::Pending) => answer,
        }
    })
    .await
}

#[cfg(test)]
mod tests;

//! Cancellation: the context of the running fiber, and whether it is cancelled.
//!
//! Cancellation is cooperative. A cancelled scope polls its fibers once more. Each pending operation is then cancelled
//! and returns [`crate::Cause::Cancelled`] when the backend has released its memory. The scope ends with its last
//! fiber.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use crate::concurrent::thread_local;
use crate::event::{self, Branch};

/// Cancellation state shared by the fibers of one scope.
#[derive(Debug)]
pub(crate) struct Context {
    cancelled: Cell<bool>,
    parent: Option<Rc<Context>>,
    /// Stop flag of the run, or of jobs shared by workers; only in the outermost contexts of a worker.
    stop: Option<Arc<AtomicBool>>,
    /// The scope's number in a recording, or 0.
    scope: u32,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
    static DETACHED: Rc<Context> = Rc::new(Context { cancelled: Cell::new(false), parent: None, stop: None, scope: 0 });
}

impl Context {
    /// The outermost context of a worker; `stop` cancels it from any thread.
    pub(crate) fn root(stop: Arc<AtomicBool>) -> Rc<Self> {
        Rc::new(Self { cancelled: Cell::new(false), parent: None, stop: Some(stop), scope: 0 })
    }

    /// A context within `self` that `stop` cancels from any thread.
    pub(crate) fn stopped_by(self: &Rc<Self>, stop: Arc<AtomicBool>) -> Rc<Self> {
        Rc::new(Self {
            cancelled: Cell::new(false),
            parent: Some(Rc::clone(self)),
            stop: Some(stop),
            scope: 0,
        })
    }

    /// A context within the running fiber's.
    pub(crate) fn child() -> Rc<Self> {
        Self::child_of_scope(0)
    }

    /// A context within the running fiber's, for the scope with this number in a recording.
    pub(crate) fn child_of_scope(scope: u32) -> Rc<Self> {
        let parent = CURRENT.with_borrow(Clone::clone);
        Rc::new(Self { cancelled: Cell::new(false), parent, stop: None, scope })
    }

    pub(crate) fn scope(&self) -> u32 {
        self.scope
    }

    /// A context that is never cancelled.
    pub(crate) fn detached() -> Rc<Self> {
        DETACHED.with(Rc::clone)
    }

    pub(crate) fn cancel(&self) {
        if !self.cancelled.replace(true) {
            event::cancel_scope(self.scope);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.get()
            || self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
            || self.parent.as_ref().is_some_and(|parent| parent.is_cancelled())
    }

    pub(crate) fn enter<T>(self: &Rc<Self>, f: impl FnOnce() -> T) -> T {
        let _restore = Restore(CURRENT.replace(Some(Rc::clone(self))));
        f()
    }
}

struct Restore(Option<Rc<Context>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Returns true if the running fiber's scope has been cancelled.
///
/// ```
/// use ferry_io::{Error, Options, Scope, is_cancelled, run, scope};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let outcome: Result<(), Error> = scope(async |fibers: Scope<'_, Error>| {
///         assert!(!is_cancelled());
///         fibers.cancel();
///         assert!(is_cancelled());
///         Ok(())
///     })
///     .await;
///     assert!(outcome.is_ok(), "nothing was waited for");
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn is_cancelled() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|context| context.is_cancelled()))
}

/// Runs `future` to its end even if the scope around it is cancelled, for cleaning up.
///
/// ```
/// use std::time::Duration;
/// use ferry_io::{Error, Options, Scope, protect, run, scope, sleep};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     scope(async |fibers: Scope<'_, Error>| {
///         fibers.cancel();
///         assert!(sleep(Duration::ZERO).await.is_err(), "cancelled");
///         protect(sleep(Duration::from_millis(1))).await
///     })
///     .await?;
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn protect<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let context = Context::detached();
    std::future::poll_fn(move |cx| context.enter(|| future.as_mut().poll(cx))).await
}

pub(crate) struct Within<F> {
    pub(crate) future: Pin<Box<F>>,
    pub(crate) context: Rc<Context>,
    pub(crate) branch: Branch,
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let future = this.future.as_mut();
        let polled = {
            let _running = this.branch.run();
            this.context.enter(|| future.poll(cx))
        };
        if polled.is_ready() {
            this.branch.end();
        }
        polled
    }
}

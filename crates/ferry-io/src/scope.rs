//! Structured concurrency: fibers end before the scope that spawned them.
//!
//! The first error cancels the siblings and is returned once all of them have ended. A panic in a fiber unwinds through
//! the scope and drops the others; the worker reaps their operations.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::cancel::{Context, Within};
use crate::event::{self, Branch, Opener};
use crate::fibers::Fibers;
use crate::worker;

type Fiber<'env, E> = Pin<Box<dyn Future<Output = Result<(), E>> + 'env>>;

/// Handle for spawning fibers; see [`scope`].
pub struct Scope<'env, E> {
    inner: Rc<Inner<'env, E>>,
}

struct Inner<'env, E> {
    /// Fibers spawned while the set is being polled; added right after.
    new: RefCell<Vec<Fiber<'env, E>>>,
    fibers: RefCell<Option<Fibers<Fiber<'env, E>>>>,
    first_error: RefCell<Option<E>>,
    context: Rc<Context>,
    /// Waker of the scope's future, for a cancellation from elsewhere.
    waker: RefCell<Option<Waker>>,
}

impl<E> Clone for Scope<'_, E> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

impl<'env, E> Scope<'env, E> {
    /// Starts a fiber, which runs until it first waits. If the caller is a fiber of this scope, the new one starts when
    /// the caller waits.
    pub fn spawn(&self, fiber: impl Future<Output = Result<(), E>> + 'env) {
        let fiber: Fiber<'env, E> = Box::pin(fiber);
        match self.inner.fibers.try_borrow_mut() {
            Ok(mut fibers) => {
                if let Some(fibers) = fibers.as_mut() {
                    let ended = fibers.spawn(|| fiber);
                    self.inner.note(ended);
                }
            }
            Err(_) => self.inner.new.borrow_mut().push(fiber),
        }
    }

    /// Cancels every fiber of the scope and the operations of its body.
    pub fn cancel(&self) {
        self.inner.cancel();
    }
}

impl<E> Inner<'_, E> {
    fn note(&self, ended: Option<Result<(), E>>) {
        if let Some(Err(error)) = ended {
            self.first_error.borrow_mut().get_or_insert(error);
            self.cancel();
        }
    }

    /// Cancels the scope and wakes it, so that its body and every fiber see it.
    fn cancel(&self) {
        self.context.cancel();
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Polls the fibers that can run; returns true if all have ended.
    fn poll(&self, cx: &std::task::Context<'_>) -> bool {
        let mut set = self.fibers.borrow_mut();
        let Some(fibers) = set.as_mut() else { return true };
        loop {
            let new = std::mem::take(&mut *self.new.borrow_mut());
            for fiber in new {
                let ended = fibers.spawn(|| fiber);
                self.note(ended);
            }
            let ended = fibers.poll_ready(cx);
            if ended.is_none() && self.new.borrow().is_empty() {
                return fibers.alive() == 0;
            }
            self.note(ended);
        }
    }
}

/// Drops all fibers with the scope's future, because fibers may hold the scope itself.
struct Clear<'env, E>(Rc<Inner<'env, E>>);

impl<E> Drop for Clear<'_, E> {
    fn drop(&mut self) {
        let fibers = self.0.fibers.borrow_mut().take();
        drop(fibers);
        let new = std::mem::take(&mut *self.0.new.borrow_mut());
        drop(new);
    }
}

/// Runs `body`, which may spawn fibers, and returns when it and all of them have ended.
///
/// ```
/// use std::cell::Cell;
/// use std::time::Duration;
/// use ferry_io::{Error, Options, Scope, run, scope, sleep};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let ended = &Cell::new(0);
///     scope(async |fibers: Scope<'_, Error>| {
///         for millis in [2, 1] {
///             fibers.spawn(async move {
///                 sleep(Duration::from_millis(millis)).await?;
///                 ended.set(ended.get() + 1);
///                 Ok(())
///             });
///         }
///         Ok(())
///     })
///     .await?;
///     assert_eq!(ended.get(), 2);
///
///     let outcome = scope(async |fibers: Scope<'_, Error>| {
///         fibers.spawn(sleep(Duration::from_secs(3600)));
///         fibers.cancel();
///         Ok(())
///     });
///     assert!(outcome.await.is_err_and(|error| error.is_cancelled()));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of the body or of a fiber. The others have been cancelled and have ended by then.
pub async fn scope<'env, T, E>(body: impl AsyncFnOnce(Scope<'env, E>) -> Result<T, E>) -> Result<T, E> {
    let span = event::open_scope(Opener::Scope);
    let context = Context::child_of_scope(span.scope());
    let fibers = Fibers::new(Rc::clone(&context));
    let inner = Rc::new(Inner {
        new: RefCell::default(),
        fibers: RefCell::new(Some(fibers)),
        first_error: RefCell::new(None),
        context: Rc::clone(&context),
        waker: RefCell::new(None),
    });
    let _clear = Clear(Rc::clone(&inner));
    let mut body = pin!(body(Scope { inner: Rc::clone(&inner) }));
    let mut value = None;
    std::future::poll_fn(move |cx| {
        if !inner.waker.borrow().as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            inner.waker.replace(Some(cx.waker().clone()));
        }
        if value.is_none() {
            match context.enter(|| body.as_mut().poll(cx)) {
                Poll::Pending => {}
                Poll::Ready(Ok(done)) => value = Some(Some(done)),
                Poll::Ready(Err(error)) => {
                    inner.first_error.borrow_mut().get_or_insert(error);
                    context.cancel();
                    value = Some(None);
                }
            }
        }
        let fibers_ended = inner.poll(cx);
        if !fibers_ended || value.is_none() {
            return Poll::Pending;
        }
        let error = inner.first_error.borrow_mut().take();
        match (error, value.take().flatten()) {
            (Some(error), _) => Poll::Ready(Err(error)),
            (None, Some(value)) => Poll::Ready(Ok(value)),
            (None, None) => Poll::Pending,
        }
    })
    .await
}

/// Lets the other fibers run and the worker take completions, before the caller goes on. For fibers that compute or
/// block while their operations are in flight.
///
/// ```
/// use ferry_io::{Error, Options, both, give_way, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let order = std::cell::RefCell::new(Vec::new());
///     let compute = async |fiber| {
///         order.borrow_mut().push(fiber);
///         give_way().await;
///         order.borrow_mut().push(fiber);
///         Ok::<(), Error>(())
///     };
///     both(compute(1), compute(2)).await?;
///     assert_eq!(*order.borrow(), [1, 2, 1, 2]);
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn give_way() {
    let mut has_given_way = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_given_way, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs both futures at once.
///
/// ```
/// use ferry_io::{Error, Options, both, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     let folder = io.open_dir("/proc/self".as_ref())?;
///     let (stat, listing) = both(folder.stat(), folder.list(None)).await?;
///     assert!(stat.links > 0 && !listing.entries.is_empty());
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of either; the other is cancelled and awaited.
pub async fn both<A, B, E>(
    a: impl Future<Output = Result<A, E>>,
    b: impl Future<Output = Result<B, E>>,
) -> Result<(A, B), E> {
    let span = event::open_scope(Opener::Join);
    let context = Context::child_of_scope(span.scope());
    let mut a = within(a, &context, span.scope());
    let mut b = within(b, &context, span.scope());
    let (mut done_a, mut done_b, mut first_error) = (None, None, None);
    std::future::poll_fn(move |cx| {
        // Twice: if the second fails, the first sees the cancellation in the next pass.
        for _ in 0..2 {
            if done_a.is_none()
                && let Poll::Ready(result) = Pin::new(&mut a).poll(cx)
            {
                done_a = Some(keep(result, &mut first_error, &context));
            }
            if done_b.is_none()
                && let Poll::Ready(result) = Pin::new(&mut b).poll(cx)
            {
                done_b = Some(keep(result, &mut first_error, &context));
            }
            if first_error.is_none() {
                break;
            }
        }
        match (&mut done_a, &mut done_b) {
            (Some(a), Some(b)) => match (first_error.take(), a.take(), b.take()) {
                (None, Some(a), Some(b)) => Poll::Ready(Ok((a, b))),
                (Some(error), _, _) => Poll::Ready(Err(error)),
                (None, _, _) => Poll::Pending,
            },
            _ => Poll::Pending,
        }
    })
    .await
}

/// One of two futures, as a fiber of this scope.
fn within<F: Future>(future: F, context: &Rc<Context>, scope: u32) -> Within<F> {
    Within { future: Box::pin(future), context: Rc::clone(context), branch: Branch::of(scope) }
}

fn keep<T, E>(result: Result<T, E>, first_error: &mut Option<E>, context: &Context) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            first_error.get_or_insert(error);
            context.cancel();
            None
        }
    }
}

/// Runs both futures at once and returns the result of the first to end; the other is cancelled and awaited.
///
/// ```
/// use std::time::Duration;
/// use ferry_io::{Error, Options, first, run, sleep};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let after = async |time: Duration| sleep(time).await.map(|()| time);
///     let short = first(after(Duration::from_secs(3600)), after(Duration::from_millis(1))).await?;
///     assert_eq!(short, Duration::from_millis(1));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn first<T>(a: impl Future<Output = T>, b: impl Future<Output = T>) -> T {
    let span = event::open_scope(Opener::Join);
    let (context_a, context_b) = (Context::child(), Context::child());
    let mut a = within(a, &context_a, span.scope());
    let mut b = within(b, &context_b, span.scope());
    let (mut ended_a, mut ended_b, mut winner) = (false, false, None);
    std::future::poll_fn(move |cx| {
        for _ in 0..2 {
            if !ended_a && let Poll::Ready(value) = Pin::new(&mut a).poll(cx) {
                ended_a = true;
                context_b.cancel();
                winner.get_or_insert(value);
            }
            if !ended_b && let Poll::Ready(value) = Pin::new(&mut b).poll(cx) {
                ended_b = true;
                context_a.cancel();
                winner.get_or_insert(value);
            }
        }
        match winner.take_if(|_| ended_a && ended_b) {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        }
    })
    .await
}

/// Runs `f` on every item, in order, with up to `max` at a time.
///
/// ```
/// use ferry_io::{Error, Name, Options, for_each, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     let folder = io.open_dir("/proc/self".as_ref())?;
///     for_each(2, [&b"stat"[..], b"status", b"maps"], async |name| {
///         let name = Name::new(name).expect("one component of a path");
///         println!("{name:?} has inode {}", folder.stat_entry(&name, false).await?.inode);
///         Ok::<(), Error>(())
///     })
///     .await?;
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error. No further item is begun, and running ones are cancelled and awaited.
///
/// # Panics
/// If `max` is zero.
pub async fn for_each<I, F, E>(max: usize, items: I, f: F) -> Result<(), E>
where
    I: IntoIterator,
    F: AsyncFn(I::Item) -> Result<(), E>,
{
    assert!(max > 0, "for_each needs room for at least one fiber");
    let mut items = items.into_iter();
    let span = event::open_scope(Opener::ForEach);
    let mut fibers = Fibers::new(Context::child_of_scope(span.scope()));
    let mut first_error = None;
    let mut exhausted = false;
    std::future::poll_fn(|cx| {
        loop {
            // Most items never wait, and without live fibers none can have been woken.
            while fibers.alive() > 0
                && let Some(ended) = fibers.poll_ready(cx)
            {
                note(ended, &mut first_error, &fibers);
            }
            if first_error.is_some() || exhausted || fibers.alive() >= max {
                break;
            }
            if worker::current().is_due() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Some(item) = items.next() else {
                exhausted = true;
                break;
            };
            if let Some(ended) = fibers.spawn(|| f(item)) {
                note(ended, &mut first_error, &fibers);
            }
        }
        if first_error.is_some() {
            // Cancelled fibers see it in the set's next pass.
            while let Some(ended) = fibers.poll_ready(cx) {
                note(ended, &mut first_error, &fibers);
            }
        }
        match (fibers.alive(), first_error.take_if(|_| fibers.alive() == 0)) {
            (0, Some(error)) => Poll::Ready(Err(error)),
            (0, None) => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    })
    .await
}

fn note<F: Future, E>(ended: Result<(), E>, first_error: &mut Option<E>, fibers: &Fibers<F>) {
    if let Err(error) = ended {
        first_error.get_or_insert(error);
        fibers.cancel();
    }
}

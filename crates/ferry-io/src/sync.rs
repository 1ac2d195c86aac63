//! Semaphores for the fibers of all workers, and bounded queues for the fibers of one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::cancel;
use crate::concurrent::atomic::{AtomicBool, Ordering};
use crate::concurrent::{Mutex, MutexGuard};
use crate::error::{Cause, Error, Operation, Result};
use crate::line::Line;
use crate::spare;

/// Wakers of fibers on the same worker. All are woken, because a single one may have been cancelled and would lose the
/// wake-up.
#[derive(Default)]
struct Waiting(RefCell<Vec<Waker>>);

impl Waiting {
    fn add(&self, cx: &Context<'_>) {
        let mut wakers = self.0.borrow_mut();
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
    }

    fn wake(&self) {
        for waker in self.0.take() {
            waker.wake();
        }
    }
}

/// A bounded number of permits, shared by the fibers of all workers.
///
/// ```
/// use ferry_io::{Error, Options, Permit, Semaphore, for_each, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let one_at_a_time = Semaphore::new(1);
///     for_each(4, 0..8, async |_| {
///         let permit: Permit<'_> = one_at_a_time.acquire().await?;
///         assert_eq!(one_at_a_time.free(), 0);
///         drop(permit);
///         Ok::<(), Error>(())
///     })
///     .await?;
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Semaphore {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<Permits>,
    /// Set if there are enough permits for workers to keep some.
    is_ample: bool,
    /// Set while a fiber waits: permits are not kept then.
    is_wanted: AtomicBool,
}

struct Permits {
    free: usize,
    line: Line,
}

impl Semaphore {
    /// A semaphore with `permits`.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        let state = Mutex::new(Permits { free: permits, line: Line::default() });
        let is_wanted = AtomicBool::new(false);
        Self { inner: Arc::new(Inner { state, is_ample: permits >= spare::AMPLE, is_wanted }) }
    }

    /// Waits for a permit, which is given back when dropped.
    ///
    /// # Errors
    /// If the scope is cancelled first.
    pub async fn acquire(&self) -> Result<Permit<'_>> {
        Acquire { semaphore: self, number: None }.await
    }

    /// Number of permits that no fiber holds and no other worker keeps.
    #[must_use]
    pub fn free(&self) -> usize {
        spare::give_back();
        self.inner.lock().free
    }
}

#[cfg(test)]
impl Semaphore {
    /// Number of permits that no fiber holds and no worker keeps.
    pub(crate) fn in_list(&self) -> usize {
        self.inner.lock().free
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Permits> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Acquire<'a> {
    semaphore: &'a Semaphore,
    /// The place in line, once it has waited.
    number: Option<u64>,
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<Permit<'a>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if cancel::is_cancelled() {
            return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
        }
        let inner = &self.semaphore.inner;
        if let Some(kept) = spare::take_permit(|spare| Arc::ptr_eq(&spare.inner, inner)) {
            return Poll::Ready(Ok(Permit::new(kept)));
        }
        let mut state = inner.lock();
        if state.free == 0 {
            inner.is_wanted.store(true, Ordering::Relaxed);
            state.line.join(&mut self.number, cx.waker());
            return Poll::Pending;
        }
        state.free -= 1;
        Poll::Ready(Ok(Permit::new(Spare { inner: Arc::clone(inner) })))
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let inner = &self.semaphore.inner;
        let mut state = inner.lock();
        let is_free = state.free > 0;
        let next = state.line.leave(number, is_free);
        inner.is_wanted.store(!state.line.is_empty(), Ordering::Relaxed);
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// One permit of a [`Semaphore`].
pub struct Permit<'a> {
    owned: Option<Spare>,
    semaphore: PhantomData<&'a Semaphore>,
}

impl Permit<'_> {
    fn new(spare: Spare) -> Self {
        Self { owned: Some(spare), semaphore: PhantomData }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let may_keep = |spare: &Spare| spare.inner.is_ample && !spare.inner.is_wanted.load(Ordering::Relaxed);
        if let Some(spare) = self.owned.take_if(|spare| may_keep(spare)) {
            drop(spare::keep_permit(spare));
        }
    }
}

/// An unused permit, which goes back to its semaphore when dropped.
pub(crate) struct Spare {
    inner: Arc<Inner>,
}

impl Spare {
    /// Returns true if both are permits of one semaphore.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        let next = {
            let mut state = self.inner.lock();
            state.free += 1;
            let next = state.line.next();
            self.inner.is_wanted.store(!state.line.is_empty(), Ordering::Relaxed);
            next
        };
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// A bounded queue: adding to a full one waits, as does taking from an empty one.
///
/// ```
/// use ferry_io::{Error, Options, Queue, both, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let queue = Queue::new(2);
///     assert_eq!(queue.try_push(0), Ok(()));
///     let produce = async {
///         for item in 1..5 {
///             queue.push(item).await?;
///         }
///         queue.close();
///         Ok::<(), Error>(())
///     };
///     let consume = async {
///         let mut sum = 0;
///         while let Some(item) = queue.pop().await? {
///             sum += item;
///         }
///         Ok(sum)
///     };
///     let ((), sum) = both(produce, consume).await?;
///     assert_eq!((sum, queue.len(), queue.is_empty()), (10, 0, true));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queue<T> {
    items: RefCell<VecDeque<T>>,
    most: usize,
    closed: Cell<bool>,
    changed: Waiting,
}

impl<T> Queue<T> {
    /// An empty queue for up to `most` items.
    ///
    /// # Panics
    /// If `most` is zero.
    #[must_use]
    pub fn new(most: usize) -> Self {
        assert!(most > 0, "a queue needs room for at least one item");
        Self { items: RefCell::default(), most, closed: Cell::new(false), changed: Waiting::default() }
    }

    /// Adds an item if there is room.
    ///
    /// # Errors
    /// The item, if the queue is full or closed.
    pub fn try_push(&self, item: T) -> std::result::Result<(), T> {
        let mut items = self.items.borrow_mut();
        if items.len() >= self.most || self.closed.get() {
            return Err(item);
        }
        items.push_back(item);
        drop(items);
        self.changed.wake();
        Ok(())
    }

    /// Waits for room and adds an item.
    ///
    /// # Errors
    /// If the scope is cancelled first, or the queue is closed ([`Cause::Closed`]). The item is dropped.
    pub async fn push(&self, item: T) -> Result<()> {
        let mut item = Some(item);
        std::future::poll_fn(|cx| {
            if cancel::is_cancelled() {
                return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
            }
            if self.closed.get() {
                return Poll::Ready(Err(Error { operation: Operation::Wait, cause: Cause::Closed }));
            }
            match item.take().map(|item| self.try_push(item)) {
                Some(Err(refused)) => {
                    item = Some(refused);
                    self.changed.add(cx);
                    Poll::Pending
                }
                Some(Ok(())) | None => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// Waits for the oldest item and takes it; `None` once the queue is closed and empty.
    ///
    /// # Errors
    /// If the scope is cancelled first.
    pub async fn pop(&self) -> Result<Option<T>> {
        std::future::poll_fn(|cx| {
            if cancel::is_cancelled() {
                return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
            }
            let item = self.items.borrow_mut().pop_front();
            if item.is_some() {
                self.changed.wake();
                return Poll::Ready(Ok(item));
            }
            if self.closed.get() {
                return Poll::Ready(Ok(None));
            }
            self.changed.add(cx);
            Poll::Pending
        })
        .await
    }

    /// Closes the queue to further items.
    pub fn close(&self) {
        self.closed.set(true);
        self.changed.wake();
    }

    /// Number of items in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.borrow().len()
    }

    /// Returns true if the queue holds no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;

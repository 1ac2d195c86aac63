//! A set of fibers of one scope: polled once when spawned, then whenever they are woken.
//!
//! Used by `scope.rs` and `jobs.rs`. A fiber that never waits costs no queue entry, no waker and no allocation, because
//! its slot is used again at once. Fibers live inside the future that owns the set: they may borrow from it, and none
//! outlives it. All fibers of a slot share one waker; a wake-up meant for an earlier one causes a spurious poll, which
//! futures allow.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use crate::cancel::Context;
use crate::concurrent::atomic::{AtomicBool, Ordering};
use crate::concurrent::{Mutex, MutexGuard};
use crate::event;

/// The fibers of a set that are to be polled; wakers reach it from any thread.
#[derive(Default)]
struct Ready {
    indices: Mutex<Vec<usize>>,
    parent: Mutex<Option<Waker>>,
}

struct FiberWaker {
    index: usize,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for FiberWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        self.ready.indices.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
        let parent = self.ready.parent.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

struct Slot<F> {
    fiber: Pin<Box<Option<F>>>,
    signal: Arc<FiberWaker>,
    waker: Waker,
    number: u32,
}

/// Fibers that share a cancellation context.
///
/// ```
/// use std::task::Poll;
/// use std::time::Duration;
/// use ferry_io::{Error, Fibers, Options, run, sleep};
///
/// let (outcome, _stats) = run(&Options::default(), async |_io| {
///     let wait = async |millis: u64| sleep(Duration::from_millis(millis)).await.map(|()| millis);
///     let mut fibers = Fibers::detached();
///     assert!(fibers.spawn(|| wait(1)).is_none(), "it waits");
///     let ended = std::future::poll_fn(|cx| fibers.poll_ready(cx).map_or(Poll::Pending, Poll::Ready)).await;
///     assert_eq!((ended?, fibers.alive()), (1, 0));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fibers<F> {
    slots: Vec<Slot<F>>,
    free: Vec<usize>,
    alive: usize,
    ready: Arc<Ready>,
    context: Rc<Context>,
    /// Set once every fiber has been polled after the cancellation.
    swept: bool,
}

impl<F: Future> Fibers<F> {
    /// An empty set whose fibers are cancelled with `context`.
    pub(crate) fn new(context: Rc<Context>) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), alive: 0, ready: Arc::default(), context, swept: false }
    }

    /// An empty set outside every scope: only its owner polls or drops its fibers.
    #[must_use]
    pub fn detached() -> Self {
        Self::new(Context::detached())
    }

    /// Number of fibers that have not ended.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.alive
    }

    pub(crate) fn cancel(&self) {
        self.context.cancel();
    }

    /// Calls `fiber` for a future, adds it as a fiber and polls it once. Returns its output if it ended in that poll;
    /// otherwise [`Fibers::poll_ready`] returns it later.
    pub fn spawn(&mut self, fiber: impl FnOnce() -> F) -> Option<F::Output> {
        let index = self.free.pop().unwrap_or_else(|| self.add_slot());
        let slot = &mut self.slots[index];
        slot.number = event::begin_fiber(self.context.scope());
        slot.fiber.set(Some(fiber()));
        self.alive += 1;
        self.poll_slot(index)
    }

    /// Polls woken fibers until one ends. Returns `None` when none is left to poll; the next wake-up then wakes `cx`.
    pub fn poll_ready(&mut self, cx: &TaskContext<'_>) -> Option<F::Output> {
        self.sweep_if_cancelled();
        // Fibers woken during this pass wait for the next, so that a fiber that gives way lets the others run.
        let woken = std::mem::take(&mut *self.lock_ready());
        let mut woken = woken.into_iter();
        while let Some(index) = woken.next() {
            self.slots[index].signal.queued.store(false, Ordering::Release);
            if let Some(output) = self.poll_slot(index) {
                // The rest stays woken, ahead of those woken meanwhile.
                let mut indices = self.lock_ready();
                let later = std::mem::take(&mut *indices);
                indices.extend(woken.chain(later));
                return Some(output);
            }
        }
        self.watch(cx);
        None
    }

    fn watch(&self, cx: &TaskContext<'_>) {
        let mut parent = self.ready.parent.lock().unwrap_or_else(PoisonError::into_inner);
        if !parent.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *parent = Some(cx.waker().clone());
        }
        drop(parent);
        if !self.lock_ready().is_empty() {
            cx.waker().wake_by_ref();
        }
    }

    fn sweep_if_cancelled(&mut self) {
        if self.swept || !self.context.is_cancelled() {
            return;
        }
        self.swept = true;
        for slot in &self.slots {
            if slot.fiber.is_some() {
                slot.waker.wake_by_ref();
            }
        }
    }

    fn poll_slot(&mut self, index: usize) -> Option<F::Output> {
        let slot = &mut self.slots[index];
        let mut fiber = slot.fiber.as_mut();
        let running = fiber.as_mut().as_pin_mut()?;
        let mut cx = TaskContext::from_waker(&slot.waker);
        let number = slot.number;
        let polled = {
            let _running = event::run_fiber(number);
            self.context.enter(|| running.poll(&mut cx))
        };
        match polled {
            Poll::Pending => None,
            Poll::Ready(output) => {
                fiber.set(None);
                event::end_fiber(number);
                self.free.push(index);
                self.alive -= 1;
                Some(output)
            }
        }
    }

    fn add_slot(&mut self) -> usize {
        let index = self.slots.len();
        let signal =
            Arc::new(FiberWaker { index, queued: AtomicBool::new(false), ready: Arc::clone(&self.ready) });
        let waker = Waker::from(Arc::clone(&signal));
        self.slots.push(Slot { fiber: Box::pin(None), signal, waker, number: 0 });
        index
    }

    fn lock_ready(&self) -> MutexGuard<'_, Vec<usize>> {
        self.ready.indices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Drop for Fibers<F> {
    fn drop(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.number != 0 && slot.fiber.is_some()) {
            slot.fiber.set(None);
            event::end_fiber(slot.number);
        }
    }
}

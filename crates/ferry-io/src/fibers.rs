//! A set of fibers of one scope: polled once where they are spawned, then whenever they are woken.
//!
//! Used by `scope.rs` and `jobs.rs`. A fiber that never waits costs no queue, no waker and no allocation: its slot is
//! used again for the next. Fibers live inside the future that owns the set, so they may borrow what it borrows, and
//! none outlives it. Each slot has one waker for all the fibers it ever holds; a wake meant for an earlier one is a
//! spurious poll, which futures allow.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use crate::cancel::Context;
use crate::concurrent::atomic::{AtomicBool, Ordering};
use crate::concurrent::{Mutex, MutexGuard};
use crate::event;

/// Which fibers of a set are to be polled; reached by wakers from any thread.
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
    /// The fiber's number in a recording, or 0.
    number: u32,
}

/// Fibers that share a cancellation context.
pub(crate) struct Fibers<F> {
    slots: Vec<Slot<F>>,
    free: Vec<usize>,
    alive: usize,
    ready: Arc<Ready>,
    context: Rc<Context>,
    /// Whether every fiber has been told of the cancellation.
    swept: bool,
}

impl<F: Future> Fibers<F> {
    /// An empty set whose fibers are cancelled with `context`.
    pub(crate) fn new(context: Rc<Context>) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), alive: 0, ready: Arc::default(), context, swept: false }
    }

    /// Fibers that have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.alive
    }

    pub(crate) fn cancel(&self) {
        self.context.cancel();
    }

    /// Adds a fiber and polls it; its output if it has ended already.
    pub(crate) fn spawn(&mut self, fiber: impl FnOnce() -> F) -> Option<F::Output> {
        let index = self.free.pop().unwrap_or_else(|| self.add_slot());
        let slot = &mut self.slots[index];
        slot.number = event::begin_fiber(self.context.scope());
        slot.fiber.set(Some(fiber()));
        self.alive += 1;
        self.poll_slot(index)
    }

    /// Polls fibers that were woken until one ends; `None` when none is left to poll, and then `cx` is told of the
    /// next one that is woken.
    pub(crate) fn poll_ready(&mut self, cx: &TaskContext<'_>) -> Option<F::Output> {
        self.sweep_if_cancelled();
        // Those woken while this pass runs wait for the next: a fiber that gives way lets the others run.
        let woken = std::mem::take(&mut *self.lock_ready());
        let mut woken = woken.into_iter();
        while let Some(index) = woken.next() {
            self.slots[index].signal.queued.store(false, Ordering::Release);
            if let Some(output) = self.poll_slot(index) {
                // The rest stays woken, before those that were woken meanwhile.
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
    /// Fibers that are dropped before their end have ended, too.
    fn drop(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.number != 0 && slot.fiber.is_some()) {
            slot.fiber.set(None);
            event::end_fiber(slot.number);
        }
    }
}

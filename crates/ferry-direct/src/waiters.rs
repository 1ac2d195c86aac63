//! Fibers that wait for a request of one direct file, woken all together by each completion.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Waiting fibers. Each checks for itself what has changed.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<Vec<Waker>>);

impl Waiters {
    pub(crate) fn add(&self, waker: &Waker) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    pub(crate) fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in waiting {
            waker.wake();
        }
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

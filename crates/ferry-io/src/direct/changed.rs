//! Who waits for something of a direct file to change; woken by whatever completes.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Fibers that wait. Everyone is woken, and looks for itself.
#[derive(Default)]
pub(super) struct Changed(Mutex<Vec<Waker>>);

impl Changed {
    pub(super) fn join(&self, waker: &Waker) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    pub(super) fn tell(&self) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for waker in waiting {
            waker.wake();
        }
    }
}

impl Wake for Changed {
    fn wake(self: Arc<Self>) {
        self.tell();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.tell();
    }
}

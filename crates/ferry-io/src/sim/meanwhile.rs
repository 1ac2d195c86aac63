//! Events from outside a program: other processes change its files, or its user stops it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

use super::World;

type Deed = Box<dyn FnOnce(&World) + Send>;

/// Planned events, and the last run's stop flag.
#[derive(Default)]
pub(super) struct Meanwhile {
    plan: Mutex<Plan>,
    stop: Mutex<Weak<AtomicBool>>,
}

#[derive(Default)]
struct Plan {
    /// Number of calls made in this world.
    calls: u64,
    deeds: Vec<(u64, Deed)>,
}

impl Meanwhile {
    /// Plans a deed for the time just before the `calls`-th call from now.
    pub(super) fn plan(&self, calls: u64, deed: Deed) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let at = plan.calls + calls;
        plan.deeds.push((at, deed));
    }

    /// Returns the number of calls made so far.
    pub(super) fn calls(&self) -> u64 {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    /// Counts a call and returns the deeds due before it.
    pub(super) fn due(&self) -> Vec<Deed> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.calls += 1;
        let now = plan.calls;
        plan.deeds.extract_if(.., |(at, _)| *at <= now).map(|(_, deed)| deed).collect()
    }

    pub(super) fn watch(&self, stop: Weak<AtomicBool>) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = stop;
    }

    /// Stops the run, as a signal does.
    pub(super) fn stop(&self) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        stop.iter().for_each(|stop| stop.store(true, Ordering::SeqCst));
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meanwhile").finish_non_exhaustive()
    }
}

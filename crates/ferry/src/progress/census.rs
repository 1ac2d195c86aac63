//! Counting the work ahead of a copy, so that a percentage appears early.
//!
//! A thread of its own lists the sources once progress is shown and the copy has taken [`COUNT_DELAY`]. The first pass lists
//! everything, and examines all of the first [`FIRST`] files, then one in 16: with more files the bytes are an
//! estimate. Then a second pass at the lowest priority examines every file. What either reads from the device the copy then
//! finds in memory. What can't be listed counts as nothing, because the copy will report it.
//!
//! An entry counts if the copy takes it (`ferry_sync::preview` for a sync). Bytes of files that stay as they are do not
//! count. A file of the target that was made since the run began counts as moved, and so does one that `cp -u` has
//! overwritten since.
//!
//! The count is given up for trees with too many folders at once ([`MOST`]), or with paths that are too long to be opened
//! at once: then the copy's own walk finds the number of entries.
//!
//! Limits: entries that appear after they were counted are missing. Of files with several names, beyond [`MOST`] of
//! them, each name counts. Files that `ferry sync --inplace` has overwritten by the second pass count as equal, and so do
//! files that an earlier run has left incomplete, if only their oldest time or a mark tells so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use super::{All, COUNT_DELAY};
use crate::output::lock;
pub(crate) use plan::{Plan, Root, Stays};
use tree::Counter;

mod plan;
#[cfg(test)]
mod tests;
mod tree;

/// Maximum number of folders that wait to be listed, and of files with several names that are remembered.
const MOST: usize = 1 << 16;
/// Number of files that are all examined in the first pass.
const FIRST: u64 = 4096;
/// The lowest priority (setpriority(2)).
const IDLE: i32 = 19;

/// A count that begins when it is asked for, after [`COUNT_DELAY`].
pub(crate) struct Census {
    plan: Arc<Plan>,
    begun: Instant,
    /// Time of the clock that files get their times from.
    since: SystemTime,
    state: OnceLock<Arc<State>>,
}

#[derive(Default)]
struct State {
    all: Mutex<Option<All>>,
    stops: AtomicBool,
}

impl Census {
    pub(crate) fn new(plan: Plan) -> Self {
        // Files get the time of the last tick of the kernel's clock, at most 10 ms ago.
        let since = SystemTime::now() - Duration::from_millis(10);
        Self { plan: Arc::new(plan), begun: Instant::now(), since, state: OnceLock::new() }
    }

    /// Returns all work, once it is counted or estimated. The first call after [`COUNT_DELAY`] begins to count.
    pub(crate) fn all(&self) -> Option<All> {
        if self.begun.elapsed() < COUNT_DELAY {
            return None;
        }
        let state = self.state.get_or_init(|| {
            let state = Arc::new(State::default());
            let (counting, plan, since) = (Arc::clone(&state), Arc::clone(&self.plan), self.since);
            let count = move || counting.count(&plan, since, (MOST, FIRST));
            // Progress is optional: a thread that cannot start is no error.
            std::thread::Builder::new().name("ferry-count".into()).spawn(count).ok();
            state
        });
        *lock(&state.all)
    }
}

impl Drop for Census {
    fn drop(&mut self) {
        if let Some(state) = self.state.get() {
            state.stops.store(true, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Counts everything, unless it is stopped or given up.
    fn count(&self, plan: &Plan, since: SystemTime, (most, first): (usize, u64)) {
        let pass = |first: u64| {
            let all = Counter::new(plan, since, &self.stops, (most, first)).count()?;
            *lock(&self.all) = Some(all);
            Some(all)
        };
        if pass(first).is_some_and(|all| all.is_estimate) {
            let thread = Some(rustix::thread::gettid());
            rustix::process::setpriority_process(thread, IDLE).ok();
            pass(u64::MAX);
        }
    }
}

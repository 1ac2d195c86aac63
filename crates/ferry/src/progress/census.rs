//! Counting the work ahead of a copy, so that a percentage appears early.
//!
//! A thread of its own lists the sources once progress is shown and the copy has taken [`DELAY`]. The first pass lists
//! everything, and examines all of the first [`FIRST`] files, then one in [`EVERY`]: with more files the bytes are an
//! estimate. Then a second pass at the lowest priority examines every file. What either reads from the device the copy then
//! finds in memory. What can't be listed counts as nothing, because the copy will report it.
//!
//! The same entries count that the copy takes ([`Preview`] for `ferry sync`), and no bytes of files that stay as they
//! are. A file of the target that was made since the run began counts as moved.
//!
//! The count is given up for trees with too many folders at once ([`MOST`]), or with paths that are too long to be opened
//! at once: then the copy's own walk finds the number of entries.
//!
//! Limits: entries that appear after they were counted are missing. Of files with several names, beyond [`MOST`] of
//! them, each name counts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use ferry_sync::preview::Preview;

use super::All;
use crate::output::lock;
use tree::Counter;

#[cfg(test)]
mod tests;
mod tree;

/// Maximum number of folders that wait to be listed, and of files with several names that are remembered.
const MOST: usize = 1 << 16;
/// Number of files that are all examined in the first pass.
const FIRST: u64 = 4096;
/// Of the files after these, the first pass examines one in so many.
const EVERY: u64 = 16;
/// The lowest priority (setpriority(2)).
const IDLE: i32 = 19;
/// Time before the count begins: shorter copies are not slowed down.
pub(super) const DELAY: Duration = Duration::from_millis(500);

/// What is counted.
#[derive(Default)]
pub(crate) struct Plan {
    /// Entries to count, with all that is in them.
    pub(crate) roots: Vec<Root>,
    /// Set if links among the roots are followed.
    pub(crate) follows: bool,
    /// Set if sizes of files are added up.
    pub(crate) sizes: bool,
    /// Set if a file with several names counts once.
    pub(crate) links: bool,
    /// Set if folders on other filesystems are not entered.
    pub(crate) one_filesystem: bool,
    /// Files of the target that stay as they are: their bytes do not count.
    pub(crate) stays: Stays,
    /// Decides which entries of a sync take part. The root itself does not count.
    pub(crate) preview: Option<Preview>,
}

/// An entry to count, and its place in the target.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
}

/// Files of the target that stay as they are, without their content being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stays {
    #[default]
    None,
    /// Every file.
    Existing,
    /// Files that are not older than their source.
    NotOlder,
    /// Files that the preview says are equal to their source.
    Equal,
}

/// A count that begins when it is asked for, after [`DELAY`].
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

    /// Returns all work, once it is counted or estimated. The first call after [`DELAY`] begins to count.
    pub(crate) fn all(&self) -> Option<All> {
        if self.begun.elapsed() < DELAY {
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

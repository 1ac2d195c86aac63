//! Counting the work ahead of a copy, so that a percentage appears early.
//!
//! A thread of its own lists the sources once progress is shown and the copy has taken [`DELAY`], at the lowest
//! priority: it takes the time that the copy leaves, and what it reads from the device the copy then finds in memory. It
//! holds one descriptor. What can't be listed counts as nothing, because the copy will report it.
//!
//! A total is known only when all is counted. It is given up for trees with too many folders at once ([`MOST`]), or with
//! paths that are too long to be opened at once: then the copy's own walk finds the number of entries.
//!
//! Limits: entries that appear after they were counted are missing. Of files with several names, beyond [`MOST`] of
//! them, each name counts.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::Errno;

use super::All;

#[cfg(test)]
mod tests;

/// Maximum number of folders that wait to be listed, and of files with several names that are remembered.
const MOST: usize = 1 << 16;
/// The lowest priority (setpriority(2)).
const IDLE: i32 = 19;
/// Time before the count begins: shorter copies are not slowed down.
const DELAY: Duration = Duration::from_millis(500);

/// What is counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Paths to count, with all that is in them.
    pub(crate) roots: Vec<PathBuf>,
    /// Set if links among the roots are followed.
    pub(crate) follows: bool,
    /// Set if sizes of files are added up.
    pub(crate) sizes: bool,
    /// Set if a file with several names counts once.
    pub(crate) links: bool,
    /// Set if folders on other filesystems are not entered.
    pub(crate) one_filesystem: bool,
}

/// A count that begins when it is first asked for.
pub(crate) struct Census {
    plan: Plan,
    state: OnceLock<Arc<State>>,
}

#[derive(Default)]
struct State {
    entries: AtomicU64,
    bytes: AtomicU64,
    is_complete: AtomicBool,
    stops: AtomicBool,
}

impl Census {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, state: OnceLock::new() }
    }

    /// Returns all work, once it is counted. The first call begins to count.
    pub(crate) fn all(&self) -> Option<All> {
        let state = self.state.get_or_init(|| {
            let state = Arc::new(State::default());
            let (counting, plan) = (Arc::clone(&state), self.plan.clone());
            let count = move || {
                let thread = Some(rustix::thread::gettid());
                rustix::process::setpriority_process(thread, IDLE).ok();
                std::thread::sleep(DELAY);
                counting.count(&plan, MOST);
            };
            // Progress is optional: a thread that cannot start is no error.
            std::thread::Builder::new().name("ferry-count".into()).spawn(count).ok();
            state
        });
        state.all(self.plan.sizes)
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
    fn all(&self, sizes: bool) -> Option<All> {
        let is_complete = self.is_complete.load(Ordering::Acquire);
        let bytes = sizes.then(|| self.bytes.load(Ordering::Relaxed));
        is_complete.then(|| All { entries: self.entries.load(Ordering::Relaxed), bytes })
    }

    /// Counts everything, unless it is stopped or given up.
    fn count(&self, plan: &Plan, most: usize) {
        let mut seen = HashSet::new();
        for root in &plan.roots {
            let found = if plan.follows { fs::metadata(root) } else { fs::symlink_metadata(root) };
            let Ok(found) = found else { continue };
            self.entries.fetch_add(1, Ordering::Relaxed);
            if !found.is_dir() {
                self.add(&found, plan, &mut seen, most);
            } else if !self.count_tree(root, found.dev(), plan, &mut seen, most) {
                return;
            }
        }
        self.is_complete.store(true, Ordering::Release);
    }

    /// Counts what is in a folder. Returns false if it is stopped or given up.
    fn count_tree(
        &self,
        root: &Path,
        device: u64,
        plan: &Plan,
        seen: &mut HashSet<(u64, u64)>,
        most: usize,
    ) -> bool {
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG) => return false,
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                if self.stops.load(Ordering::Relaxed) {
                    return false;
                }
                self.entries.fetch_add(1, Ordering::Relaxed);
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    let is_other = plan.one_filesystem && entry.metadata().is_ok_and(|it| it.dev() != device);
                    if folders.len() == most {
                        return false;
                    }
                    if !is_other {
                        folders.push(entry.path());
                    }
                } else if plan.sizes
                    && kind.is_file()
                    && let Ok(found) = entry.metadata()
                {
                    self.add(&found, plan, seen, most);
                }
            }
        }
        true
    }

    fn add(&self, found: &Metadata, plan: &Plan, seen: &mut HashSet<(u64, u64)>, most: usize) {
        let is_again = plan.links
            && found.nlink() > 1
            && (seen.contains(&(found.dev(), found.ino()))
                || seen.len() < most && !seen.insert((found.dev(), found.ino())));
        if found.is_file() && !is_again {
            self.bytes.fetch_add(found.len(), Ordering::Relaxed);
        }
    }
}

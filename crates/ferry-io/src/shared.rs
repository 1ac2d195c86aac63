//! What the workers of one runtime have in common.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::buffers::Blocks;
use crate::error::SetupError;
use crate::options::{Backend, Options};
use crate::pool::Pool;
use crate::sim::Sim;
use crate::stats::{Counters, Stats};

/// Descriptors kept for what is not an operation: standard streams, rings, eventfds, the caller's own files.
const RESERVED_DESCRIPTORS: u64 = 12;
/// Two open folders and two open files.
const LEAST_DESCRIPTORS: u64 = 4;

/// One runtime.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) pool: Arc<Pool>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) sim: Option<Arc<Sim>>,
    /// Cancels everything, from any thread.
    pub(crate) stop: Arc<AtomicBool>,
    descriptors: usize,
    workers: AtomicUsize,
    awake: AtomicUsize,
    stats: Mutex<Stats>,
}

impl Shared {
    pub(crate) fn open(options: &Options) -> Result<Arc<Self>, SetupError> {
        options.check()?;
        let blocks = Blocks::map(options.blocks.max(options.workers.get()), options.block_size)?;
        let sim = match options.backend {
            Backend::Sim { seed } => Some(Sim::new(seed)),
            Backend::Auto | Backend::Uring | Backend::Posix => None,
        };
        let mut stats = Stats::default();
        match options.backend {
            Backend::Auto => {
                stats.backend = "auto";
                "nothing had to wait, so no ring was set up".clone_into(&mut stats.backend_reason);
            }
            Backend::Uring => stats.backend = "uring",
            Backend::Posix => {
                stats.backend = "posix";
                "as --backend says".clone_into(&mut stats.backend_reason);
            }
            Backend::Sim { .. } => stats.backend = "sim",
        }
        Ok(Arc::new(Self {
            pool: Pool::new(options.pool_threads),
            blocks,
            sim,
            stop: Arc::default(),
            descriptors: descriptor_budget()?,
            workers: AtomicUsize::new(options.workers.get()),
            awake: AtomicUsize::new(0),
            stats: Mutex::new(stats),
            options: options.clone(),
        }))
    }

    /// Whether a ring may be tried.
    pub(crate) fn may_have_ring(&self) -> bool {
        matches!(self.options.backend, Backend::Auto | Backend::Uring)
    }

    /// Notes that a ring was set up, and what had to be left out.
    pub(crate) fn note_ring(&self, reason: String) {
        let mut stats = self.lock();
        stats.backend = "uring";
        stats.backend_reason = reason;
    }

    /// Notes that none could be.
    pub(crate) fn note_no_ring(&self, error: &SetupError) {
        let mut stats = self.lock();
        stats.backend = "posix";
        stats.backend_reason = error.to_string();
    }

    /// Descriptors that operations may hold at a time, all workers together.
    pub(crate) fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// Workers at most.
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// Workers that run now.
    pub(crate) fn awake_workers(&self) -> usize {
        self.awake.load(Ordering::Relaxed)
    }

    /// A worker begins to run.
    pub(crate) fn wake_one(&self) {
        self.awake.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker sleeps or ends.
    pub(crate) fn rest_one(&self) {
        self.awake.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn limit_workers(&self, most: usize) {
        self.workers.fetch_min(most.max(1), Ordering::Relaxed);
    }

    pub(crate) fn add_stats(&self, counters: &Counters) {
        self.lock().add(counters);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The totals of the workers that have ended, and of the pool.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.lock().clone();
        stats.system_calls += self.pool.calls();
        stats.pool_threads = self.pool.started();
        stats
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Raises the soft limit of open files to the hard one, and says how many operations may use.
fn descriptor_budget() -> Result<usize, SetupError> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised.clone()).is_ok() {
            limit = raised;
        }
    }
    let limit = limit.current.unwrap_or(u64::MAX);
    let needed = RESERVED_DESCRIPTORS + LEAST_DESCRIPTORS;
    if limit < needed {
        return Err(SetupError::FewDescriptors { limit, needed });
    }
    Ok(usize::try_from(limit - RESERVED_DESCRIPTORS).unwrap_or(usize::MAX))
}

//! The state of one run, shared by its workers, and the run's share of the process's descriptors.
//!
//! Protocol. Everything here is either constant during the run or changed by atomic operations and short locks; nothing
//! here is waited for, so nothing here wakes a worker. `stop` is set once, by [`crate::Io::stop`], a signal handler or
//! a panic, and never cleared. Workers do not wait for it: each looks at it before it polls, and sleeps at most 50 ms
//! until it has seen it set (`task.rs`). Setting it therefore needs no wake-up, which a signal handler could not give.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::buffers::Blocks;
use crate::error::SetupError;
use crate::event::{self, Clock, Handovers, Recording};
use crate::options::{Backend, Options, RingFlag, RouteChoice, StopHandle};
use crate::pool::Pool;
use crate::ring;
use crate::signals::Signals;
use crate::sim::Sim;
use crate::stats::{Counters, Stats};

/// Descriptors reserved besides those open at the start: for the first ring, and for the caller.
const RESERVED_DESCRIPTORS: u64 = 9;
/// Descriptors open at the start if their number is unknown.
const STANDARD_STREAMS: u64 = 3;
/// The ring and its inbox's eventfd.
const DESCRIPTORS_OF_RING: usize = 2;
/// Inverse share of the descriptors that the kernel's side of a recording may use; it is left out if it needs more.
const PART_OF_RECORDING: usize = 4;
/// Two open folders and two open files.
const LEAST_DESCRIPTORS: u64 = 4;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) pool: Arc<Pool>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) sim: Option<Arc<Sim>>,
    /// Cancels the run, from any thread.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) signals: Signals,
    pub(crate) recording: Option<Arc<Recording>>,
    descriptors: usize,
    /// Number of rings that may still be opened.
    rings: AtomicUsize,
    handovers: Option<Handovers>,
    workers: AtomicUsize,
    most_workers: usize,
    totals: Mutex<Totals>,
}

struct Totals {
    stats: Stats,
    /// Parts of the reason for the backend, each listed once.
    reasons: Vec<String>,
    rings: Rings,
}

/// The workers' experience with rings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rings {
    /// No worker has tried to open one.
    Untried,
    /// One was opened, or is required.
    Open,
    /// None could be opened, or none is to be.
    None,
}

impl Shared {
    pub(crate) fn open(options: &Options) -> Result<Arc<Self>, SetupError> {
        options.check()?;
        let blocks = Blocks::map(options.blocks.max(options.workers.get()), options.block_size)?;
        let stop = options.embedded.as_ref().map_or_else(Arc::default, StopHandle::flag);
        let sim = options.sim.as_ref().map(Sim::new);
        let mut descriptors = match &sim {
            Some(sim) => {
                sim.watch(&blocks, &stop);
                budget_within(sim.descriptors() as u64, STANDARD_STREAMS)?
            }
            None => descriptor_budget(options.embedded.is_none())?,
        };
        // After the options have been checked: a refused run leaves no file behind.
        let threads = options.workers.get() + options.pool_threads;
        let clock = sim.clone().map(|sim| -> Arc<dyn Clock> { sim });
        let recording =
            Recording::begin(options.trace.as_ref(), threads, clock, descriptors / PART_OF_RECORDING)?;
        descriptors -= recording.as_ref().map_or(0, |recording| recording.descriptors_of_kernel());
        // At most half of the descriptors go to rings; further workers do without one.
        let has_rings = sim.is_none() && options.backend != Backend::Posix;
        let rings = if has_rings { options.workers.get() - 1 } else { 0 };
        let rings = rings.min(descriptors / 2 / DESCRIPTORS_OF_RING);
        descriptors -= rings * DESCRIPTORS_OF_RING;
        let pool = Pool::new(options.pool_threads, recording.clone(), sim.clone());
        if let Some(sim) = &sim {
            sim.serve(&pool);
        }
        Ok(Arc::new(Self {
            pool,
            blocks,
            sim,
            stop,
            signals: Signals::default(),
            recording,
            descriptors,
            rings: AtomicUsize::new(1 + rings),
            handovers: options.observe.then(event::count_handovers).flatten(),
            workers: AtomicUsize::new(options.workers.get()),
            most_workers: options.workers.get(),
            totals: Mutex::new(Totals::of(options)),
            options: options.clone(),
        }))
    }

    pub(crate) fn may_have_ring(&self) -> bool {
        match &self.sim {
            Some(sim) => sim.has_ring(),
            None => self.options.backend != Backend::Posix,
        }
    }

    /// Notes a worker's ring, its description in parts, and the flags that it lacks.
    pub(crate) fn note_ring(&self, description: Vec<String>, left_out: &[RingFlag]) {
        let Totals { stats, reasons, rings } = &mut *self.lock();
        match rings {
            Rings::Open => description.into_iter().for_each(|part| add_once(reasons, part)),
            Rings::None => {
                let refused = std::mem::replace(reasons, description).join("; ");
                add_once(reasons, format!("not on every worker: {refused}"));
            }
            Rings::Untried => *reasons = description,
        }
        left_out.iter().for_each(|flag| add_once(&mut stats.ring_flags_left_out, *flag));
        (stats.backend, *rings) = ("uring", Rings::Open);
    }

    pub(crate) fn note_no_ring(&self, error: &SetupError) {
        let reason = reason_of(error);
        let Totals { stats, reasons, rings } = &mut *self.lock();
        match rings {
            Rings::Open => add_once(reasons, format!("not on every worker: {reason}")),
            Rings::None => add_once(reasons, reason),
            Rings::Untried => {
                (stats.backend, *rings) = ("posix", Rings::None);
                *reasons = vec![reason];
            }
        }
    }

    pub(crate) fn descriptors(&self) -> usize {
        self.descriptors
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn limit_workers(&self, most: usize) {
        self.workers.store(most.clamp(1, self.most_workers), Ordering::Relaxed);
    }

    pub(crate) fn add_stats(&self, counters: &Counters) {
        self.lock().stats.add(counters);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Totals of the pool and of the workers that have ended.
    pub(crate) fn stats(&self) -> Stats {
        let (mut stats, rings) = {
            let totals = self.lock();
            let mut stats = totals.stats.clone();
            stats.backend_reason = totals.reasons.join("; ");
            (stats, totals.rings)
        };
        stats.system_calls += self.pool.calls();
        stats.signal = self.signals.which();
        stats.pool_threads = self.pool.started();
        stats.kernel_worker_handovers = self.handovers.as_ref().and_then(|count| count.so_far().ok());
        if (self.options.observe || self.recording.is_some()) && rings == Rings::Untried {
            (stats.backend, stats.backend_reason) = self.backend_not_needed();
        }
        stats
    }

    /// The backend that a run would have taken if an operation had needed one.
    fn backend_not_needed(&self) -> (&'static str, String) {
        let why = match self.options.route {
            RouteChoice::Auto | RouteChoice::Ring => "available, but no operation blocked",
            RouteChoice::Inline | RouteChoice::Pool => "available, but the forced route does not use it",
        };
        match ring::probe(&self.options) {
            Ok(_) => ("uring", why.to_owned()),
            Err(error) => ("posix", reason_of(&error)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    fn of(options: &Options) -> Self {
        let (backend, reason, rings) = match options.backend {
            _ if options.sim.is_some() => ("sim", None, Rings::None),
            Backend::Auto => ("auto", Some("no operation blocked, so no ring was opened"), Rings::Untried),
            Backend::Uring => ("uring", None, Rings::Open),
            Backend::Posix => ("posix", Some("chosen by --backend"), Rings::None),
        };
        let mut reasons: Vec<String> = reason.map(str::to_owned).into_iter().collect();
        if options.backend == Backend::Posix && options.registered_buffers {
            reasons.push("only a ring registers buffers".to_owned());
        }
        Self { stats: Stats { backend, ..Stats::default() }, reasons, rings }
    }
}

/// Appends an item that is not listed yet.
fn add_once<T: PartialEq>(known: &mut Vec<T>, more: T) {
    if !known.contains(&more) {
        known.push(more);
    }
}

pub(crate) struct RingPermit {
    shared: Arc<Shared>,
}

impl RingPermit {
    /// Takes a permit if descriptors are left for one more ring.
    pub(crate) fn take(shared: &Arc<Shared>) -> Option<Self> {
        let one_less = |left: usize| left.checked_sub(1);
        shared.rings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok()?;
        Some(Self { shared: Arc::clone(shared) })
    }
}

impl Drop for RingPermit {
    fn drop(&mut self) {
        self.shared.rings.fetch_add(1, Ordering::Relaxed);
    }
}

/// The reason without the error's own introduction.
fn reason_of(error: &SetupError) -> String {
    if let SetupError::NoUring { reason } | SetupError::NoRingMode { reason, .. } = error {
        return reason.clone();
    }
    error.to_string()
}

/// Returns the number of descriptors for operations; with `raises`, raises the soft limit of open files to the hard one
/// before.
fn descriptor_budget(raises: bool) -> Result<usize, SetupError> {
    let mut limit = getrlimit(Resource::Nofile);
    if raises && limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit = raised;
        }
    }
    let most = limit.current.unwrap_or(u64::MAX);
    budget_within(most, open_descriptors(most))
}

/// Number of descriptors that the process has open.
fn open_descriptors(most: u64) -> u64 {
    const LIST: &str = "/proc/self/fd";
    // Since Linux 6.2 the folder's size is their number, which may exceed a limit that was lowered. Before, it is zero.
    if let Ok(list) = std::fs::metadata(LIST)
        && list.len() > 0
    {
        return list.len();
    }
    let listed = match std::fs::read_dir(LIST) {
        // One of them is the listing's own.
        Ok(listed) => u64::try_from(listed.count()).ok().and_then(|count| count.checked_sub(1)),
        // All that the limit allows are open.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::MFILE) => Some(most),
        Err(_) => None,
    };
    listed.unwrap_or(STANDARD_STREAMS)
}

/// Number of descriptors for operations, of `limit` with `open` in use.
fn budget_within(limit: u64, open: u64) -> Result<usize, SetupError> {
    let reserved = RESERVED_DESCRIPTORS + open;
    let needed = reserved + LEAST_DESCRIPTORS;
    if limit < needed {
        return Err(SetupError::FewDescriptors { limit, needed });
    }
    Ok(usize::try_from(limit - reserved).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;

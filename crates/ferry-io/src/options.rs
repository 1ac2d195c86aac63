//! Options of the runtime, their defaults and their limits.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::SetupError;
use crate::event::Tracing;
use crate::sim::Simulation;
#[cfg(feature = "sim")]
use crate::sim::World;

/// Backend for operations that may block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// io_uring if it is available, permitted and part of the build (feature `uring`), else POSIX; [`crate::Stats`] names
    /// the backend and the reason.
    #[default]
    Auto,
    /// io_uring; [`SetupError`] if it is unavailable.
    Uring,
    /// Blocking calls on a pool of threads.
    Posix,
}

/// Route of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouteChoice {
    /// The cheapest route, chosen for each operation.
    #[default]
    Auto,
    /// The worker's own thread.
    Inline,
    /// The ring if io_uring has the operation, else the worker's own thread.
    Ring,
    /// The pool.
    Pool,
}

/// Way in which completions reach the worker (io_uring_setup(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RingMode {
    /// `DEFER_TASKRUN`: when the worker asks for them. Linux 6.1.
    #[default]
    Defer,
    /// `COOP_TASKRUN`: at the worker's next entry to the kernel. Linux 5.19.
    Coop,
    /// At once, by an interrupt if necessary.
    Plain,
    /// A kernel thread polls for submissions.
    SqPoll,
    /// Completions are polled from the device; direct I/O only.
    IoPoll,
}

/// Flag of io_uring_setup(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingFlag {
    /// Only one thread submits. Linux 6.0.
    SingleIssuer,
    /// Completions are processed when the thread asks for them. Linux 6.1.
    DeferTaskrun,
    /// Completions are processed at the thread's next entry to the kernel. Linux 5.19.
    CoopTaskrun,
    /// The ring shows if completions wait to be processed. Linux 5.19.
    Taskrun,
    /// A failed request does not end its batch. Linux 5.18.
    SubmitAll,
    /// The submission queue has no array of indices. Linux 6.6.
    NoSqArray,
    /// A kernel thread polls for submissions.
    SqPoll,
    /// Completions are polled from the device.
    IoPoll,
}

impl RingFlag {
    /// Returns the name in the manual page, without its prefix.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SingleIssuer => "SINGLE_ISSUER",
            Self::DeferTaskrun => "DEFER_TASKRUN",
            Self::CoopTaskrun => "COOP_TASKRUN",
            Self::Taskrun => "TASKRUN_FLAG",
            Self::SubmitAll => "SUBMIT_ALL",
            Self::NoSqArray => "NO_SQARRAY",
            Self::SqPoll => "SQPOLL",
            Self::IoPoll => "IOPOLL",
        }
    }
}

/// Handle by which the program that a run is a part of stops the run, from any thread.
///
/// ```
/// use ferry_io::{Options, StopHandle, run, sleep};
///
/// let handle = StopHandle::new();
/// let options = Options { embedded: Some(handle.clone()), ..Options::default() };
/// let (slept, _stats) = run(&options, async |_| {
///     handle.stop();
///     sleep(std::time::Duration::from_secs(60)).await
/// })?;
/// assert!(slept.is_err(), "the run was stopped");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Returns a handle that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every operation of the run, as [`crate::Io::stop`] does.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Options of [`crate::run`].
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use ferry_io::{Backend, Options, RingFlag, RingMode, RouteChoice, SetupError, run};
///
/// let options = Options {
///     backend: Backend::Posix,
///     route: RouteChoice::Pool,
///     ring_mode: RingMode::Defer,
///     ..Options::with_workers(NonZeroUsize::MIN)
/// };
/// options.check()?;
/// let (answer, stats) = run(&options, async |_io| 42)?;
/// assert_eq!((answer, stats.backend), (42, "posix"));
/// assert_eq!(RingFlag::DeferTaskrun.name(), "DEFER_TASKRUN");
///
/// let refused = Options { blocks: 0, ..options }.check();
/// assert!(matches!(refused, Err(SetupError::BadOption { name: "blocks", .. })));
/// # Ok::<(), SetupError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Entries of each worker's submission queue: a power of two, 1 to 32,768. Default 256.
    pub queue_depth: u32,
    /// Number of blocks in the whole runtime, at least one a worker. Default 128.
    pub blocks: usize,
    /// Size of a block in bytes: a multiple of 4,096, 4 KiB to 64 MiB. Default 256 KiB.
    pub block_size: usize,
    /// Maximum number of workers. Default: the processors that affinity and the cgroup's quota permit.
    pub workers: NonZeroUsize,
    /// Maximum number of pool threads, each started when needed. Default 32.
    pub pool_threads: usize,
    /// Time that the kernel's polling thread stays awake without work, with [`RingMode::SqPoll`].
    pub sqpoll_idle: Duration,
    /// Way in which completions arrive.
    pub ring_mode: RingMode,
    /// Backend for operations that may block.
    pub backend: Backend,
    /// Route of operations.
    pub route: RouteChoice,
    /// Simulated disk that takes the place of the backend. `World::options` sets it, which needs the feature `sim`;
    /// without the feature it is always `None`.
    pub sim: Option<Simulation>,
    /// Registers the blocks with each ring, so that their pages are pinned once instead of at each request. All of them
    /// are then resident from the start. Default off.
    pub registered_buffers: bool,
    /// Submits reads and writes while other fibers still have to run, so that the device has work meanwhile. If off, a
    /// batch is submitted once no fiber can run, which makes the fewest calls. Default on.
    pub early_batches: bool,
    /// Collects what only costs time: hand-overs to kernel workers, and the backend for a run that needed none. Default
    /// off.
    pub observe: bool,
    /// Recording of the run. Default: to the file named by the environment variable `FERRY_TRACE`, if it is set. Without
    /// the feature `trace` it is always `None`, and nothing is recorded.
    pub trace: Option<Tracing>,
    /// Handle of the program that the run is a part of. With it, the run leaves alone what belongs to the whole process:
    /// signals, the limit of open files, and the umask, which is read without changing it. Default: none.
    pub embedded: Option<StopHandle>,
}

impl Default for Options {
    fn default() -> Self {
        Self::with_workers(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }
}

impl Options {
    /// Returns the defaults with this maximum number of workers. Unlike [`Self::default`], this does not read the cgroup's
    /// quota, which takes 70 µs.
    #[must_use]
    pub fn with_workers(workers: NonZeroUsize) -> Self {
        Self {
            queue_depth: 256,
            blocks: 128,
            block_size: 256 * 1024,
            workers,
            pool_threads: 32,
            sqpoll_idle: Duration::from_millis(50),
            ring_mode: RingMode::default(),
            backend: Backend::default(),
            route: RouteChoice::default(),
            sim: None,
            registered_buffers: false,
            early_batches: true,
            observe: false,
            trace: None,
            embedded: None,
        }
    }

    /// Checks every option against its limits.
    ///
    /// # Errors
    /// [`SetupError::BadOption`] names the first option outside its limits.
    pub fn check(&self) -> Result<(), SetupError> {
        let bad = |name: &'static str, value: usize, allowed: &'static str| {
            Err(SetupError::BadOption { name, value, allowed })
        };
        let depth = self.queue_depth as usize;
        if !self.queue_depth.is_power_of_two() || depth > 32_768 {
            return bad("queue depth", depth, "a power of two from 1 to 32768");
        }
        if !self.block_size.is_multiple_of(4096) || !(4096..=64 << 20).contains(&self.block_size) {
            return bad("block size", self.block_size, "a multiple of 4096 from 4096 to 67108864 bytes");
        }
        if !(1..=65_536).contains(&self.blocks) {
            return bad("blocks", self.blocks, "1 to 65536");
        }
        if self.workers.get() > 1024 {
            return bad("workers", self.workers.get(), "1 to 1024");
        }
        if !(1..=1024).contains(&self.pool_threads) {
            return bad("pool threads", self.pool_threads, "1 to 1024");
        }
        if let Some(tracing) = &self.trace {
            tracing.check()?;
        }
        // Zero would be the kernel's own default, one second.
        let idle = usize::try_from(self.sqpoll_idle.as_millis()).unwrap_or(usize::MAX);
        if self.ring_mode == RingMode::SqPoll && !(1..=86_400_000).contains(&idle) {
            return bad("idle time of the polling thread", idle, "1 to 86400000 milliseconds");
        }
        Ok(())
    }
}

#[cfg(feature = "sim")]
impl World {
    /// Returns options for a run against this world with a seed. The seed also chooses the number of workers, one to
    /// four, and of pool threads, one to eight, so that it gives the same run on every machine.
    #[must_use]
    pub fn options(&self, seed: u64) -> Options {
        let below = |end: u64, from: u64| usize::try_from(seed / from % end).unwrap_or_default();
        Options {
            sim: Some(Simulation { world: self.clone(), seed }),
            pool_threads: 1 + below(8, 4),
            ..Options::with_workers(NonZeroUsize::MIN.saturating_add(below(4, 1)))
        }
    }
}

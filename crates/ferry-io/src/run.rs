//! The runtime's beginning and end: set up, run, reap, count.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rustix::fs::Mode;

use crate::buffers::Block;
use crate::dir::Dir;
use crate::entry::Time;
use crate::error::{Result, SetupError};
use crate::jobs::{self, Jobs};
use crate::options::Options;
use crate::paths::Paths;
use crate::pool::Pool;
use crate::shared::Shared;
use crate::stats::Stats;
use crate::task::block_on;
use crate::worker::{self, Worker};

/// What a program may do with the runtime that runs it: the root of all capabilities.
#[derive(Clone)]
pub struct Io {
    shared: Arc<Shared>,
}

/// Runs `main` to its end and returns its value with the run's counters.
///
/// Other workers, the ring and the pool start when something needs them. On return every operation has ended, every
/// thread has been joined and every descriptor of the runtime is closed.
///
/// # Errors
/// [`SetupError`] if the options are out of their limits, or what they insist on can't be had.
pub fn run<T>(
    options: &Options,
    main: impl AsyncFnOnce(Io) -> T,
) -> std::result::Result<(T, Stats), SetupError> {
    let begun = Instant::now();
    let shared = Shared::open(options)?;
    let closing = Closing(&shared.pool);
    let value = {
        let worker = Worker::new(&shared);
        let _entered = worker.enter();
        worker.open_ring_if_required()?;
        block_on(&worker, main(Io { shared: Arc::clone(&shared) }))
    };
    drop(closing);
    let wall = begun.elapsed();
    let mut stats = Stats { wall, ..shared.stats() };
    stats.trace = shared.recording.as_ref().map(|recording| recording.finish(&stats));
    // Not before the recording is whole: a signal would end it in the middle.
    shared.signals.let_go();
    stats.signal = shared.signals.which();
    Ok((value, stats))
}

/// Returns true if [`crate::File::sync_filesystem`] reports what could not be written (syncfs(2), since Linux 5.8).
#[must_use]
pub fn does_syncfs_report() -> bool {
    crate::sys::is_kernel_at_least((5, 8))
}

/// Returns true if a file without a name can be given one by any user ([`crate::Dir::link_open`]): by its descriptor since
/// Linux 6.10, before by its path in /proc, which must be mounted.
#[must_use]
pub fn can_name_open_files() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| crate::sys::is_kernel_at_least((6, 10)) || Path::new("/proc/self/fd").exists())
}

/// Whether this process may change owners: its effective user is root.
#[must_use]
pub fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user with whose rights this process runs (geteuid(2)).
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// umask(2) tells it only by changing it.
fn umask_of_process() -> u32 {
    let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(umask);
    umask.bits()
}

/// Ends the pool after the run's worker, also when the run panics: no thread outlives the run.
struct Closing<'a>(&'a Pool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Io {
    /// Opens a folder by its path, links in it followed: where a program's capabilities begin.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open_dir(&self, path: &Path) -> Result<Dir> {
        match &self.shared.sim {
            Some(sim) => sim.open_root(path),
            None => Dir::open_path(path),
        }
    }

    /// Opens a folder by its path, where that need only be searchable (O_PATH): what is in it can be reached, but it
    /// can't be listed or synced.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn reach_dir(&self, path: &Path) -> Result<Dir> {
        match &self.shared.sim {
            Some(sim) => sim.open_root(path),
            None => Dir::reach_path(path),
        }
    }

    /// Opens a folder as [`Paths::folder`] does, in the simulation the simulated one.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn folder(&self, paths: &Paths, path: &Path) -> Result<Dir> {
        match &self.shared.sim {
            Some(sim) => sim.open_root(path),
            None => paths.folder(path),
        }
    }

    /// A block of memory, as soon as one is free. A fiber that holds one must not wait for another.
    ///
    /// # Errors
    /// If the scope is cancelled first.
    pub async fn block(&self) -> Result<Block> {
        self.shared.blocks.take().await
    }

    /// Bytes a block.
    #[must_use]
    pub fn block_size(&self) -> usize {
        self.shared.blocks.block_size()
    }

    /// Blocks in all.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.shared.blocks.count()
    }

    /// Blocks that nobody holds, not even a worker for its next fiber.
    #[cfg(test)]
    pub(crate) fn blocks_in_list(&self) -> usize {
        self.shared.blocks.in_list()
    }

    /// Blocks that nobody holds.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        self.shared.blocks.free()
    }

    /// Descriptors that operations may hold at a time, all workers together: RLIMIT_NOFILE, raised as far as allowed,
    /// less what the process needs for itself.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.shared.descriptors()
    }

    /// Workers at most.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// Bounds the workers of what is shared from now on, within what the options allow: for a filesystem that more of
    /// them make slower.
    pub fn limit_workers(&self, most: usize) {
        self.shared.limit_workers(most);
    }

    /// The bits that this process takes from the mode of what it makes (umask(2)). To be asked before other
    /// threads make anything: what they make in that moment would be too private.
    #[must_use]
    pub fn umask(&self) -> u32 {
        match &self.shared.sim {
            Some(sim) => sim.umask(),
            None => umask_of_process(),
        }
    }

    /// The time that a local filesystem would note for a change now (CLOCK_REALTIME_COARSE); in a simulation, the
    /// simulated one.
    #[must_use]
    pub fn file_time(&self) -> Time {
        match &self.shared.sim {
            Some(sim) => sim.file_time(),
            None => {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
                Time { seconds: now.tv_sec, nanoseconds: u32::try_from(now.tv_nsec).unwrap_or_default() }
            }
        }
    }

    /// The time now, which is not before any that a local filesystem has noted (CLOCK_REALTIME); in a simulation, the
    /// simulated one.
    #[must_use]
    pub fn real_time(&self) -> Time {
        match &self.shared.sim {
            Some(sim) => sim.real_time(),
            None => {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
                Time { seconds: now.tv_sec, nanoseconds: u32::try_from(now.tv_nsec).unwrap_or_default() }
            }
        }
    }

    /// Whether everything that a ring has must go there: then bytes are to be read and written, not moved by the kernel.
    #[must_use]
    pub fn forces_ring(&self) -> bool {
        worker::current().forces_ring()
    }

    /// Runs jobs on all workers, at most `at_once` at a time on each, until none is left: `first`, and every job that
    /// a job adds. Each job is a fiber; the newest is begun first.
    pub async fn share<J, W>(&self, first: Vec<J>, at_once: usize, work: W)
    where
        J: Send + 'static,
        W: AsyncFn(&Jobs<J>, J) + Send + Sync + 'static,
    {
        jobs::share(&self.shared, first, at_once, work).await;
    }

    /// From now on, until the run ends, SIGINT, SIGTERM and SIGHUP cancel it instead of killing the process; a second one kills
    /// it. One that is ignored stays so. Which one came is told by [`Stats::signal`].
    ///
    /// # Errors
    /// If a signal's action can't be set.
    pub fn stop_on_signals(&self) -> std::io::Result<()> {
        self.shared.signals.catch(&self.shared.stop)
    }

    /// Cancels everything.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether everything was cancelled.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;
#[cfg(not(loom))]
#[cfg(test)]
mod tests;

//! The beginning and the end of a run, and [`Io`], the root of all capabilities.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use rustix::fs::Mode;

use crate::buffers::Block;
use crate::descriptor::Dir;
use crate::entry::Time;
use crate::error::{Result, SetupError};
use crate::event::Recording;
use crate::jobs::{self, Jobs};
use crate::options::Options;
use crate::paths::Paths;
use crate::pool::Pool;
use crate::shared::Shared;
use crate::stats::Stats;
use crate::task::block_on;
use crate::worker::{self, Worker};

/// The capabilities of a running program.
#[doc = ""]
#[doc = include_str!("../docs/io.md")]
#[derive(Clone)]
pub struct Io {
    shared: Arc<Shared>,
}

/// Runs `main` to its end and returns its value with the run's counters.
///
/// Further workers, the ring and the pool start when an operation needs them. On return every operation has ended,
/// every thread has been joined, and every descriptor of the runtime is closed.
///
/// ```
/// use ferry_io::{Options, can_name_open_files, does_syncfs_report, is_superuser, run, user};
///
/// let (inode, stats) = run(&Options::default(), async |io| {
///     let folder = io.open_dir("/".as_ref())?;
///     folder.stat().await.map(|stat| stat.inode)
/// })?;
/// println!("the root has inode {}, found by {} system calls", inode?, stats.system_calls);
/// assert_eq!(is_superuser(), user() == 0);
/// println!("{} {}", can_name_open_files(), does_syncfs_report());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`SetupError`] if an option is outside its limits, or if a required backend is unavailable.
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
    let recorded = |recording: &Arc<Recording>| recording.finish(stats.backend, &stats.named());
    stats.trace = shared.recording.as_ref().map(recorded);
    // Only now: a signal must not end the recording in the middle.
    shared.signals.let_go();
    stats.signal = shared.signals.which();
    Ok((value, stats))
}

/// Returns true if [`crate::File::sync_filesystem`] reports failed writes (syncfs(2), since Linux 5.8).
#[must_use]
pub fn does_syncfs_report() -> bool {
    crate::sys::is_kernel_at_least((5, 8))
}

/// Returns true if any user can name a file that has no name ([`crate::Dir::link_open`]): by its descriptor since Linux
/// 6.10, before by its path in /proc, which must be mounted.
#[must_use]
pub fn can_name_open_files() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| crate::sys::is_kernel_at_least((6, 10)) || Path::new("/proc/self/fd").exists())
}

/// Returns true if this process may change owners, because its effective user is root.
#[must_use]
pub fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// The effective user of this process (geteuid(2)).
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The umask as proc(5) shows it, since Linux 4.7; other threads' files are not affected.
fn umask_of_status() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// The umask; umask(2) reports it only by changing it. One at a time, so that no run takes another's change for the umask.
fn umask_of_process() -> u32 {
    static CHANGING: Mutex<()> = Mutex::new(());
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(umask);
    umask.bits()
}

/// Closes the pool after the run's worker has ended, also on a panic: no thread outlives the run.
struct Closing<'a>(&'a Pool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Io {
    /// Opens a folder by its path and follows links in it.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open_dir(&self, path: &Path) -> Result<Dir> {
        match &self.shared.sim {
            Some(sim) => sim.open_root(path),
            None => Dir::open_path(path),
        }
    }

    /// Opens a folder by its path with O_PATH. Its entries can be reached, but it can be neither listed nor synced.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn reach_dir(&self, path: &Path) -> Result<Dir> {
        match &self.shared.sim {
            Some(sim) => sim.open_root(path),
            None => Dir::reach_path(path),
        }
    }

    /// Opens a folder as [`Paths::folder`] does; in a simulation, the simulated one.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn folder(&self, paths: &Paths, path: &Path) -> Result<Dir> {
        match &self.shared.sim {
            Some(sim) => sim.open_root(path),
            None => paths.folder(path),
        }
    }

    /// Waits for a free block of memory. A fiber that holds one must not wait for another.
    ///
    /// # Errors
    /// If the scope is cancelled first.
    pub async fn block(&self) -> Result<Block> {
        self.shared.blocks.take().await
    }

    /// Block size in bytes.
    #[must_use]
    pub fn block_size(&self) -> usize {
        self.shared.blocks.block_size()
    }

    /// Number of blocks in all.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.shared.blocks.count()
    }

    /// Number of blocks that no fiber holds and no worker keeps.
    #[cfg(test)]
    pub(crate) fn blocks_in_list(&self) -> usize {
        self.shared.blocks.in_list()
    }

    /// Number of blocks that no fiber holds.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        self.shared.blocks.free()
    }

    /// Number of descriptors that all operations together may hold: RLIMIT_NOFILE, raised as far as allowed, less a
    /// reserve for the process.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.shared.descriptors()
    }

    /// Maximum number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// Bounds the workers of later [`Self::share`] calls, for filesystems that more workers make slower.
    pub fn limit_workers(&self, most: usize) {
        self.shared.limit_workers(most);
    }

    /// The effective user of this process (geteuid(2)); in a simulation, the user of its settings. 0 is root.
    #[must_use]
    pub fn user(&self) -> u32 {
        match &self.shared.sim {
            Some(sim) => sim.user(),
            None => user(),
        }
    }

    /// The effective group of this process (getegid(2)); in a simulation, the group of its settings.
    #[must_use]
    pub fn group(&self) -> u32 {
        match &self.shared.sim {
            Some(sim) => sim.group(),
            None => rustix::process::getegid().as_raw(),
        }
    }

    /// Returns the groups of this process beside [`Self::group`] (getgroups(2)); none in a simulation, or if they can't be read.
    ///
    /// ```
    /// use ferry_io::{Options, SetupError, run};
    ///
    /// let ((own, others), _) = run(&Options::default(), async |io| (io.group(), io.other_groups()))?;
    /// println!("group {own}, supplementary {others:?}");
    /// # Ok::<(), SetupError>(())
    /// ```
    #[must_use]
    pub fn other_groups(&self) -> Vec<u32> {
        match &self.shared.sim {
            Some(_) => Vec::new(),
            None => rustix::process::getgroups()
                .unwrap_or_default()
                .into_iter()
                .map(rustix::process::Gid::as_raw)
                .collect(),
        }
    }

    /// The umask of this process (umask(2)). Reading it changes it for a moment, so ask before other threads create
    /// files; a run that is a part of another program ([`Options::embedded`]) reads it from /proc instead.
    #[must_use]
    pub fn umask(&self) -> u32 {
        match &self.shared.sim {
            Some(sim) => sim.umask(),
            None if self.shared.options.embedded.is_some() => {
                umask_of_status().unwrap_or_else(umask_of_process)
            }
            None => umask_of_process(),
        }
    }

    /// The time that a local filesystem would give a change now (CLOCK_REALTIME_COARSE); in a simulation, the virtual
    /// time.
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

    /// The time now, never before that of any change on a local filesystem (CLOCK_REALTIME); in a simulation, the
    /// virtual time.
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

    /// Returns true if the kernel may move bytes between files by itself. With a forced ring they are to be read and
    /// written, in blocks of any size.
    #[must_use]
    pub fn may_offload(&self) -> bool {
        worker::current().may_offload()
    }

    /// Runs the `first` jobs, and every job that a job adds, on all workers until none is left. Each worker runs up to
    /// `at_once` jobs at a time, each as a fiber; the newest job is begun first.
    pub async fn share<J, W>(&self, first: Vec<J>, at_once: usize, work: W)
    where
        J: Send + 'static,
        W: AsyncFn(&Jobs<J>, J) + Send + Sync + 'static,
    {
        jobs::share(&self.shared, first, at_once, work).await;
    }

    /// Makes SIGINT, SIGTERM and SIGHUP cancel the run instead of killing the process, until the run ends. A second
    /// signal kills it. Ignored signals stay ignored. [`Stats::signal`] reports the signal that came. In a run that is a
    /// part of another program ([`Options::embedded`]), signals stay that program's.
    ///
    /// # Errors
    /// If a signal's action can't be set.
    pub fn stop_on_signals(&self) -> std::io::Result<()> {
        if self.shared.options.embedded.is_some() {
            return Ok(());
        }
        self.shared.signals.catch(&self.shared.stop)
    }

    /// Cancels every operation of the run.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns true if the run was cancelled.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;
#[cfg(all(feature = "sim", not(loom)))]
#[cfg(test)]
mod tests;

//! A run on a thread of its own, and its handle for Python.

use std::any::Any;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ferry_io::StopHandle;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failures::{Failed, bytes};
use crate::queue::Queue;

/// Longest time without a look at signals.
const PERIOD: Duration = Duration::from_millis(50);

/// Figures of a run that goes on: entries and bytes done, entries and bytes found, and true once all are found.
pub(crate) type Counts = (u64, u64, u64, u64, bool);

/// Result of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Totals by their names.
    pub(crate) totals: HashMap<&'static str, u64>,
    pub(crate) failures: Vec<Failed>,
    pub(crate) is_interrupted: bool,
    pub(crate) is_out_of_space: bool,
    /// Folder with the entries that were taken away.
    pub(crate) trash: Option<PathBuf>,
}

/// An [`Outcome`] as Python gets it.
type Told = (
    HashMap<&'static str, u64>,
    Vec<(Py<PyBytes>, Py<PyBytes>, &'static str, i32, String)>,
    bool,
    bool,
    Option<Py<PyBytes>>,
);

/// State that the thread of a run shares with its handle.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) stop: StopHandle,
    /// Set by [`Run::stop`].
    pub(crate) cancelled: Arc<AtomicBool>,
    ended: Mutex<Option<Result<Outcome, String>>>,
}

/// A run that was started.
#[pyclass(frozen, module = "ferry._core")]
pub(crate) struct Run {
    shared: Arc<Shared>,
    counts: Box<dyn Fn() -> Counts + Send + Sync>,
    stops: Box<dyn Fn() + Send + Sync>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Process that started it: a fork has no copy of its thread.
    process: u32,
}

impl Run {
    /// Starts a run. `stops` ends it early, besides the stop handle.
    pub(crate) fn start(
        shared: Arc<Shared>,
        counts: impl Fn() -> Counts + Send + Sync + 'static,
        stops: impl Fn() + Send + Sync + 'static,
        body: impl FnOnce(&Shared) -> Result<Outcome, String> + Send + 'static,
    ) -> PyResult<Self> {
        let own = Arc::clone(&shared);
        let run = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| body(&own)));
            *lock(&own.ended) = Some(ended.unwrap_or_else(|panic| Err(panic_message(&*panic))));
            own.queue.end();
        };
        let thread = std::thread::Builder::new().name("ferry-run".to_owned()).spawn(run);
        let thread = Mutex::new(Some(thread?));
        let (counts, stops) = (Box::new(counts), Box::new(stops));
        Ok(Self { shared, counts, stops, thread, process: std::process::id() })
    }

    fn refuse_fork(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "this run belongs to the parent process: a fork has no copy of its threads; start another one",
        ))
    }

    /// Stops the run, and drops its further events.
    fn end_early(&self) {
        self.shared.cancelled.store(true, Ordering::SeqCst);
        self.shared.stop.stop();
        (self.stops)();
        self.shared.queue.close();
    }

    /// Runs the handlers of signals that have come. If one raises, as that of Ctrl-C does, the run is stopped first.
    fn check_signals(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals().inspect_err(|_| self.stop(py))
    }

    /// Waits for the thread's end, which follows that of the run.
    fn join(&self) {
        if let Some(thread) = lock(&self.thread).take() {
            // Its panic is the run's result.
            thread.join().ok();
        }
    }
}

impl Drop for Run {
    /// Ends a run that nobody waits for any more: a signal's exception may be raised between its start and the wait.
    fn drop(&mut self) {
        if self.refuse_fork().is_ok() && !self.shared.queue.wait(Duration::ZERO) {
            self.end_early();
        }
    }
}

#[pymethods]
impl Run {
    /// Returns lines of events, after waiting up to `timeout` seconds for the first. Returns None after the last.
    fn events(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Vec<Py<PyBytes>>>> {
        self.refuse_fork()?;
        let timeout = duration(timeout)?.min(PERIOD);
        let lines = py.detach(|| self.shared.queue.take(timeout));
        self.check_signals(py)?;
        Ok(lines.map(|lines| lines.iter().map(|line| PyBytes::new(py, line).unbind()).collect()))
    }

    /// Drops all events from now on.
    fn close(&self) -> PyResult<()> {
        self.refuse_fork()?;
        self.shared.queue.close();
        Ok(())
    }

    /// Waits for the end for up to `timeout` seconds, and returns true once the run is over. Signals may end the wait.
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        self.refuse_fork()?;
        let mut left = duration(timeout)?;
        loop {
            let part = left.min(PERIOD);
            if py.detach(|| self.shared.queue.wait(part)) {
                py.detach(|| self.join());
                return Ok(true);
            }
            self.check_signals(py)?;
            left -= part;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// Drops all events from now on, and waits for the end. A signal whose handler raises stops the run; the exception is
    /// raised once nothing of the run is left.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.refuse_fork()?;
        self.shared.queue.close();
        loop {
            if py.detach(|| self.shared.queue.wait(PERIOD)) {
                py.detach(|| self.join());
                return Ok(());
            }
            if let Err(raised) = py.check_signals() {
                self.stop(py);
                return Err(raised);
            }
        }
    }

    /// Stops the run, and waits until nothing of it is left.
    fn stop(&self, py: Python<'_>) {
        if self.refuse_fork().is_err() {
            return;
        }
        self.end_early();
        py.detach(|| {
            while !self.shared.queue.wait(PERIOD) {}
            self.join();
        });
    }

    /// Stops the run without waiting for its end.
    fn cancel(&self) -> PyResult<()> {
        self.refuse_fork()?;
        self.end_early();
        Ok(())
    }

    /// True if the run was stopped by this process.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::SeqCst)
    }

    /// True once the run is over.
    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        self.refuse_fork()?;
        Ok(self.shared.queue.wait(Duration::ZERO))
    }

    /// Figures of the run so far.
    fn counts(&self) -> Counts {
        (self.counts)()
    }

    /// Returns the result once, after the end: a message if nothing was begun, or totals and failures.
    fn outcome(&self, py: Python<'_>) -> PyResult<(Option<String>, Told)> {
        self.refuse_fork()?;
        let ended = lock(&self.shared.ended).take();
        let ended =
            ended.ok_or_else(|| PyRuntimeError::new_err("the run is not over, or its outcome was taken"))?;
        let (refused, outcome) = match ended {
            Ok(outcome) => (None, outcome),
            Err(message) => (Some(message), Outcome::default()),
        };
        let Outcome { totals, failures, is_interrupted, is_out_of_space, trash } = outcome;
        let told = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let failures = failures.into_iter().map(|(source, target, subject, errno, message)| {
            (told(&source), told(&target), subject, errno, message)
        });
        let trash = trash.map(|trash| told(&bytes(&trash)));
        Ok((refused, (totals, failures.collect(), is_interrupted, is_out_of_space, trash)))
    }
}

/// Returns a time that Python gave in seconds.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    // The longest wait that counts: a condition variable takes no more on every platform.
    const MOST: f64 = 1e9;
    Duration::try_from_secs_f64(seconds.min(MOST))
        .map_err(|_| PyValueError::new_err("a time is a number of seconds that is not negative"))
}

/// Options of the runtime for a run in another program.
pub(crate) fn io_options(workers: NonZeroUsize, shared: &Shared) -> ferry_io::Options {
    ferry_io::Options { embedded: Some(shared.stop.clone()), ..ferry_io::Options::with_workers(workers) }
}

/// Returns one worker for each processor that affinity and the cgroup's quota permit; the quota is read once.
pub(crate) fn workers() -> NonZeroUsize {
    static PERMITTED: OnceLock<NonZeroUsize> = OnceLock::new();
    *PERMITTED.get_or_init(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// Returns the figures of a copy or a sync.
pub(crate) fn counts_of(progress: &ferry_copy::Progress) -> Counts {
    // Read this first, so that the count below is final if the walk has ended.
    let is_complete = progress.walk_ended.load(Ordering::Acquire);
    let bytes = progress.bytes_done.get() + progress.bytes_passed.get();
    let found = (progress.entries_found.get(), progress.bytes_found.get());
    (progress.entries_done.get(), bytes, found.0, found.1, is_complete)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("internal error: {}", text.unwrap_or_else(|| "a panic".to_owned()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

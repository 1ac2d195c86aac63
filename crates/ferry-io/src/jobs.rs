//! Jobs shared by workers: a stack of all, one of each worker, and one behind them for jobs that add many others.
//!
//! Called by [`crate::Io::share`]. A worker takes the newest of its own jobs, else the newest of all, else the oldest
//! of another worker, else one from behind. So a walk whose folders are its workers' own goes depth first, each stack
//! holds at most the siblings along one path, and an idle worker begins a large part of the tree, far from the others:
//! two workers that make entries of one folder wait for its lock (docs/decisions/0008). A worker runs several jobs at
//! once as fibers and takes another only when none of these can run. Further workers start when a job waits and no
//! worker is idle; all end with the last job. Adding a job never waits; the caller bounds the number of waiting jobs
//! (guard: `a_million_subfolders_are_not_a_million_jobs`).
//!
//! Protocol. A worker that finds no job lists its waker as idle, under the same lock. `push` adds the job, takes one
//! waker off the list under that lock and wakes it. So either the worker sees the job, or `push` sees the waker. A
//! worker that takes a job without having been woken takes its own waker off the list; otherwise a later job could wake
//! it although it has no room, in place of an idle worker. The last job's end, a cancellation and a panic wake all.
//! Guards: `a_job_that_is_added_is_begun_by_whoever_is_idle`, `two_workers_end_when_the_last_job_has`,
//! `a_worker_without_room_is_not_woken_in_an_idle_ones_place`.
//!
//! Cancelling or dropping `share` cancels the jobs of all workers (guards:
//! `a_time_limit_reaches_the_jobs_of_other_workers`, `sharing_that_is_dropped_ends`). A panic in a job cancels the
//! others and goes on in the caller of `share`.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};

use crate::cancel::{self, Context};
use crate::concurrent::atomic::{AtomicUsize, Ordering};
use crate::concurrent::thread::JoinHandle;
use crate::concurrent::{Mutex, MutexGuard, start_beside};
use crate::event::{self, Opener};
use crate::fibers::Fibers;
use crate::shared::Shared;
use crate::spare;
use crate::task::block_on_within;
use crate::worker::{self, Worker};

/// The jobs of one [`crate::Io::share`]; a job adds more through it.
///
/// ```
/// use std::path::PathBuf;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use ferry_io::{Jobs, Options, run};
///
/// # let temporary = tempfile::tempdir().expect("a folder");
/// # std::fs::create_dir_all(temporary.path().join("a/b/c")).expect("folders");
/// let folders = Arc::new(AtomicU32::new(0));
/// let (top, found) = (temporary.path().to_owned(), Arc::clone(&folders));
/// run(&Options::default(), async |io| {
///     let root = io.clone();
///     let work = async move |jobs: &Jobs<PathBuf>, folder: PathBuf| {
///         let open = root.open_dir(&folder).expect("it exists");
///         found.fetch_add(1, Ordering::Relaxed);
///         for entry in open.list(None).await.expect("it can be read").entries {
///             let inner = folder.join(entry.name.as_os_str());
///             // Jobs that add many others wait behind those of which an idle worker could take one.
///             if jobs.is_someone_idle() { jobs.push(inner) } else { jobs.push_behind(inner) }
///         }
///     };
///     io.share(vec![top], 4, work).await;
/// })?;
/// assert_eq!(folders.load(Ordering::Relaxed), 4);
/// # Ok::<(), ferry_io::SetupError>(())
/// ```
pub struct Jobs<J> {
    inner: Arc<Inner<J>>,
    /// Index of the stack of this handle's worker.
    own: usize,
}

impl<J> Clone for Jobs<J> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), own: self.own }
    }
}

type Body<J> = Box<dyn Fn(Jobs<J>) + Send + Sync>;

struct Inner<J> {
    state: Mutex<State<J>>,
    /// Number of workers that wait for a job; read without the lock.
    idle: AtomicUsize,
    /// Main function of a further worker's thread.
    body: Body<J>,
    most_workers: usize,
    shared: Arc<Shared>,
    /// Cancels the jobs of every worker, which are outside the scope around `share`.
    stop: Arc<AtomicBool>,
}

struct State<J> {
    /// Jobs of no worker, oldest first.
    waiting: Vec<J>,
    /// Jobs of each worker, oldest first.
    own: Vec<VecDeque<J>>,
    /// Jobs begun when no other waits.
    behind: Vec<J>,
    /// Number of jobs waiting or running.
    outstanding: usize,
    idle: Vec<Waker>,
    /// Wakers of all workers that run jobs, for a cancellation.
    driving: Vec<Waker>,
    workers: usize,
    /// Number of the last further worker that was started: the index of its stack.
    numbered: usize,
    threads: Vec<JoinHandle<()>>,
    /// Set if a worker panicked or `share` was dropped: the running jobs never end.
    aborted: bool,
    panic: Option<Box<dyn Any + Send>>,
}

impl<J> State<J> {
    /// Takes a job for the worker with this index.
    fn take(&mut self, own: usize) -> Option<J> {
        let newest = self.own.get_mut(own).and_then(VecDeque::pop_back).or_else(|| self.waiting.pop());
        let oldest = || self.own.iter_mut().max_by_key(|jobs| jobs.len())?.pop_front();
        newest.or_else(oldest).or_else(|| self.behind.pop())
    }

    /// Removes all waiting jobs.
    fn discard(&mut self) -> Vec<J> {
        let mut discarded = std::mem::take(&mut self.waiting);
        discarded.append(&mut self.behind);
        discarded.extend(self.own.iter_mut().flat_map(std::mem::take));
        discarded
    }
}

impl<J: Send + 'static> Jobs<J> {
    /// Adds a job for any worker. The newest is begun first.
    pub fn push(&self, job: J) {
        let mut state = self.lock();
        state.waiting.push(job);
        self.added(state);
    }

    /// Adds a job of this worker, which begins its newest first, and before those of all. A worker that has no other
    /// takes the oldest.
    pub fn push_own(&self, job: J) {
        let mut state = self.lock();
        if state.own.len() <= self.own {
            state.own.resize_with(self.own + 1, VecDeque::new);
        }
        state.own[self.own].push_back(job);
        self.added(state);
    }

    /// Adds a job that is begun when no other waits, for jobs that add many more.
    pub fn push_behind(&self, job: J) {
        let mut state = self.lock();
        state.behind.push(job);
        self.added(state);
    }

    /// Wakes an idle worker for the added job, or starts one.
    fn added(&self, mut state: MutexGuard<'_, State<J>>) {
        state.outstanding += 1;
        let idle = state.idle.pop();
        if let Some(waker) = idle {
            drop(state);
            waker.wake();
        } else if state.workers < self.inner.most_workers {
            state.workers += 1;
            drop(state);
            self.start_worker();
        }
    }

    /// Returns true if a worker has nothing to do: splitting a job pays then.
    #[must_use]
    pub fn is_someone_idle(&self) -> bool {
        self.inner.idle.load(Ordering::Relaxed) > 0
    }

    /// Starts a further worker for each job but one, which the calling worker takes.
    fn start_workers_for_waiting(&self) {
        let mut state = self.lock();
        let wanted = state.waiting.len().min(self.inner.most_workers);
        let further = wanted.saturating_sub(state.workers);
        state.workers += further;
        drop(state);
        for _ in 0..further {
            self.start_worker();
        }
    }

    fn start_worker(&self) {
        let mut state = self.lock();
        state.numbered += 1;
        let jobs = Self { inner: Arc::clone(&self.inner), own: state.numbered };
        drop(state);
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| (jobs.inner.body)(jobs.clone())));
            if let Err(panic) = outcome {
                jobs.abort(panic);
            }
        };
        let thread = match &self.inner.shared.sim {
            Some(sim) => sim.start_worker(self.crew(), work),
            None => start_beside("ferry-worker", work),
        };
        let mut state = self.lock();
        match thread {
            Ok(thread) => state.threads.push(thread),
            // The running workers do without it, and the next thread has its number.
            Err(_) => {
                state.workers -= 1;
                state.numbered -= 1;
            }
        }
    }

    /// Identity of these jobs' workers, for the simulation.
    fn crew(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    fn abort(&self, panic: Box<dyn Any + Send>) {
        self.inner.shared.stop();
        let mut state = self.lock();
        state.aborted = true;
        state.panic.get_or_insert(panic);
        drop(state);
        self.wake_everyone();
    }

    fn end_one(&self) {
        let mut state = self.lock();
        state.outstanding -= 1;
        let all = state.outstanding == 0;
        drop(state);
        if all {
            self.wake_everyone();
        }
    }

    /// Cancels the running jobs on every worker and drops the waiting ones.
    fn cancel(&self) {
        let is_first = !self.inner.stop.swap(true, Ordering::SeqCst);
        let mut state = self.lock();
        let discarded = state.discard();
        if discarded.is_empty() && !is_first {
            return;
        }
        state.outstanding -= discarded.len();
        let driving = std::mem::take(&mut state.driving);
        drop(state);
        drop(discarded);
        self.wake_everyone();
        for waker in driving {
            waker.wake();
        }
    }

    /// Registers the calling worker to be woken by a cancellation.
    fn watch(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.driving.iter().any(|known| known.will_wake(waker)) {
            state.driving.push(waker.clone());
        }
    }

    fn wake_everyone(&self) {
        let idle = std::mem::take(&mut self.lock().idle);
        for waker in idle {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a job. Returns `None` and lists `waker` as idle if no job waits, and `Err` if none will come.
    fn take_or_wait(&self, waker: &Waker, is_listed: &mut bool, running: bool) -> Result<Option<J>, AllDone> {
        let mut state = self.lock();
        if let Some(job) = state.take(self.own) {
            // A worker that takes a job unasked may have no room for another.
            if std::mem::take(is_listed) {
                state.idle.retain(|known| !known.will_wake(waker));
            }
            return Ok(Some(job));
        }
        if state.outstanding == 0 || (state.aborted && !running) {
            return Err(AllDone);
        }
        if !state.idle.iter().any(|known| known.will_wake(waker)) {
            state.idle.push(waker.clone());
        }
        *is_listed = true;
        Ok(None)
    }
}

struct AllDone;

/// Runs jobs on this worker, up to `at_once` at a time, until all jobs everywhere have ended.
async fn drive<J, W>(jobs: &Jobs<J>, at_once: usize, work: &W)
where
    J: Send + 'static,
    W: AsyncFn(&Jobs<J>, J),
{
    let span = event::open_scope(Opener::ForEach);
    let mut fibers = Fibers::new(Context::child_of_scope(span.scope()));
    let mut counted_idle = false;
    let mut watches = false;
    let mut is_listed = false;
    std::future::poll_fn(|cx| {
        if !std::mem::replace(&mut watches, true) {
            jobs.watch(cx.waker());
        }
        if counted_idle {
            counted_idle = false;
            jobs.inner.idle.fetch_sub(1, Ordering::Relaxed);
        }
        loop {
            while fibers.alive() > 0 && fibers.poll_ready(cx).is_some() {
                jobs.end_one();
            }
            if cancel::is_cancelled() {
                jobs.cancel();
            }
            if worker::current().is_due() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if fibers.alive() >= at_once {
                return Poll::Pending;
            }
            let job = match jobs.take_or_wait(cx.waker(), &mut is_listed, fibers.alive() > 0) {
                Ok(Some(job)) => job,
                Ok(None) => {
                    if fibers.alive() == 0 {
                        counted_idle = true;
                        jobs.inner.idle.fetch_add(1, Ordering::Relaxed);
                    }
                    return Poll::Pending;
                }
                Err(AllDone) if fibers.alive() == 0 => return Poll::Ready(()),
                Err(AllDone) => return Poll::Pending,
            };
            if fibers.spawn(|| work(jobs, job)).is_some() {
                jobs.end_one();
            }
        }
    })
    .await;
}

/// Ends and joins the other workers, also on a panic and when `share` is dropped.
struct Crew<J: Send + 'static>(Jobs<J>);

impl<J: Send + 'static> Drop for Crew<J> {
    fn drop(&mut self) {
        // The other workers may be waiting for blocks or permits kept here.
        spare::give_back();
        if std::thread::panicking() {
            self.0.inner.shared.stop();
        }
        let mut state = self.0.lock();
        // The calling worker's fibers are gone; their jobs will not be counted as ended.
        state.aborted |= state.outstanding > 0;
        let aborted = state.aborted;
        drop(state);
        if aborted {
            self.0.cancel();
            self.0.wake_everyone();
        }
        loop {
            let threads = std::mem::take(&mut self.0.lock().threads);
            if threads.is_empty() {
                return;
            }
            if let Some(sim) = &self.0.inner.shared.sim {
                sim.join(self.0.crew());
            }
            for thread in threads {
                // The state keeps its panic.
                thread.join().ok();
            }
        }
    }
}

/// Runs `first` and all jobs added by jobs, on this worker and on others as they are needed.
pub(crate) async fn share<J, W>(shared: &Arc<Shared>, first: Vec<J>, at_once: usize, work: W)
where
    J: Send + 'static,
    W: AsyncFn(&Jobs<J>, J) + Send + Sync + 'static,
{
    let most_workers = shared.workers();
    let work = Arc::new(work);
    let body: Body<J> = {
        let (shared, work) = (Arc::clone(shared), Arc::clone(&work));
        Box::new(move |jobs| {
            let worker = Worker::new(&shared);
            let _entered = worker.enter();
            let run = Context::root(Arc::clone(&shared.stop));
            let context = run.stopped_by(Arc::clone(&jobs.inner.stop));
            block_on_within(&worker, &context, drive(&jobs, at_once, &*work));
        })
    };
    let state = State {
        outstanding: first.len(),
        waiting: first,
        own: Vec::new(),
        behind: Vec::new(),
        idle: Vec::new(),
        driving: Vec::new(),
        workers: 1,
        numbered: 0,
        threads: Vec::new(),
        aborted: false,
        panic: None,
    };
    let inner = Inner {
        state: Mutex::new(state),
        idle: AtomicUsize::new(0),
        body,
        most_workers,
        shared: Arc::clone(shared),
        stop: Arc::default(),
    };
    let jobs = Jobs { inner: Arc::new(inner), own: 0 };
    let crew = Crew(jobs.clone());
    jobs.start_workers_for_waiting();
    drive(&jobs, at_once, &*work).await;
    drop(crew);
    let panic = jobs.lock().panic.take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

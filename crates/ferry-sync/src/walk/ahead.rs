//! Examining folders ahead of the walk, on all workers.
//!
//! The walk decides about one folder after another, and each decision may depend on those before it. What it has to look at
//! does not: so folders that both trees have are listed and examined by jobs before the walk comes to them. Jobs add the folders
//! that they find. Each job takes the waiting folder that the walk needs first. If the walk comes to a folder before a job
//! does, it examines it itself and adds the next siblings.
//!
//! A folder that was examined ahead is closed again. What could not be examined, or is too large, is left to the walk, which
//! reports failures.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferry_io::{Dir, Io, Jobs, Name, Semaphore};

use super::choices::Choices;
use super::examined::{Examined, Examiner, has_both_folders};
use super::level::{self, Listed, Which};
use crate::merge::{Merge, Row};

#[cfg(test)]
mod tests;

/// Folders that wait, each with up to two descriptors; and as many that were examined ahead. Twice as many of these are begun
/// if the walk needs the next one before another.
const FOLDERS: usize = 512;
/// Rows of folders that were examined ahead, beyond which no folder is begun; or twice as many, likewise.
const ROWS: usize = 8_192;
/// Folders that a worker examines at once.
const AT_ONCE: usize = 8;

/// A folder that was examined.
pub(super) struct Ready {
    pub(super) source: Listed,
    pub(super) target: Listed,
    pub(super) rows: Vec<Row>,
    pub(super) examined: Vec<Examined>,
}

/// A folder to be examined.
pub(super) struct Task {
    path: PathBuf,
    name: Name,
    source: Dir,
    target: Dir,
}

/// What a worker does.
pub(super) enum Job {
    /// Waits for the walk's end.
    Stay,
    /// Examines the waiting folder that the walk needs first.
    Examine,
}

/// The folders ahead of a walk.
#[derive(Clone)]
pub(super) struct Ahead {
    inner: Arc<Inner>,
}

struct Inner {
    io: Io,
    choices: Arc<Choices>,
    table: Mutex<Table>,
    /// Its permit is the walk's until the walk ends.
    walk: Semaphore,
    /// Folders that may wait: [`FOLDERS`], or fewer if there are few descriptors.
    most: usize,
}

#[derive(Default)]
struct Table {
    /// Takes jobs, once a worker has begun.
    jobs: Option<Jobs<Job>>,
    /// Folders that no job has begun. The order of their paths is the walk's.
    waiting: BTreeMap<PathBuf, Task>,
    /// Folders that a job has begun, in the same order.
    begun: BTreeMap<PathBuf, State>,
    /// Rows of the folders that are ready.
    rows: usize,
    /// Jobs that have not begun.
    queued: usize,
}

enum State {
    /// Its permit is the job's until the folder is ready.
    Running(Arc<Semaphore>),
    Ready(Box<Ready>),
    /// The walk has to examine it.
    Left,
}

impl Ahead {
    pub(super) fn new(io: &Io, choices: &Arc<Choices>) -> Self {
        let (table, walk) = (Mutex::default(), Semaphore::new(1));
        let most = FOLDERS.min(io.descriptors() / 32);
        Self { inner: Arc::new(Inner { io: io.clone(), choices: Arc::clone(choices), table, walk, most }) }
    }

    /// Awaits a walk, and examines folders ahead of it.
    pub(super) async fn beside<T, E>(&self, walk: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let permit = self.inner.walk.acquire().await;
        let jobs = async {
            let this = self.clone();
            let work = async move |jobs: &Jobs<Job>, job| this.perform(jobs, job).await;
            let Inner { io, .. } = &*self.inner;
            // One more for the job that stays.
            let at_once = (io.descriptors() / (32 * io.workers())).clamp(1, AT_ONCE) + 1;
            io.share(vec![Job::Stay], at_once, work).await;
            Ok(())
        };
        let walk = async {
            let done = walk.await;
            drop(permit);
            done
        };
        // Jobs first: a walk that never waits would end before a worker begins.
        let ((), done) = ferry_io::both(jobs, walk).await?;
        Ok(done)
    }

    async fn perform(&self, jobs: &Jobs<Job>, job: Job) {
        match job {
            Job::Stay => {
                self.inner.lock().jobs = Some(jobs.clone());
                // An error means that the run was stopped.
                drop(self.inner.walk.acquire().await);
                *self.inner.lock() = Table::default();
            }
            Job::Examine => self.examine().await,
        }
    }

    async fn examine(&self) {
        let gate = Arc::new(Semaphore::new(1));
        let Ok(permit) = gate.acquire().await else { return };
        let Some(task) = self.inner.lock().begin(&gate) else { return };
        let looked = self.look(&task).await;
        let found = looked.map(|(ready, source, target)| {
            let found = ready.folders().map(|name| Task::new(&task.path, &name.detached(), &source, &target));
            (found.collect::<Vec<_>>(), ready)
        });
        let mut table = self.inner.lock();
        // Those that are not to wait are closed behind the lock.
        let dropped = table.end(task.path, found, self.inner.most);
        self.inner.push_jobs(table);
        drop((permit, dropped));
    }

    /// Lists and examines a folder; `None` if the walk has to do it. The folder stays open for those in it.
    async fn look(&self, task: &Task) -> Option<(Ready, Dir, Dir)> {
        let Task { name, source, target, .. } = task;
        self.inner.choices.pass().await.ok()?;
        let of_source = level::open_small(source, name, Which::Source);
        let of_target = level::open_small(target, name, Which::Target);
        let (source, target) = ferry_io::both(of_source, of_target).await.ok()?;
        let (mut source, mut target) = (source?, target?);
        let is_plain = |listed: &Listed| listed.error.is_none() && !listed.is_trash;
        if !is_plain(&source) || !is_plain(&target) {
            return None;
        }
        if self.inner.choices.deletes {
            target.note_mount();
        }
        let merge = Merge::new(source.take_names(), target.take_names()).ok()?;
        let mut merge = merge.marked(std::mem::take(&mut target.marks));
        let mut rows = Vec::new();
        while let Some(row) = merge.next().ok()? {
            rows.push(row);
            if rows.len() > level::ROWS {
                return None;
            }
        }
        let (of_source, of_target) = (source.dir.take()?, target.dir.take()?);
        let examiner = Examiner { io: &self.inner.io, choices: &self.inner.choices };
        let sides = (Some(&of_source), Some(&of_target));
        let examined = examiner.examine(sides, &rows, |_, _, _| None).await;
        if ferry_io::is_cancelled() {
            return None;
        }
        Some((Ready { source, target, rows, examined }, of_source, of_target))
    }

    /// Returns true if the next folder is unknown, or one soon after it for which there is room.
    pub(super) fn lacks(&self, next: &Path, soon: &Path) -> bool {
        let table = self.inner.lock();
        !table.knows(next) || table.waiting.len() < self.inner.most / 2 && !table.knows(soon)
    }

    /// Adds folders.
    pub(super) fn add(&self, tasks: Vec<Task>) {
        let mut table = self.inner.lock();
        if table.jobs.is_none() {
            return;
        }
        let dropped: Vec<Task> =
            tasks.into_iter().filter_map(|task| table.wait(task, self.inner.most)).collect();
        self.inner.push_jobs(table);
        drop(dropped);
    }

    /// Takes what is known of a folder; `None` if the walk has to examine it. Those before it are no longer needed.
    pub(super) async fn take(&self, path: &Path) -> Option<Ready> {
        let gate = {
            let mut table = self.inner.lock();
            match table.begun.get(path) {
                Some(State::Running(gate)) => Arc::clone(gate),
                Some(State::Ready(_) | State::Left) | None => {
                    let (ready, dropped) = table.take(path);
                    self.inner.push_jobs(table);
                    drop(dropped);
                    return ready;
                }
            }
        };
        drop(gate.acquire().await.ok()?);
        let mut table = self.inner.lock();
        let (ready, dropped) = table.take(path);
        self.inner.push_jobs(table);
        drop(dropped);
        ready
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the jobs for which there are folders and room.
    fn push_jobs(&self, mut table: MutexGuard<'_, Table>) {
        let Some(jobs) = table.jobs.clone() else { return };
        let lacking = table.take_lacking_jobs();
        drop(table);
        for _ in 0..lacking {
            jobs.push(Job::Examine);
        }
    }
}

impl Table {
    /// Lets a folder wait, unless it is known. If too many wait, returns the one that the walk needs last.
    fn wait(&mut self, task: Task, most: usize) -> Option<Task> {
        if self.begun.contains_key(&task.path) {
            return Some(task);
        }
        let known = self.waiting.insert(task.path.clone(), task);
        let is_full = self.waiting.len() > most;
        known.or_else(|| if is_full { self.waiting.pop_last().map(|(_, last)| last) } else { None })
    }

    fn knows(&self, path: &Path) -> bool {
        self.begun.contains_key(path) || self.waiting.contains_key(path)
    }

    /// Number of folders for which there is room ahead of the walk. What the walk needs first may be found last, and is not to
    /// wait for the walk.
    fn room(&self) -> usize {
        let (first, last) = (self.waiting.first_key_value(), self.begun.last_key_value());
        let times =
            if matches!((first, last), (Some((first, _)), Some((last, _))) if first < last) { 2 } else { 1 };
        if self.rows < times * ROWS { (times * FOLDERS).saturating_sub(self.begun.len()) } else { 0 }
    }

    /// Takes the first waiting folder, if there is room.
    fn begin(&mut self, gate: &Arc<Semaphore>) -> Option<Task> {
        self.queued = self.queued.saturating_sub(1);
        if self.room() == 0 {
            return None;
        }
        let (path, task) = self.waiting.pop_first()?;
        self.begun.insert(path, State::Running(Arc::clone(gate)));
        Some(task)
    }

    /// Ends a job: notes what it has found of a folder, and the folders in it. Returns those that are not to wait.
    fn end(&mut self, path: PathBuf, found: Option<(Vec<Task>, Ready)>, most: usize) -> Vec<Task> {
        // The walk may have passed it by.
        let Entry::Occupied(mut begun) = self.begun.entry(path) else { return Vec::new() };
        let Some((folders, ready)) = found else {
            begun.insert(State::Left);
            return Vec::new();
        };
        self.rows += ready.rows.len();
        begun.insert(State::Ready(Box::new(ready)));
        folders.into_iter().filter_map(|task| self.wait(task, most)).collect()
    }

    /// Returns the number of jobs to be queued, and counts them as queued.
    fn take_lacking_jobs(&mut self) -> usize {
        let lacking = self.waiting.len().min(self.room()).saturating_sub(self.queued);
        self.queued += lacking;
        lacking
    }

    /// Takes a folder if it is ready, and drops all before it. One that waits is the walk's own from now on.
    fn take(&mut self, path: &Path) -> (Option<Ready>, Vec<Task>) {
        let mut dropped = Vec::new();
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().as_path() <= path) {
            dropped.push(first.remove());
        }
        let mut taken = None;
        while let Some(first) = self.begun.first_entry().filter(|first| first.key().as_path() <= path) {
            let (at, state) = first.remove_entry();
            if let State::Ready(ready) = state {
                self.rows -= ready.rows.len();
                taken = (at == path).then_some(*ready);
            }
        }
        (taken, dropped)
    }
}

impl Ready {
    /// Returns the folders in it that both sides have.
    fn folders(&self) -> impl Iterator<Item = &Name> {
        self.rows
            .iter()
            .zip(&self.examined)
            .filter(|(_, examined)| has_both_folders(examined))
            .map(|(row, _)| &row.name)
    }
}

impl Task {
    pub(super) fn new(folder: &Path, name: &Name, source: &Dir, target: &Dir) -> Self {
        let path = folder.join(name.as_os_str());
        Self { path, name: name.clone(), source: source.clone(), target: target.clone() }
    }
}

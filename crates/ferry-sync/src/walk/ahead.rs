//! Examining folders ahead of the walk, on all workers.
//!
//! The walk decides about one folder after another, and each decision may depend on those before it. What it has to look at
//! does not: so folders that both trees have are listed and examined by jobs before the walk comes to them. A folder that
//! the walk comes to first is examined by the walk itself. Jobs add the folders that they find, and the walk adds
//! the next siblings of the folder that it enters, so that the newest jobs are those that are needed next.
//!
//! A folder that was examined ahead is closed again. What could not be examined, or is too large, is left to the walk, which
//! reports failures.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferry_io::{Dir, Io, Jobs, Name, Semaphore};

use super::choices::Choices;
use super::examined::{Examined, Examiner, has_both_folders};
use super::level::{self, Listed, Which};
use crate::merge::{Merge, Row};

#[cfg(test)]
mod tests;

/// Folders that wait or are examined ahead, each with up to two descriptors. Jobs add folders up to half of it.
const FOLDERS: usize = 512;
/// Rows of folders that were examined ahead. No folder is begun beyond it.
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
    Examine(Task),
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
    /// [`FOLDERS`], or fewer if there are few descriptors.
    most: usize,
}

#[derive(Default)]
struct Table {
    /// Takes jobs, once a worker has begun.
    jobs: Option<Jobs<Job>>,
    folders: HashMap<PathBuf, State>,
    /// Rows of the folders that are ready.
    rows: usize,
}

enum State {
    Waiting,
    /// Its permit is the job's until the folder is ready.
    Running(Arc<Semaphore>),
    Ready(Box<Ready>),
}

impl Ahead {
    pub(super) fn new(io: &Io, choices: &Arc<Choices>) -> Self {
        let (table, walk) = (Mutex::default(), Semaphore::new(1));
        let most = FOLDERS.min(io.descriptors() / 16);
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
            let at_once = (io.descriptors() / (16 * io.workers())).clamp(1, AT_ONCE) + 1;
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
            Job::Examine(task) => self.examine(jobs, task).await,
        }
    }

    async fn examine(&self, jobs: &Jobs<Job>, task: Task) {
        let gate = Arc::new(Semaphore::new(1));
        let Ok(permit) = gate.acquire().await else { return };
        {
            let mut table = self.inner.lock();
            let is_full = table.rows >= ROWS;
            match table.folders.get_mut(&task.path) {
                Some(_) if is_full => {
                    table.folders.remove(&task.path);
                    return;
                }
                Some(state) => *state = State::Running(Arc::clone(&gate)),
                // The walk has come to it.
                None => return,
            }
        }
        let looked = self.look(&task).await;
        let mut tasks = Vec::new();
        let mut table = self.inner.lock();
        match looked {
            Some((ready, source, target)) => {
                // The first is to be the newest job.
                for name in ready.folders().rev() {
                    let path = task.path.join(name.as_os_str());
                    let (source, target) = (source.clone(), target.clone());
                    let task = Task { path, name: name.detached(), source, target };
                    tasks.extend(table.reserve(task, self.inner.most / 2));
                }
                table.rows += ready.rows.len();
                table.folders.insert(task.path, State::Ready(Box::new(ready)));
            }
            None => {
                table.folders.remove(&task.path);
            }
        }
        drop(table);
        drop(permit);
        for task in tasks {
            jobs.push(Job::Examine(task));
        }
    }

    /// Lists and examines a folder; `None` if the walk has to do it. The folder stays open for those in it.
    async fn look(&self, task: &Task) -> Option<(Ready, Dir, Dir)> {
        let Task { name, source, target, .. } = task;
        let of_source = level::open(source, name, Which::Source);
        let of_target = level::open(target, name, Which::Target);
        let (mut source, mut target) = ferry_io::both(of_source, of_target).await.ok()?;
        let is_plain = |listed: &Listed| listed.error.is_none() && !listed.is_trash;
        if !is_plain(&source) || !is_plain(&target) {
            return None;
        }
        if self.inner.choices.deletes {
            target.note_mount();
        }
        let mut merge = Merge::new(source.take_names(), target.take_names()).ok()?;
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

    /// Adds folders, the first of which are needed first, as long as there is room. Returns their number.
    pub(super) fn add(&self, tasks: Vec<Task>) -> usize {
        let mut table = self.inner.lock();
        let Some(jobs) = table.jobs.clone() else { return 0 };
        let room = self.inner.most.saturating_sub(table.folders.len());
        let count = tasks.len().min(room);
        let added: Vec<Task> = tasks
            .into_iter()
            .take(room)
            .rev()
            .filter_map(|task| table.reserve(task, self.inner.most))
            .collect();
        drop(table);
        for task in added {
            jobs.push(Job::Examine(task));
        }
        count
    }

    /// Takes what is known of a folder; `None` if the walk has to examine it.
    pub(super) async fn take(&self, path: &Path) -> Option<Ready> {
        let gate = {
            let mut table = self.inner.lock();
            match table.folders.get(path)? {
                State::Running(gate) => Some(Arc::clone(gate)),
                State::Waiting | State::Ready(_) => {
                    return table.take(path);
                }
            }
        };
        if let Some(gate) = gate {
            drop(gate.acquire().await.ok()?);
        }
        self.inner.lock().take(path)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Notes that a folder waits, unless it is known or there are too many.
    fn reserve(&mut self, task: Task, most: usize) -> Option<Task> {
        if self.folders.len() >= most || self.folders.contains_key(&task.path) {
            return None;
        }
        self.folders.insert(task.path.clone(), State::Waiting);
        Some(task)
    }

    fn take(&mut self, path: &Path) -> Option<Ready> {
        match self.folders.remove(path)? {
            State::Ready(ready) => {
                self.rows -= ready.rows.len();
                Some(*ready)
            }
            State::Waiting | State::Running(_) => None,
        }
    }
}

impl Ready {
    /// Returns the folders in it that both sides have.
    fn folders(&self) -> impl DoubleEndedIterator<Item = &Name> {
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

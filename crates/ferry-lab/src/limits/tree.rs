//! A tree copied by threads that do everything: each takes a folder, lists it, and copies its files.

use std::ffi::{CStr, CString, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RawDirEntry};
use rustix::io::Errno;

use super::entry::{self, Copier, Folder};
use super::limit::Limit;
use crate::error::Failure;

/// Bytes of one call that lists a folder.
const LISTED: usize = 32 << 10;

/// Folders to be copied. The last one found is taken first, so that few are open.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    jobs: Vec<Job>,
    /// Number of jobs that are queued or being performed.
    pending: usize,
    failure: Option<Failure>,
}

#[derive(Debug)]
enum Job {
    Opened(Arc<Folder>),
    Named(Arc<Folder>, CString),
}

/// Copies the tree.
pub(super) fn copy(how: &Limit, root: Folder) -> Result<(), Failure> {
    let threads = if how.calls.share_a_file() { 1 } else { how.threads };
    let queue = Queue::new(root);
    let work = || {
        let mut copier = Copier::new(how);
        queue.work(how, |folder, name| {
            copier.file((folder.source.as_fd(), name), (folder.target.as_fd(), name)).map_err(at(name))
        });
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            spawn(scope, &queue, work);
        }
        work();
    });
    queue.outcome()
}

/// Starts a thread; if that fails, the copy fails.
pub(super) fn spawn<'s>(scope: &'s Scope<'s, '_>, queue: &Queue, work: impl FnOnce() + Send + 's) {
    if let Err(error) = Builder::new().spawn_scoped(scope, work) {
        queue.fail(Failure::Run(format!("cannot start a thread: {}", crate::message::reason(&error))));
    }
}

/// Returns a function that adds a file's name to an error.
pub(super) fn at(name: &CStr) -> impl Fn(Errno) -> Failure {
    move |errno| Failure::file("copy", Path::new(OsStr::from_bytes(name.to_bytes())), &errno.into())
}

impl Queue {
    pub(super) fn new(root: Folder) -> Self {
        let state = State { jobs: vec![Job::Opened(Arc::new(root))], pending: 1, failure: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Lists folders until none is left, and passes each file to `file`.
    pub(super) fn work(&self, how: &Limit, mut file: impl FnMut(&Arc<Folder>, &CStr) -> Result<(), Failure>) {
        let mut space = vec![MaybeUninit::uninit(); LISTED];
        while let Some(job) = self.take() {
            let listed = job.open(how).and_then(|folder| {
                self.list(how, &folder, &mut space, &mut file)?;
                entry::release(how, folder).map_err(at(c"a folder"))
            });
            if let Err(failure) = listed {
                self.fail(failure);
            }
            self.done();
        }
    }

    fn list(
        &self,
        how: &Limit,
        folder: &Arc<Folder>,
        space: &mut [MaybeUninit<u8>],
        file: &mut impl FnMut(&Arc<Folder>, &CStr) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut entries = RawDir::new(&folder.source, space);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(at(c"a folder"))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match kind(folder, &entry).map_err(at(name))? {
                FileType::RegularFile => file(folder, name)?,
                FileType::Directory => self.add(Job::Named(Arc::clone(folder), name.to_owned())),
                FileType::Symlink => entry::link(how, folder, name).map_err(at(name))?,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(at(name)(Errno::OPNOTSUPP)),
            }
        }
        Ok(())
    }

    /// Waits for a job. Returns `None` once all are done, or one failed.
    fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        while state.pending > 0 && state.failure.is_none() {
            if let Some(job) = state.jobs.pop() {
                return Some(job);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn add(&self, job: Job) {
        let mut state = self.lock();
        state.jobs.push(job);
        state.pending += 1;
        drop(state);
        self.changed.notify_one();
    }

    fn done(&self) {
        let mut state = self.lock();
        state.pending -= 1;
        let is_last = state.pending == 0;
        drop(state);
        if is_last {
            self.changed.notify_all();
        }
    }

    /// Ends the copy; the first failure counts.
    pub(super) fn fail(&self, failure: Failure) {
        self.lock().failure.get_or_insert(failure);
        self.changed.notify_all();
    }

    pub(super) fn outcome(self) -> Result<(), Failure> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failure.map_or(Ok(()), Err)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Opens the folder and makes its copy.
    fn open(self, how: &Limit) -> Result<Arc<Folder>, Failure> {
        let (parent, name) = match self {
            Self::Opened(folder) => return Ok(folder),
            Self::Named(parent, name) => (parent, name),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = |parent| rustix::fs::openat(parent, &name, flags, Mode::empty());
        let source = opened(&parent.source).map_err(at(&name))?;
        rustix::fs::mkdirat(&parent.target, &name, Mode::from_raw_mode(0o777)).map_err(at(&name))?;
        let target = opened(&parent.target).map_err(at(&name))?;
        entry::release(how, parent).map_err(at(&name))?;
        Ok(Arc::new(Folder { source, target }))
    }
}

/// Returns an entry's kind; asks the file if the listing does not have it.
fn kind(folder: &Folder, entry: &RawDirEntry<'_>) -> Result<FileType, Errno> {
    match entry.file_type() {
        FileType::Unknown => {
            let facts = rustix::fs::statat(&folder.source, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(FileType::from_raw_mode(facts.st_mode))
        }
        known @ (FileType::RegularFile
        | FileType::Directory
        | FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice) => Ok(known),
    }
}

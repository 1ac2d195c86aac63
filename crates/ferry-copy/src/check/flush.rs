//! Flushes that many files share: the pages of a small file reach the device with those of all files written meanwhile.
//!
//! One flush of a filesystem runs at a time. Files that are written meanwhile wait for the next one, and form a *group*.
//! So the longer a flush takes, the more files the next one has, and the device gets few large writes instead of one
//! for each file.
//!
//! syncfs(2) also writes what other programs have changed on that filesystem. So fewer than `FEWEST` files at a time share
//! none: reading such a file past the page cache has the kernel write its pages first.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use ferry_io::{Cause, Error, File, Operation, Semaphore};
#[cfg(loom)]
use modelled::{Mutex, lock};
#[cfg(not(loom))]
use std::sync::Mutex;

#[cfg(not(loom))]
use crate::mutex::lock;

/// Largest file that shares a flush, in bytes.
pub(super) const MOST_BYTES: usize = 16 << 10;
/// Fewest files being verified that share one.
const FEWEST: usize = 4;

/// The flushes of all filesystems that the run writes to.
#[derive(Default)]
pub(crate) struct Flushes {
    /// By device.
    of: Mutex<HashMap<u64, Arc<Flush>>>,
    /// Small files being verified.
    pending: AtomicUsize,
}

/// A small file that is being verified.
pub(super) struct Pending<'a>(&'a AtomicUsize);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The flushes of one filesystem.
struct Flush {
    /// Held by the one that runs.
    turn: Semaphore,
    /// The group of the next one; `None` if no file waits for it.
    next: Mutex<Option<Arc<Group>>>,
}

/// Files that share a flush. The first one performs it, and all go on at its end: what they read then shares submissions.
#[derive(Default)]
struct Group(Mutex<Flushed>);

#[derive(Default)]
struct Flushed {
    /// Set at the end: true if the flush has succeeded.
    has_succeeded: Option<bool>,
    waiting: Vec<Waker>,
}

impl Flushes {
    /// Notes that the verification of a small file begins. It ends when the result is dropped.
    pub(super) fn begin(&self) -> Pending<'_> {
        self.pending.fetch_add(1, Ordering::Relaxed);
        Pending(&self.pending)
    }

    /// Waits until the bytes that a file has now are on its device, if enough files share the flush.
    ///
    /// # Errors
    /// Those of fdatasync(2) for this file: the error of a flush may be another file's.
    pub(super) async fn reach_device(&self, file: &File, device: u64) -> ferry_io::Result<()> {
        if self.pending.load(Ordering::Relaxed) < FEWEST {
            return Ok(());
        }
        let flush = Arc::clone(lock(&self.of).entry(device).or_insert_with(|| Arc::new(Flush::new())));
        let has_succeeded = flush.share(async || file.sync_filesystem().await.is_ok()).await?;
        if has_succeeded { Ok(()) } else { file.sync_data().await }
    }
}

impl Flush {
    fn new() -> Self {
        Self { turn: Semaphore::new(1), next: Mutex::new(None) }
    }

    /// Waits for a flush that begins after this call: performs it by `sync`, or shares another file's. Returns true if it has
    /// succeeded.
    async fn share(&self, sync: impl AsyncFnOnce() -> bool) -> ferry_io::Result<bool> {
        match self.join() {
            (group, true) => self.perform(sync, &group).await,
            (group, false) => group.ended().await,
        }
    }

    /// Returns the group of the next flush, and true if this file is the first in it.
    fn join(&self) -> (Arc<Group>, bool) {
        let mut next = lock(&self.next);
        let is_first = next.is_none();
        (Arc::clone(next.get_or_insert_default()), is_first)
    }

    /// Performs the flush of a group once the one before has ended. Returns true if it has succeeded.
    async fn perform(&self, sync: impl AsyncFnOnce() -> bool, group: &Arc<Group>) -> ferry_io::Result<bool> {
        let mut end = End { next: &self.next, group, has_succeeded: false };
        let _turn = self.turn.acquire().await?;
        // Files that are written from now on need another one.
        lock(&self.next).take();
        end.has_succeeded = sync().await;
        Ok(end.has_succeeded)
    }
}

impl Group {
    /// Waits for the end of the flush. Returns true if it has succeeded.
    async fn ended(&self) -> ferry_io::Result<bool> {
        poll_fn(|cx| {
            if ferry_io::is_cancelled() {
                return Poll::Ready(Err(Error { operation: Operation::Wait, cause: Cause::Cancelled }));
            }
            let mut flushed = lock(&self.0);
            if let Some(has_succeeded) = flushed.has_succeeded {
                return Poll::Ready(Ok(has_succeeded));
            }
            if !flushed.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                flushed.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

/// Ends a group, also if its flush was cancelled.
struct End<'a> {
    next: &'a Mutex<Option<Arc<Group>>>,
    group: &'a Arc<Group>,
    has_succeeded: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // It is still the next one if its turn did not come.
        lock(self.next).take_if(|next| Arc::ptr_eq(next, self.group));
        let mut flushed = lock(&self.group.0);
        flushed.has_succeeded = Some(self.has_succeeded);
        let waiting = std::mem::take(&mut flushed.waiting);
        drop(flushed);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(loom)]
mod modelled {
    //! Mutexes whose order of locking a model chooses.

    pub(super) use loom::sync::Mutex;
    use loom::sync::MutexGuard;

    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod model;

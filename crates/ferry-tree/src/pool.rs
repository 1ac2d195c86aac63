//! Threads that share a stack of jobs, where a job may make more jobs.
//!
//! The newest job is taken first, so a tree is walked about depth first and few jobs wait. A thread adds
//! jobs only when it has ended one, and never waits to do so: there is no full queue to block on.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs that wait, and how many are being done.
struct Stack<J> {
    jobs: Vec<J>,
    busy: usize,
    broken: bool,
}

struct Shared<J> {
    stack: Mutex<Stack<J>>,
    changed: Condvar,
}

/// Does `first` and all jobs that come of it on up to `threads` threads, this one among them.
/// `state` makes what each thread keeps between jobs. A panic in `work` ends the others, and is passed on.
pub(crate) fn run<J: Send, S>(
    threads: usize,
    first: J,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, J, &mut Vec<J>) + Sync,
) {
    let stack = Stack { jobs: vec![first], busy: 0, broken: false };
    let shared = Shared { stack: Mutex::new(stack), changed: Condvar::new() };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let worker = || shared.work(&mut state(), &work);
            // Without a further thread this one does all the work.
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        shared.work(&mut state(), &work);
    });
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, Stack<J>> {
        self.stack.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work<S>(&self, state: &mut S, work: &impl Fn(&mut S, J, &mut Vec<J>)) {
        let mut made = Vec::new();
        while let Some(job) = self.take() {
            let ended = Ended { shared: self, made: &mut made };
            work(state, job, ended.made);
        }
    }

    /// The next job; `None` once none waits and none is being done.
    fn take(&self) -> Option<J> {
        let mut stack = self.lock();
        loop {
            if stack.broken {
                return None;
            }
            if let Some(job) = stack.jobs.pop() {
                stack.busy += 1;
                return Some(job);
            }
            if stack.busy == 0 {
                return None;
            }
            stack = self.changed.wait(stack).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Counts a job as done and hands over what it made, even if it panicked: others wait for it.
struct Ended<'a, J> {
    shared: &'a Shared<J>,
    made: &'a mut Vec<J>,
}

impl<J> Drop for Ended<'_, J> {
    fn drop(&mut self) {
        let mut stack = self.shared.lock();
        stack.busy -= 1;
        stack.broken |= std::thread::panicking();
        // Reversed, so that the first one made is the next one taken.
        stack.jobs.extend(self.made.drain(..).rev());
        if stack.busy == 0 || stack.broken || !stack.jobs.is_empty() {
            self.shared.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;

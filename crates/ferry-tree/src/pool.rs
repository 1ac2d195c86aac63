//! Threads that share a stack of jobs. A job may add further jobs.
//!
//! The newest job is taken first, so a tree is walked roughly depth first and few jobs are pending. A thread adds
//! jobs only after it has finished one. The stack is unbounded, so adding never blocks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Stack<J> {
    jobs: Vec<J>,
    busy: usize,
    broken: bool,
}

struct Shared<J> {
    stack: Mutex<Stack<J>>,
    changed: Condvar,
}

/// Runs `first` and all jobs that come of it on up to `threads` threads, including the caller's. `state` creates
/// the state that each thread keeps between jobs. A panic in `work` ends the other threads and is propagated.
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
            // If no more threads can be created, the existing ones do all the work.
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

    /// Returns the next job, or `None` once no job is pending or being executed.
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

/// Marks a job as finished and adds its jobs to the stack, even after a panic, because other threads wait for them.
struct Ended<'a, J> {
    shared: &'a Shared<J>,
    made: &'a mut Vec<J>,
}

impl<J> Drop for Ended<'_, J> {
    fn drop(&mut self) {
        let mut stack = self.shared.lock();
        stack.busy -= 1;
        stack.broken |= std::thread::panicking();
        // Reversed, so that the first job added is the next one taken.
        stack.jobs.extend(self.made.drain(..).rev());
        if stack.busy == 0 || stack.broken || !stack.jobs.is_empty() {
            self.shared.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;

//! Threads that start on another processor than their starter's.
//!
//! The kernel may place a new thread on its starter's processor although another is idle. In a guest under KVM one of
//! the two waited for the next tick in 19 of 20 starts, 1.2 to 4 ms (docs/decisions/0007). So the new thread is moved
//! away, by itself or by its starter, whichever comes first. Before its work begins it may run wherever its starter
//! may, because its own threads inherit that (guard: `a_started_thread_may_run_anywhere`). With a single allowed
//! processor nothing is done.

use std::os::unix::thread::JoinHandleExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::sys::count_call;

/// Starts a thread whose caller goes on working.
///
/// # Errors
/// Those of pthread_create(3).
pub(crate) fn start_beside(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let start = Here::now().map(|here| Arc::new((here, Mutex::new(Placement::Anywhere))));
    let started = start.clone();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Some(start) = started {
            start.0.arrive(&start.1);
        }
        body();
    })?;
    if let Some(start) = start {
        start.0.send_away(&start.1, &thread);
    }
    Ok(thread)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    Anywhere,
    /// Not on its starter's processor.
    Elsewhere,
    /// The thread runs and places itself.
    Arrived,
}

/// The starter's processor, and the allowed ones.
struct Here {
    processor: usize,
    all: CpuSet,
    others: CpuSet,
}

impl Here {
    /// Those of the calling thread, unless it may use one processor only.
    fn now() -> Option<Self> {
        count_call();
        let all = sched_getaffinity(None).ok()?;
        let processor = sched_getcpu();
        let mut others = all;
        others.unset(processor);
        (others.count() > 0).then_some(Self { processor, all, others })
    }

    /// The new thread's first steps: it leaves its starter's processor, then may run anywhere.
    fn arrive(&self, place: &Mutex<Placement>) {
        let was = std::mem::replace(&mut *lock(place), Placement::Arrived);
        if sched_getcpu() == self.processor {
            run_on(&self.others);
        } else if was == Placement::Anywhere {
            return;
        }
        run_on(&self.all);
    }

    /// The starter's part: it moves a thread that has not arrived yet.
    fn send_away(&self, place: &Mutex<Placement>, thread: &JoinHandle<()>) {
        let mut place = lock(place);
        if *place == Placement::Arrived {
            return;
        }
        *place = Placement::Elsewhere;
        count_call();
        let bits = bits(&self.others);
        let (size, set) = (size_of_val(&bits), bits.as_ptr().cast());
        // SAFETY: the thread has not arrived, and can't end before; the set outlives the call, which reads it.
        unsafe { libc::pthread_setaffinity_np(thread.as_pthread_t(), size, set) };
    }
}

fn run_on(set: &CpuSet) {
    count_call();
    // If refused, the thread is only slower.
    sched_setaffinity(None, set).ok();
}

fn lock(place: &Mutex<Placement>) -> MutexGuard<'_, Placement> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The set as the C library takes it: one bit per processor.
fn bits(set: &CpuSet) -> [libc::c_ulong; WORDS] {
    let bit = |word: usize, at: usize| libc::c_ulong::from(set.is_set(word * BITS + at)) << at;
    std::array::from_fn(|word| (0..BITS).map(|at| bit(word, at)).sum())
}

const BITS: usize = libc::c_ulong::BITS as usize;
const WORDS: usize = CpuSet::MAX_CPU / BITS;

#[cfg(test)]
mod tests;

//! Threads that begin beside who starts them.
//!
//! A new thread may find itself on its starter's processor, though another is idle: in a guest under KVM one of the two
//! waited for the next tick in 19 of 20 starts, 1.2 to 4 ms (docs/decisions/0007). So whoever of them is there first sends
//! the new thread away. Before it begins its work it may run wherever its starter may: what it starts inherits that
//! (guard: `a_started_thread_may_run_anywhere`). Where only one processor may be used, nothing is done.

use std::os::unix::thread::JoinHandleExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::sys::count_call;

/// Starts a thread that goes on beside its caller, who has work to do meanwhile.
///
/// # Errors
/// Those of pthread_create(3).
pub(crate) fn start_beside(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let start = Here::now().map(|here| Arc::new((here, Mutex::new(Place::Anywhere))));
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

/// Where a new thread may run until it begins its work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// Off its starter's processor.
    Elsewhere,
    /// It is there, and sees to itself.
    Arrived,
}

/// A processor, and others that may be used.
struct Here {
    processor: usize,
    all: CpuSet,
    others: CpuSet,
}

impl Here {
    /// The calling thread's, unless it may use no other.
    fn now() -> Option<Self> {
        count_call();
        let all = sched_getaffinity(None).ok()?;
        let processor = sched_getcpu();
        let mut others = all;
        others.unset(processor);
        (others.count() > 0).then_some(Self { processor, all, others })
    }

    /// The new thread's first steps: off the processor, if it has taken it from its starter, and free to go anywhere.
    fn arrive(&self, place: &Mutex<Place>) {
        let was = std::mem::replace(&mut *lock(place), Place::Arrived);
        if sched_getcpu() == self.processor {
            run_on(&self.others);
        } else if was == Place::Anywhere {
            return;
        }
        run_on(&self.all);
    }

    /// The starter's part, if the thread has not arrived: it need not wait until the starter pauses.
    fn send_away(&self, place: &Mutex<Place>, thread: &JoinHandle<()>) {
        let mut place = lock(place);
        if *place == Place::Arrived {
            return;
        }
        *place = Place::Elsewhere;
        count_call();
        let bits = bits(&self.others);
        let (size, set) = (size_of_val(&bits), bits.as_ptr().cast());
        // SAFETY: the thread has not arrived, and can't end before; the set outlives the call, which reads it.
        unsafe { libc::pthread_setaffinity_np(thread.as_pthread_t(), size, set) };
    }
}

fn run_on(set: &CpuSet) {
    count_call();
    // Refused, it is slower, and right all the same.
    sched_setaffinity(None, set).ok();
}

fn lock(place: &Mutex<Place>) -> MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The set as the C library takes it: a bit a processor.
fn bits(set: &CpuSet) -> [libc::c_ulong; WORDS] {
    let bit = |word: usize, at: usize| libc::c_ulong::from(set.is_set(word * BITS + at)) << at;
    std::array::from_fn(|word| (0..BITS).map(|at| bit(word, at)).sum())
}

const BITS: usize = libc::c_ulong::BITS as usize;
const WORDS: usize = CpuSet::MAX_CPU / BITS;

#[cfg(test)]
mod tests;

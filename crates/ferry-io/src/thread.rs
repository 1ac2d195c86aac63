//! Threads that begin beside who starts them.
//!
//! A new thread may find itself on its starter's processor, though another is idle: in a guest under KVM the scheduler
//! left it there in 12 of 20 starts, and one of the two waited for the next tick, 2 to 4 ms (docs/decisions/0007). So
//! whoever of them is there first sends the new thread away; afterwards both may run anywhere again. Where only one
//! processor may be used, nothing is done (guard: `a_started_thread_may_run_anywhere`).

use std::os::unix::thread::JoinHandleExt as _;
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
    let here = Here::now();
    let there = here.clone();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Some(here) = there.filter(|here| here.processor == sched_getcpu()) {
            // It has taken the processor from its starter.
            here.leave();
        }
        body();
    })?;
    if let Some(here) = here {
        here.send_away(&thread);
    }
    Ok(thread)
}

/// A processor, and others that may be used.
#[derive(Clone)]
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

    /// Has the calling thread go on elsewhere.
    fn leave(&self) {
        for set in [&self.others, &self.all] {
            count_call();
            // It is no worse off where it is.
            sched_setaffinity(None, set).ok();
        }
    }

    /// The same for a thread that has perhaps not begun yet.
    fn send_away(&self, thread: &JoinHandle<()>) {
        for set in [&self.others, &self.all] {
            count_call();
            let bits = bits(set);
            let (size, set) = (size_of_val(&bits), bits.as_ptr().cast());
            // SAFETY: the handle has not been joined, so it names a thread; the set outlives the call, which reads it.
            unsafe { libc::pthread_setaffinity_np(thread.as_pthread_t(), size, set) };
        }
    }
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

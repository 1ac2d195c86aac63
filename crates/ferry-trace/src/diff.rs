//! Difference between two recordings of the same kind of run: the causes why the second one, B, took longer than A.
//!
//! Operations are concurrent, so their summed times exceed the wall time, and a sum that has grown proves nothing. The
//! wall time of each recording is divided instead (`sweep.rs`): each moment belongs to the first [`State`] that
//! applies, and operations in that state share it equally. Time of a thread belongs to the operation that it leads to
//! (`threads.rs`). So each kind of operation on each route has its part of the wall time (`profile.rs`), and all parts
//! add up to it.
//!
//! `causes.rs` compares as many operations of each kind as both recordings have, by their mean parts. For operations
//! that kept their route, the state names the cause. Operations that moved to another route differ by that route, but
//! for the time at the device where their data was not in memory. Operations of one kind that replace those of another
//! differ by their route as far as they ran elsewhere. The device's time also grows if fewer operations are performed
//! at once. That is a cost of hand-overs as far as operations are late: performed at a time when they would be completed
//! if they had not waited. Guards: the tests inject each cause.
//!
//! Without the kernel's side of both recordings, sleeps of threads are unknown. Then a call on a worker that takes more
//! than 50 µs, and 1 ns for each byte, counts as device wait unless it was tried without blocking.
//!
//! Limits: a thread that is ready to run counts as running, because the kernel's side has no preemptions. A device that
//! works while threads run costs no wall time. Only a run's own time counts, from its first worker's begin to its
//! last worker's end, without setting up the recording.

mod causes;
mod cell;
mod profile;
mod sweep;
mod threads;

#[cfg(test)]
mod tests;

pub use causes::{Cause, Contribution, Move, Part, Subject};
pub use profile::HandedOver;
pub use sweep::State;
pub use threads::Basis;

use crate::Trace;
use crate::model::Nanos;
use causes::Comparison;
use profile::Profile;

/// The difference between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The first run, A.
    pub before: Run,
    /// The second run, B.
    pub after: Run,
    /// Evidence for what threads did.
    pub basis: Basis,
    /// All causes, the largest first, [`Cause::Unexplained`] last.
    pub causes: Vec<Part>,
    /// Operations of the same kind that ran on another route in B, the largest difference first.
    pub moves: Vec<Move>,
}

/// Wall time of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Wall time.
    pub took: Nanos,
    /// Its division, in the order of [`State::ALL`].
    pub states: [Nanos; State::ALL.len()],
    /// Number of operations with a result.
    pub operations: u64,
    /// Operations that were handed over.
    pub handed_over: HandedOver,
    /// True if the kernel's side was recorded.
    pub has_kernel: bool,
}

impl Diff {
    /// Compares two recordings; `None` if only one of them has operations of the runtime.
    #[must_use]
    pub fn of(before: &Trace, after: &Trace) -> Option<Self> {
        if before.operations.is_empty() != after.operations.is_empty() {
            return None;
        }
        let basis = Basis::of(before).max(Basis::of(after));
        let (a, b) = (Profile::of(before, basis), Profile::of(after, basis));
        let (causes, moves) = Comparison::of(&a, &b).finish();
        Some(Self { before: run(before, &a), after: run(after, &b), basis, causes, moves })
    }

    /// Wall time of B less that of A.
    #[must_use]
    pub fn difference(&self) -> i64 {
        i64::try_from(i128::from(self.after.took) - i128::from(self.before.took)).unwrap_or(i64::MAX)
    }
}

fn run(trace: &Trace, profile: &Profile) -> Run {
    Run {
        took: profile.took,
        states: profile.states,
        operations: profile.operations,
        handed_over: profile.handed_over,
        has_kernel: Basis::of(trace) == Basis::Kernel,
    }
}

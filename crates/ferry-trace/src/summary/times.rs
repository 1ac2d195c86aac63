//! Durations, and time use of threads.

use super::counts::{of_role, size};
use crate::Trace;
use crate::model::{Nanos, Operation, Role, ScopeKind};

/// Distribution of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Number of durations.
    pub count: u64,
    /// Sum.
    pub total: Nanos,
    /// Median (nearest rank).
    pub median: Nanos,
    /// 99th percentile (nearest rank).
    pub p99: Nanos,
    /// Maximum.
    pub max: Nanos,
}

impl Times {
    /// Returns the distribution; `None` without durations.
    #[must_use]
    pub fn of(mut durations: Vec<Nanos>) -> Option<Self> {
        durations.sort_unstable();
        let rank = |percent: usize| durations.get((durations.len() * percent).div_ceil(100).checked_sub(1)?);
        Some(Self {
            count: size(durations.len()),
            total: together(durations.iter().copied()),
            median: *rank(50)?,
            p99: *rank(99)?,
            max: *durations.last()?,
        })
    }
}

/// Saturating sum, because a file may contain any numbers.
pub(super) fn together(times: impl Iterator<Item = Nanos>) -> Nanos {
    times.fold(0, Nanos::saturating_add)
}

/// Phases of an operation's time, whose sum is the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Until its batch was submitted (ring) or a thread began to execute it.
    pub queued: Nanos,
    /// From then until its completion.
    pub running: Nanos,
    /// From then until the worker took the result.
    pub untaken: Nanos,
    /// Execution and waiting for the worker, where the completion is unknown.
    pub unknown: Nanos,
}

impl Phases {
    pub(super) fn of(operations: &[&Operation]) -> Self {
        operations.iter().filter_map(|operation| Self::of_one(operation)).fold(Self::default(), |sum, one| {
            Self {
                queued: sum.queued.saturating_add(one.queued),
                running: sum.running.saturating_add(one.running),
                untaken: sum.untaken.saturating_add(one.untaken),
                unknown: sum.unknown.saturating_add(one.unknown),
            }
        })
    }

    /// Phases of one operation; `None` without a result.
    #[must_use]
    pub fn of_one(operation: &Operation) -> Option<Self> {
        let (asked, taken) = (operation.asked, operation.taken?);
        // Clocks of two processors may differ by some nanoseconds.
        let began = operation.started.or(operation.submitted).unwrap_or(asked).clamp(asked, taken.max(asked));
        let queued = began - asked;
        let Some(completed) = operation.completed else {
            return Some(Self { queued, unknown: taken.saturating_sub(began), ..Self::default() });
        };
        let completed = completed.clamp(began, taken.max(began));
        let (running, untaken) = (completed - began, taken.saturating_sub(completed));
        Some(Self { queued, running, untaken, unknown: 0 })
    }
}

/// Time use of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread, in [`Trace::threads`].
    pub thread: u32,
    /// Lifetime: of a worker its outermost scope, of others the whole recording.
    pub lived: Nanos,
    /// Part of the lifetime in which a worker did not sleep, or a pool thread executed operations.
    pub busy: Nanos,
    /// Operations requested from a worker, or executed by a pool thread.
    pub operations: u64,
}

/// Time use of all pool threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolTime {
    /// Number of threads.
    pub threads: u64,
    /// Operations that they executed.
    pub operations: u64,
    /// Sum of their lifetimes.
    pub lived: Nanos,
    /// Sum of the times in which they executed operations.
    pub busy: Nanos,
    /// Smallest, median (nearest rank) and largest busy time of a thread, each with that thread's lifetime.
    pub shares: [(Nanos, Nanos); 3],
}

impl PoolTime {
    /// Sums the pool's threads up; `None` if there are none.
    #[must_use]
    pub fn of(trace: &Trace, threads: &[ThreadTime]) -> Option<Self> {
        let is_pool = |its: &&ThreadTime| {
            trace.threads.get(its.thread as usize).is_some_and(|thread| thread.role == Role::Pool)
        };
        let mut its: Vec<&ThreadTime> = threads.iter().filter(is_pool).collect();
        // All of them live as long as the recording.
        its.sort_by_key(|thread| thread.busy);
        let share = |thread: &&ThreadTime| (thread.busy, thread.lived);
        let median = its.get(its.len().div_ceil(2).checked_sub(1)?)?;
        Some(Self {
            threads: size(its.len()),
            operations: its.iter().map(|thread| thread.operations).sum(),
            lived: together(its.iter().map(|thread| thread.lived)),
            busy: together(its.iter().map(|thread| thread.busy)),
            shares: [its.first().map(share)?, share(median), its.last().map(share)?],
        })
    }
}

/// Workers, then pool threads. One pass, because a file may contain many threads.
pub(super) fn threads(trace: &Trace) -> Vec<ThreadTime> {
    let took = trace.about.took;
    let every = (0_u32..).zip(&trace.threads);
    let mut found: Vec<ThreadTime> =
        every.map(|(thread, _)| ThreadTime { thread, lived: took, busy: 0, operations: 0 }).collect();
    let is_of =
        |role| move |thread: u32| trace.threads.get(thread as usize).is_some_and(|its| its.role == role);
    let (is_worker, is_pool) = (is_of(Role::Worker), is_of(Role::Pool));
    // The first of a worker's outermost scopes counts.
    for scope in
        trace.scopes.iter().rev().filter(|scope| scope.kind == ScopeKind::Run && is_worker(scope.thread))
    {
        found[scope.thread as usize].lived = scope.ended.unwrap_or(took).saturating_sub(scope.began);
    }
    // Workers are busy while they are not idle.
    let mut rested = vec![0_u64; found.len()];
    for rest in trace.rests.iter().filter(|rest| is_worker(rest.thread)) {
        let sum = &mut rested[rest.thread as usize];
        *sum = sum.saturating_add(rest.ended.saturating_sub(rest.began));
    }
    for operation in &trace.operations {
        if is_worker(operation.thread) {
            found[operation.thread as usize].operations += 1;
        }
        if let Some(thread) = operation.ran_on.filter(|&thread| is_pool(thread)) {
            let its = &mut found[thread as usize];
            its.operations += 1;
            if let (Some(started), Some(completed)) = (operation.started, operation.completed) {
                its.busy = its.busy.saturating_add(completed.saturating_sub(started));
            }
        }
    }
    let workers = of_role(trace, Role::Worker).map(|thread| {
        let its = found[thread as usize];
        ThreadTime { busy: its.lived.saturating_sub(rested[thread as usize]), ..its }
    });
    workers.chain(of_role(trace, Role::Pool).map(|thread| found[thread as usize])).collect()
}

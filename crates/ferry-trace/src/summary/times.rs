//! How long things took, and what threads did with their time.

use super::counts::{of_role, size};
use crate::Trace;
use crate::model::{Nanos, Operation, Role, ScopeKind};

/// How long things of one sort took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How many there were.
    pub count: u64,
    /// Together.
    pub total: Nanos,
    /// Half of them took no longer (nearest rank).
    pub median: Nanos,
    /// 99 of 100 took no longer (nearest rank).
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl Times {
    /// Of these; none of none.
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

/// All of these. A recording may hold any numbers: the sum ends at the largest.
pub(super) fn together(times: impl Iterator<Item = Nanos>) -> Nanos {
    times.fold(0, Nanos::saturating_add)
}

/// What the time from asked to taken was spent on; together all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Until its batch was submitted (ring), or somebody began to run it.
    pub queued: Nanos,
    /// Then, until the answer was there.
    pub running: Nanos,
    /// Then, until the worker took it.
    pub untaken: Nanos,
    /// Running and not yet taken, where nothing says when the answer was there.
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

    /// Of one operation; none if it was not taken.
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

/// What a thread did with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTime {
    /// In [`Trace::threads`].
    pub thread: u32,
    /// How long it was there: a worker's outermost scope; the whole recording of others.
    pub lived: Nanos,
    /// How long of that it did not sleep (workers), or ran operations (pool threads).
    pub busy: Nanos,
    /// Operations it was asked (workers), or ran (pool threads).
    pub operations: u64,
}

/// Workers, then pool threads; found in one pass, as a file may name many.
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
    // What workers did not rest.
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

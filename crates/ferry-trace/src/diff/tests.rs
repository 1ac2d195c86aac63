use ferry_io::{Operation as Kind, Reason, Route};

use super::sweep::{Interval, Shares, sweep};
use super::threads::{Arrival, divide};
use super::{Basis, Cause, Diff, Move, State, Subject};
use crate::model::{About, Did, KernelEvent, Nanos, Operation, Rest, Role, Scope, ScopeKind, Thread, Trace};

/// Times of a simulated run in nanoseconds: each of several fibers loads a file, and then stores it.
#[derive(Debug, Clone, Copy)]
struct Plan {
    files: usize,
    fibers: usize,
    pool_threads: usize,
    /// Route of loads, and the reason for it.
    route: (Route, Reason),
    /// From the request of a load until a free pool thread begins it.
    hand_over: Nanos,
    /// Shortest time of a load at the device.
    device: Nanos,
    /// Longest time of a load at the device, in units of the shortest.
    spread: usize,
    /// True if the device performs one load at a time.
    is_serial: bool,
    /// From the completion of a load until its result is taken.
    untaken: Nanos,
    /// Time of a store, on the worker.
    store: Nanos,
    basis: Basis,
}

const PLAN: Plan = Plan {
    files: 200,
    fibers: 1,
    pool_threads: 1,
    route: (Route::Pool, Reason::Missed),
    hand_over: 20_000,
    device: 300_000,
    spread: 1,
    is_serial: false,
    untaken: 10_000,
    store: 30_000,
    basis: Basis::Kernel,
};

fn operation(kind: Kind, (route, reason): (Route, Reason), times: [Nanos; 5]) -> Operation {
    let [asked, submitted, started, completed, taken] = times;
    Operation {
        kind,
        thread: 0,
        fiber: None,
        name: String::new(),
        size: 0,
        offset: None,
        route,
        reason,
        asked,
        submitted: Some(submitted),
        started: (route != Route::Ring).then_some(started),
        completed: Some(completed),
        taken: Some(taken),
        result: Some(Ok(0)),
        abandoned: false,
        ran_on: None,
        submission: None,
        request: None,
        met: None,
    }
}

/// A recording of a worker (0) and pool threads, without events.
fn recording(pool_threads: usize, basis: Basis) -> Trace {
    let thread = |role| Thread { tid: 1, role, name: String::new() };
    let mut threads = vec![thread(Role::Worker)];
    threads.resize(1 + pool_threads, thread(Role::Pool));
    let monotonic = u64::from(basis == Basis::Kernel);
    Trace { about: About { monotonic, ..About::default() }, threads, ..Trace::default() }
}

impl Plan {
    /// The worker is idle unless it stores. A pool thread sleeps unless it begins or ends a load.
    fn run(self) -> Trace {
        let mut trace = recording(self.pool_threads, self.basis);
        let mut free = vec![0; self.pool_threads];
        // When each fiber asks for its next file, and when the worker has time for a store.
        let mut asks = vec![0; self.fibers];
        let (mut worker, mut rested) = (0, 0);
        for file in 0..self.files {
            let fiber = (0..self.fibers).min_by_key(|&fiber| asks[fiber]).unwrap();
            let device = self.device * Nanos::try_from(1 + file % self.spread).unwrap();
            let taken = self.load(&mut trace, asks[fiber], device, &mut free);
            if self.route.0 == Route::Inline {
                rested = taken;
            }
            let stored = taken.max(worker);
            if stored > rested {
                trace.rests.push(Rest { thread: 0, began: rested, ended: stored });
            }
            worker = stored + self.store;
            rested = worker;
            let times = [stored, stored, stored, worker, worker];
            trace.operations.push(operation(Kind::Store, (Route::Inline, Reason::Changes), times));
            asks[fiber] = worker;
        }
        trace.about.took = worker;
        trace.scopes.push(run_scope(0, worker));
        if self.basis == Basis::Kernel {
            let sleeps = trace
                .rests
                .iter()
                .flat_map(|rest| [(rest.began, Did::Sleep), (rest.ended, Did::Wake { by: None })]);
            let sleeps: Vec<KernelEvent> = sleeps.map(|(at, did)| event(0, at, did)).collect();
            trace.kernel.extend(sleeps);
            trace.kernel.sort_by_key(|event| event.at);
        }
        trace
    }

    /// Adds a load, and returns when its result was taken.
    fn load(self, trace: &mut Trace, asked: Nanos, device: Nanos, free: &mut [Nanos]) -> Nanos {
        if self.route.0 == Route::Inline {
            let ended = asked + device;
            trace.operations.push(operation(Kind::Load, self.route, [asked, asked, asked, ended, ended]));
            return ended;
        }
        let thread = (0..free.len()).min_by_key(|&thread| free[thread]).unwrap();
        let begun = free[thread].max(asked + self.hand_over);
        let earlier = trace
            .operations
            .iter()
            .filter(|_| self.is_serial)
            .filter_map(|its| its.ran_on.and(its.completed));
        let completed = earlier.max().unwrap_or(0).max(begun) + device;
        free[thread] = completed;
        let taken = completed + self.untaken;
        let load = operation(Kind::Load, self.route, [asked, asked, begun, completed, taken]);
        let ran_on = u32::try_from(thread + 1).ok();
        trace.operations.push(Operation { ran_on, ..load });
        if let (Some(thread), Basis::Kernel) = (ran_on, self.basis) {
            let times = [(begun, Did::Wake { by: None }), (begun + 1, Did::Sleep)];
            trace.kernel.extend(times.map(|(at, did)| event(thread, at, did)));
        }
        taken
    }
}

fn event(thread: u32, at: Nanos, did: Did) -> KernelEvent {
    KernelEvent { thread, at, processor: 0, did, chain: None }
}

fn run_scope(began: Nanos, ended: Nanos) -> Scope {
    Scope {
        kind: ScopeKind::Run,
        thread: 0,
        fiber: None,
        name: String::new(),
        began,
        ended: Some(ended),
        cancelled: None,
    }
}

fn difference(diff: &Diff, cause: Cause) -> i64 {
    diff.causes.iter().find(|part| part.cause == cause).unwrap().difference
}

/// Compares two runs on each basis: at least 90 % of the difference must have this cause, in both directions.
#[track_caller]
fn assert_is_caused_by(before: Plan, after: Plan, cause: Cause) -> Diff {
    let mut last = None;
    for basis in [Basis::Program, Basis::Kernel] {
        let (a, b) = (Plan { basis, ..before }.run(), Plan { basis, ..after }.run());
        for (a, b) in [(&a, &b), (&b, &a)] {
            let diff = Diff::of(a, b).unwrap();
            assert_eq!(diff.basis, basis);
            let (all, its) = (diff.difference(), difference(&diff, cause));
            assert!(all.abs() > 1_000_000, "the runs hardly differ: {diff:?}");
            let (low, high) = (all.abs() * 9 / 10, all.abs() * 11 / 10);
            assert!((low..=high).contains(&(its * all.signum())), "{its} of {all}: {diff:#?}");
            let sum: i64 = diff.causes.iter().map(|part| part.difference).sum();
            assert_eq!(sum, all, "the causes add up");
            assert!(difference(&diff, Cause::Unexplained).abs() < 1_000, "{diff:#?}");
        }
        last = Diff::of(&a, &b);
    }
    last.unwrap()
}

#[test]
fn a_slower_device_is_found() {
    let slow = Plan { device: 3 * PLAN.device, ..PLAN };
    let diff = assert_is_caused_by(PLAN, slow, Cause::DeviceWait);
    let part = &diff.causes[0];
    assert_eq!(part.contributions[0].subject, Subject::Operations(Kind::Load, Route::Pool));
}

#[test]
fn a_slower_device_is_found_though_operations_wait_for_busy_threads() {
    let busy = Plan { fibers: 32, pool_threads: 4, spread: 4, ..PLAN };
    assert_is_caused_by(busy, Plan { device: 3 * PLAN.device, ..busy }, Cause::DeviceWait);
}

#[test]
fn a_slower_device_is_found_though_fewer_operations_wait_in_its_queue() {
    let plan = Plan { fibers: 4, pool_threads: 4, store: 1_000, is_serial: true, ..PLAN };
    assert_is_caused_by(plan, Plan { device: 5 * plan.device, pool_threads: 3, ..plan }, Cause::DeviceWait);
}

#[test]
fn operations_that_move_from_the_worker_to_the_pool_are_found() {
    let before = Plan { route: (Route::Inline, Reason::Asked), device: 3_000, ..PLAN };
    let after = Plan { route: (Route::Pool, Reason::Forced), device: 3_000, ..PLAN };
    let diff = assert_is_caused_by(before, after, Cause::Route);
    let expected = Move {
        kind: Kind::Load,
        before: Route::Inline,
        after: Route::Pool,
        operations: 200,
        difference: diff.difference(),
    };
    assert_eq!(diff.moves, [expected]);
    assert_eq!((diff.before.handed_over.to_pool, diff.after.handed_over.to_pool), (0, 200));
    assert_eq!(diff.after.handed_over.means(), Some((PLAN.hand_over, PLAN.untaken)));
}

#[test]
fn data_that_is_no_longer_in_memory_is_device_wait_on_any_route() {
    let cached = Plan { route: (Route::Inline, Reason::Asked), device: 3_000, ..PLAN };
    let cold = Plan { hand_over: 5_000, untaken: 5_000, ..PLAN };
    let diff = assert_is_caused_by(cached, cold, Cause::DeviceWait);
    assert!(difference(&diff, Cause::Route) > 0, "hand-overs come with the route: {diff:#?}");
}

#[test]
fn delayed_hand_overs_are_found() {
    let diff = assert_is_caused_by(PLAN, Plan { hand_over: 20 * PLAN.hand_over, ..PLAN }, Cause::HandOvers);
    assert_eq!(diff.before.handed_over.to_pool, diff.after.handed_over.to_pool);
    assert_is_caused_by(PLAN, Plan { untaken: 40 * PLAN.untaken, ..PLAN }, Cause::HandOvers);
}

#[test]
fn delayed_hand_overs_are_found_though_other_operations_are_performed_meanwhile() {
    let plan = Plan { fibers: 4, pool_threads: 4, store: 1_000, hand_over: 1_000, spread: 4, ..PLAN };
    assert_is_caused_by(plan, Plan { hand_over: 600_000, ..plan }, Cause::HandOvers);
}

#[test]
fn too_few_pool_threads_are_found() {
    let plan = Plan { fibers: 8, pool_threads: 8, store: 1_000, ..PLAN };
    assert_is_caused_by(plan, Plan { pool_threads: 1, ..plan }, Cause::HandOvers);
}

#[test]
fn too_few_pool_threads_are_found_in_a_run_that_is_mostly_a_queue_growing_shorter() {
    let plan = Plan { files: 16, fibers: 8, pool_threads: 8, store: 1_000, ..PLAN };
    assert_is_caused_by(plan, Plan { pool_threads: 1, ..plan }, Cause::HandOvers);
}

#[test]
fn more_processor_time_is_found() {
    let plan = Plan { store: 10_000, ..PLAN };
    assert_is_caused_by(plan, Plan { store: 40_000, ..plan }, Cause::ProcessorTime);
}

#[test]
fn a_thread_that_is_kept_from_its_processor_is_found_only_with_the_kernels_side() {
    let run = |store, basis| Plan { store, basis, ..PLAN }.run();
    let cause = |basis| {
        let diff = Diff::of(&run(20_000, basis), &run(4_000_000, basis)).unwrap();
        diff.causes[0].cause
    };
    assert_eq!(cause(Basis::Kernel), Cause::ProcessorTime);
    assert_eq!(cause(Basis::Program), Cause::DeviceWait, "the call may have slept");
}

#[test]
fn one_recording_without_the_kernels_side_decides_what_is_known_of_both() {
    let with = PLAN.run();
    let mut without = with.clone();
    without.about.missing.push("nothing of the kernel's side: it needs root or CAP_PERFMON".to_owned());
    let diff = Diff::of(&with, &without).unwrap();
    assert_eq!(diff.basis, Basis::Program);
    assert_eq!((diff.before.has_kernel, diff.after.has_kernel), (true, false));
    assert_eq!(diff.difference(), 0);
    assert!(diff.causes.iter().all(|part| part.difference == 0), "{diff:#?}");
}

#[test]
fn operations_that_are_split_on_another_route_differ_by_the_route() {
    let before = Plan { route: (Route::Inline, Reason::Asked), device: 3_000, ..PLAN }.run();
    let mut after = recording(0, Basis::Kernel);
    let mut at = 0;
    for _ in 0..PLAN.files {
        for kind in [Kind::Open, Kind::Stat, Kind::Read, Kind::Write] {
            let times = [at, at + 1_000, at + 1_000, at + 60_000, at + 61_000];
            after.operations.push(operation(kind, (Route::Ring, Reason::Forced), times));
            at += 61_000;
        }
    }
    after.scopes.push(run_scope(0, at));
    after.about.took = at;
    let diff = Diff::of(&before, &after).unwrap();
    let its = difference(&diff, Cause::Route);
    assert!(its > diff.difference() * 9 / 10, "{diff:#?}");
    let first = diff.causes[0].contributions[0].subject;
    assert_eq!(first, Subject::Replaced(Route::Inline, Route::Ring));
}

#[test]
fn twice_the_work_is_no_slower_route() {
    let twice = Plan { files: 2 * PLAN.files, ..PLAN }.run();
    let diff = Diff::of(&PLAN.run(), &twice).unwrap();
    assert!(difference(&diff, Cause::OtherOperations) > diff.difference() * 99 / 100, "{diff:#?}");
    assert_eq!((diff.before.operations, diff.after.operations), (400, 800));
}

#[test]
fn time_without_threads_and_operations_is_unexplained() {
    let a = PLAN.run();
    let mut b = a.clone();
    let ended = a.about.took;
    b.about.took = ended + 5_000_000;
    b.scopes[0].ended = Some(b.about.took);
    b.rests.push(Rest { thread: 0, began: ended, ended: b.about.took });
    b.kernel.push(event(0, ended, Did::Sleep));
    let diff = Diff::of(&a, &b).unwrap();
    assert_eq!(difference(&diff, Cause::Unexplained), 5_000_000, "{diff:#?}");
    assert_eq!(diff.after.states[State::Nothing as usize], 5_000_000);
}

#[test]
fn recordings_of_different_things_are_not_compared() {
    let (ours, empty) = (PLAN.run(), recording(0, Basis::Kernel));
    assert_eq!(Diff::of(&ours, &empty), None);
    assert_eq!(Diff::of(&empty, &ours), None);
    assert_eq!(Diff::of(&empty, &empty).map(|diff| diff.difference()), Some(0));
}

#[test]
fn each_moment_counts_once_in_the_first_state_that_applies() {
    let interval = |began, ended, state, holder| Interval { began, ended, state, holder, is_late: false };
    let intervals = [
        interval(0, 100, State::Processor, 0),
        interval(50, 300, State::Device, 1),
        Interval { is_late: true, ..interval(200, 300, State::Device, 2) },
        interval(100, 500, State::HandOver, 2),
        // Beyond the period.
        interval(550, 900, State::Processor, 2),
    ];
    let found = sweep(&intervals, &(0..600), 3);
    let expected = Shares {
        states: [150, 200, 200, 50],
        holders: vec![[100, 0, 0], [0, 150, 0], [50, 50, 200]],
        at_device: 300,
        // One of two.
        late: 50,
    };
    assert_eq!(found, expected);
}

/// Divides spans of a thread, and returns begin, end and holder of each part.
fn divided(spans: &[(Nanos, Nanos)], led: &[(Nanos, Nanos, usize)]) -> Vec<(Nanos, Nanos, usize)> {
    let arrival = |&(since, at, holder)| Arrival { at, since, holder };
    let mut led: Vec<Arrival> = led.iter().map(arrival).collect();
    led.sort_unstable();
    let mut parts = Vec::new();
    divide(spans, &led, 9, &mut parts);
    parts.into_iter().map(|part| (part.began, part.ended, part.holder)).collect()
}

#[test]
fn the_time_of_a_call_belongs_to_it_though_another_operation_is_requested_when_it_ends() {
    let led = [(100, 100, 0), (40, 100, 1), (150, 150, 0)];
    let expected = [(0, 20, 1), (30, 100, 1), (100, 150, 0), (150, 200, 9)];
    assert_eq!(divided(&[(0, 20), (30, 200)], &led), expected);
}

#[test]
fn requests_of_one_batch_share_the_time_that_leads_to_it() {
    let led = [(100, 100, 2), (100, 100, 0), (100, 100, 2), (100, 100, 1)];
    let expected = [(20, 40, 0), (40, 60, 1), (60, 100, 2)];
    assert_eq!(divided(&[(20, 100)], &led), expected);
    assert_eq!(divided(&[(99, 100)], &led).iter().map(|(began, ended, _)| ended - began).sum::<Nanos>(), 1);
}

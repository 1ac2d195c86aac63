use ferry_io::{Operation as Kind, Reason, Route};

use super::{Activity, Answer, Awaited, Busy, InFlight, Threads, Wait};
use crate::model::{
    About, Did, KernelEvent, Nanos, Operation, Request, Rest, Role, Scope, ScopeKind, Thread, Trace,
};
use crate::summary::Series;
use crate::{Summary, sample};

/// A recording of 1,000 ns with a thread of each of these roles.
fn trace(roles: &[Role]) -> Trace {
    let thread = |role: &Role| Thread { tid: 1, role: *role, name: String::new() };
    Trace {
        about: About { took: 1_000, ..About::default() },
        threads: roles.iter().map(thread).collect(),
        ..Trace::default()
    }
}

/// An operation that is in flight in this time, and whose result is taken 50 ns later.
fn operation(kind: Kind, began: Nanos, ended: Nanos) -> Operation {
    Operation {
        kind,
        thread: 0,
        fiber: None,
        name: String::new(),
        size: 0,
        offset: None,
        route: Route::Pool,
        reason: Reason::Missed,
        asked: began.saturating_sub(30),
        submitted: Some(began),
        started: Some(began + 10),
        completed: Some(ended),
        taken: Some(ended + 50),
        result: Some(Ok(0)),
        abandoned: false,
        ran_on: None,
        submission: None,
        request: None,
        met: None,
    }
}

fn request(opcode: &str, submitted: Nanos, completed: Option<Nanos>) -> Request {
    Request {
        thread: 0,
        ring: 0,
        opcode: opcode.to_owned(),
        user_data: 0,
        submitted,
        completed,
        result: completed.map(|_| 0),
        handed_over: None,
    }
}

fn answer(trace: &Trace) -> Answer {
    Answer::of(trace, &Summary::of(trace, 10), 10)
}

#[test]
fn time_in_flight_is_that_of_the_union_of_intervals() {
    let pending = Operation { completed: None, taken: None, ..operation(Kind::Load, 800, 0) };
    let untold = Operation { completed: None, taken: Some(130), ..operation(Kind::Stat, 100, 0) };
    let operations = vec![
        operation(Kind::Read, 100, 400),
        operation(Kind::Read, 200, 600),
        operation(Kind::Read, 300, 350),
        operation(Kind::Write, 0, 100),
        operation(Kind::Store, 100, 150),
        untold,
        pending,
    ];
    let found = answer(&Trace { operations, ..trace(&[Role::Worker]) });
    let expected = [(Activity::Read, 700), (Activity::Write, 150), (Activity::Metadata, 30)];
    assert_eq!(found.in_flight, expected.map(|(activity, time)| InFlight { activity, time }));
    assert_eq!((found.depth.series, found.depth.peak), (Series::Operations, 3));
    assert_eq!(found.depth.peaks, [1, 3, 2, 3, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn no_operation_is_in_flight_beyond_the_recording() {
    let operations = vec![operation(Kind::Sync, 900, 5_000), operation(Kind::Sync, 2_000, 3_000)];
    let found = answer(&Trace { operations, ..trace(&[Role::Worker]) });
    assert_eq!(found.in_flight, [InFlight { activity: Activity::Sync, time: 100 }]);
}

#[test]
fn requests_count_where_there_are_no_operations() {
    let requests = vec![
        request("POLL_ADD", 0, Some(990)),
        request("READV", 100, Some(300)),
        request("WRITE_FIXED", 100, None),
        request("OPENAT", 0, Some(10)),
    ];
    let found = answer(&Trace { requests: requests.clone(), ..trace(&[Role::Other]) });
    let expected =
        [(Activity::Write, 900), (Activity::Read, 200), (Activity::Metadata, 10), (Activity::Other, 990)];
    assert_eq!(found.in_flight, expected.map(|(activity, time)| InFlight { activity, time }));
    assert_eq!(found.longest_wait, Some(Wait { took: 200, on: Awaited::Request(1) }), "a poll is no wait");
    assert_eq!(found.depth.series, Series::Requests);
    let operations = vec![operation(Kind::Read, 0, 10)];
    let found = answer(&Trace { operations, requests, ..trace(&[Role::Worker]) });
    assert_eq!(found.in_flight, [InFlight { activity: Activity::Read, time: 10 }]);
}

#[test]
fn the_longest_wait_ends_with_the_result() {
    let operations = vec![operation(Kind::Read, 0, 100), operation(Kind::Open, 100, 900)];
    let found = answer(&Trace { operations, ..trace(&[Role::Worker]) });
    assert_eq!(found.longest_wait, Some(Wait { took: 30 + 800 + 50, on: Awaited::Operation(1) }));
}

#[test]
fn workers_are_busy_unless_they_are_idle() {
    let scope = |thread, ended| Scope {
        kind: ScopeKind::Run,
        thread,
        fiber: None,
        name: String::new(),
        began: 0,
        ended: Some(ended),
        cancelled: None,
    };
    let rests = vec![Rest { thread: 0, began: 100, ended: 800 }];
    let scopes = vec![scope(0, 1_000), scope(1, 500)];
    let found = answer(&Trace { scopes, rests, ..trace(&[Role::Worker, Role::Worker, Role::Pool]) });
    assert_eq!(found.busy, Some(Busy { of: Threads::Workers, threads: 2, time: 800, lived: 1_500 }));
}

#[test]
fn threads_of_another_program_are_busy_while_they_do_not_sleep() {
    let event = |thread, at, did| KernelEvent { thread, at, processor: 0, did, chain: None };
    let kernel = vec![
        // Awake from the start until 100, and from 900 on.
        event(0, 100, Did::Sleep),
        event(0, 900, Did::Wake { by: None }),
        // Lives from 200 to 600, asleep from 300 to 500.
        event(1, 200, Did::Began),
        event(1, 300, Did::Sleep),
        event(1, 500, Did::Run),
        event(1, 600, Did::Ended),
        // Neither the kernel's threads nor those without such an event count.
        event(2, 100, Did::Sleep),
        event(3, 100, Did::TaskAdd),
    ];
    let roles = [Role::Other, Role::Other, Role::Kernel, Role::Other];
    let found = answer(&Trace { kernel, ..trace(&roles) });
    assert_eq!(found.busy, Some(Busy { of: Threads::Others, threads: 2, time: 400, lived: 1_400 }));
}

#[test]
fn an_empty_recording_has_no_answer() {
    let found = answer(&Trace::default());
    assert_eq!((found.in_flight.len(), found.busy, found.longest_wait), (0, None, None));
    assert_eq!(found.depth.peak, 0);
}

#[test]
fn shares_are_of_the_recording_at_most() {
    let trace = sample::copy_of(100);
    let found = answer(&trace);
    assert!(found.in_flight.iter().all(|its| 0 < its.time && its.time <= trace.about.took), "{found:?}");
    assert!(found.busy.is_some_and(|busy| 0 < busy.time && busy.time < busy.lived), "{found:?}");
}

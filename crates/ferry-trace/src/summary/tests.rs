use ferry_io::sampling::DeviceKind;
use ferry_io::{Operation as Kind, Reason, Route};

use super::{
    Bar, Basis, CauseCount, DeviceTimes, Devices, Enters, HandOvers, Phases, Place, PoolTime, Series,
    Summary, ThreadTime, Timelines, Times,
};
use crate::model::{
    About, Cause, CompletionMet, DeviceRequest, Did, Enter, Fiber, Gauge, KernelEvent, Nanos, Operation,
    Request, Rest, Role, Sample, Scope, ScopeKind, Submission, SubmitReason, Thread, Trace,
};
use crate::sample;

/// A worker (0) and a pool thread (1) in a recording of 1,000 ns.
fn trace() -> Trace {
    let thread = |role| Thread { tid: 1, role, name: String::new() };
    Trace {
        about: About { took: 1_000, ..About::default() },
        threads: vec![thread(Role::Worker), thread(Role::Pool)],
        ..Trace::default()
    }
}

fn operation(kind: Kind, route: Route, asked: Nanos, taken: Option<Nanos>) -> Operation {
    Operation {
        kind,
        thread: 0,
        fiber: None,
        name: String::new(),
        size: 0,
        offset: None,
        route,
        reason: Reason::Asked,
        asked,
        submitted: Some(asked),
        started: None,
        completed: None,
        taken,
        result: taken.map(|_| Ok(0)),
        abandoned: false,
        ran_on: None,
        submission: None,
        request: None,
        met: None,
    }
}

/// Two reads on the ring, of which only the first has a known completion; a write; a failed stat on the pool; and an
/// open without a result.
fn five_operations() -> Vec<Operation> {
    let ring = |asked, taken, met| Operation {
        submitted: Some(100),
        submission: Some(0),
        met,
        ..operation(Kind::Read, Route::Ring, asked, Some(taken))
    };
    let told = Operation { completed: Some(300), ..ring(0, 400, Some(CompletionMet::Slept)) };
    let write = operation(Kind::Write, Route::Inline, 500, Some(540));
    let stat = operation(Kind::Stat, Route::Pool, 600, Some(720));
    vec![
        told,
        ring(50, 250, None),
        Operation { started: Some(500), completed: Some(540), ..write },
        Operation {
            submitted: Some(610),
            started: Some(650),
            completed: Some(700),
            result: Some(Err(2)),
            ran_on: Some(1),
            ..stat
        },
        Operation { abandoned: true, ..operation(Kind::Open, Route::Pool, 800, None) },
    ]
}

#[test]
fn times_are_ranks_of_what_was_measured() {
    assert_eq!(Times::of(Vec::new()), None);
    let of_one = Times { count: 1, total: 7, median: 7, p99: 7, max: 7 };
    assert_eq!(Times::of(vec![7]), Some(of_one));
    let times = Times::of((1..=200).rev().collect());
    assert_eq!(times, Some(Times { count: 200, total: 20_100, median: 100, p99: 198, max: 200 }));
}

#[test]
fn time_is_told_by_route_with_what_it_was_spent_on() {
    let summary = Summary::of(&Trace { operations: five_operations(), ..trace() }, 10);
    let routes: Vec<_> =
        summary.routes.iter().map(|its| (its.route, its.times.count, its.times.total, its.phases)).collect();
    let phases = |queued, running, untaken, unknown| Phases { queued, running, untaken, unknown };
    assert_eq!(
        routes,
        [
            (Route::Inline, 1, 40, phases(0, 40, 0, 0)),
            (Route::Ring, 2, 600, phases(150, 200, 100, 150)),
            (Route::Pool, 1, 120, phases(50, 50, 20, 0)),
        ]
    );
    assert_eq!(summary.time(), 760);
    assert_eq!((summary.operations, summary.unfinished, summary.abandoned), (5, 1, 1));
    assert_eq!(summary.errors, [(2, 1)]);
    assert_eq!(summary.reasons.iter().map(|(.., n)| n).sum::<u64>(), 5);
}

#[test]
fn phases_add_up_to_the_whole_time() {
    for operation in sample::copy_of(50).operations {
        let Phases { queued, running, untaken, unknown } = Phases::of_one(&operation).unwrap();
        assert_eq!(Some(queued + running + untaken + unknown), super::duration(&operation));
    }
}

#[test]
fn kinds_come_with_their_routes_and_the_longest_first() {
    let summary = Summary::of(&Trace { operations: five_operations(), ..trace() }, 10);
    let kinds: Vec<_> = summary.kinds.iter().map(|its| (its.kind, its.by_route, its.failed)).collect();
    let expected =
        [(Kind::Read, [0, 2, 0, 0], 0), (Kind::Stat, [0, 0, 1, 0], 1), (Kind::Write, [1, 0, 0, 0], 0)];
    assert_eq!(kinds, expected);
    assert_eq!(summary.longest, [0, 1, 3, 2]);
}

#[test]
fn no_more_than_ten_of_the_longest_are_told_the_earlier_first() {
    let of_length = |took| operation(Kind::Read, Route::Inline, 0, Some(took));
    let lengths = [5, 9, 9, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12];
    let summary = Summary::of(&Trace { operations: lengths.map(of_length).to_vec(), ..trace() }, 10);
    assert_eq!(summary.longest, [12, 11, 10, 1, 2, 9, 8, 7, 0, 6]);
}

#[test]
fn batches_are_counted_by_size_and_reason() {
    let batch = |requests, why| Submission { thread: 0, at: 0, requests, why, in_flight: requests };
    let submissions = [
        (1, SubmitReason::Idle),
        (2, SubmitReason::Idle),
        (3, SubmitReason::Forced),
        (4, SubmitReason::Idle),
        (9, SubmitReason::Full),
    ];
    let submissions = submissions.map(|(requests, why)| batch(requests, why)).to_vec();
    let batches = Summary::of(&Trace { submissions, ..trace() }, 10).batches.unwrap();
    assert_eq!((batches.count, batches.requests, batches.largest), (5, 19, 9));
    assert_eq!(batches.why, [(SubmitReason::Full, 1), (SubmitReason::Idle, 3), (SubmitReason::Forced, 1)]);
    let bars = [(1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 8, 0), (9, 16, 1)];
    assert_eq!(batches.histogram, bars.map(|(least, most, count)| Bar { least, most, count }));
}

#[test]
fn calls_that_waited_and_slept_are_told_apart() {
    let enter = |waits, slept| Enter {
        thread: 0,
        began: 0,
        ended: 1,
        submitted: 1,
        waits,
        slept,
        found: 0,
        taken: 1,
    };
    let enters = vec![enter(false, false), enter(true, false), enter(true, true)];
    let summary = Summary::of(&Trace { enters, ..trace() }, 10);
    assert_eq!(summary.enters, Some(Enters { count: 3, waits: 2, slept: 1 }));
}

#[test]
fn the_depth_is_the_most_of_each_piece() {
    let fiber = |began, ended| Fiber { scope: 0, name: String::new(), began, ended };
    // One throughout, two from 150 to 200, three for a moment at 550; intervals that only touch do not overlap.
    let fibers = vec![
        fiber(0, None),
        fiber(150, Some(200)),
        fiber(200, Some(300)),
        fiber(540, Some(560)),
        fiber(550, Some(555)),
    ];
    let summary = Summary::of(&Trace { fibers, ..trace() }, 10);
    let [depth] = summary.depths.as_slice() else { panic!("{:?}", summary.depths) };
    assert_eq!(depth.series, Series::Fibers);
    assert_eq!(depth.peaks, [1, 2, 2, 1, 1, 3, 1, 1, 1, 1]);
    assert_eq!((depth.peak, depth.area), (3, 1_000 + 50 + 100 + 20 + 5));
}

#[test]
fn the_ring_s_depth_is_that_of_its_operations_and_a_gauge_s_the_sum_of_its_threads() {
    let sample = |thread, at, value| Sample { thread, at, gauge: Gauge::Blocks, value };
    let samples = vec![sample(0, 0, 4), sample(1, 500, 3), sample(0, 900, 0)];
    let summary = Summary::of(&Trace { operations: five_operations(), samples, ..trace() }, 10);
    let peaks =
        |series| summary.depths.iter().find(|depth| depth.series == series).map(|depth| depth.peaks.clone());
    assert_eq!(peaks(Series::Ring), Some(vec![0, 2, 2, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(peaks(Series::Pool), Some(vec![0, 0, 0, 0, 0, 0, 1, 0, 1, 1]));
    assert_eq!(peaks(Series::Blocks), Some(vec![4, 4, 4, 4, 4, 7, 7, 7, 7, 3]));
    assert_eq!(peaks(Series::Requests), None);
}

#[test]
fn workers_are_idle_while_they_sleep_and_pool_threads_while_they_run_nothing() {
    let scopes = vec![Scope {
        kind: ScopeKind::Run,
        thread: 0,
        fiber: None,
        name: String::new(),
        began: 100,
        ended: Some(900),
        cancelled: Some(850),
    }];
    let rests = vec![Rest { thread: 0, began: 200, ended: 500 }];
    let summary = Summary::of(&Trace { operations: five_operations(), scopes, rests, ..trace() }, 10);
    assert_eq!(
        summary.threads,
        [
            ThreadTime { thread: 0, lived: 800, busy: 500, operations: 5 },
            ThreadTime { thread: 1, lived: 1_000, busy: 50, operations: 1 },
        ]
    );
    assert_eq!(summary.cancelled, 1);
}

#[test]
fn pool_threads_are_summed_up_with_the_spread_of_their_shares() {
    let role = |thread: u32| if thread == 0 { Role::Worker } else { Role::Pool };
    let threads: Vec<Thread> =
        (0..5).map(|tid| Thread { tid, role: role(tid), name: String::new() }).collect();
    let all = Trace { threads, ..trace() };
    let its = |(thread, busy)| ThreadTime { thread, lived: 1_000, busy, operations: 10 };
    let times = [(0, 999), (1, 400), (2, 0), (3, 30), (4, 20)].map(its);
    let expected = PoolTime {
        threads: 4,
        operations: 40,
        lived: 4_000,
        busy: 450,
        shares: [(0, 1_000), (20, 1_000), (400, 1_000)],
    };
    assert_eq!(PoolTime::of(&all, &times), Some(expected));
    assert_eq!(PoolTime::of(&all, &times[..1]), None);
}

#[test]
fn an_operation_has_the_name_of_its_file_and_folder() {
    let scope = |fiber| Scope {
        kind: ScopeKind::ForEach,
        thread: 0,
        fiber,
        name: String::new(),
        began: 0,
        ended: None,
        cancelled: None,
    };
    let fiber = |scope, name: &str| Fiber { scope, name: name.to_owned(), began: 0, ended: None };
    // The main fiber (0) runs the jobs of a folder (1), whose files have fibers (2), which run unnamed ones (3).
    let scopes = vec![scope(None), scope(Some(0)), scope(Some(1)), scope(Some(2))];
    let fibers = vec![fiber(0, ""), fiber(1, "folder"), fiber(2, "first"), fiber(3, "")];
    let all = Trace { scopes, fibers, ..trace() };
    let path = |fiber, name: &str| {
        let operation = operation(Kind::Read, Route::Pool, 0, None);
        Place::of(&all, &Operation { fiber, name: name.to_owned(), ..operation }).path()
    };
    assert_eq!(path(Some(3), ""), "folder/first");
    assert_eq!(path(Some(2), ""), "folder/first");
    assert_eq!(path(Some(2), "first"), "folder/first");
    assert_eq!(path(Some(2), "second"), "folder/second", "a fiber may copy several files");
    assert_eq!(path(Some(1), "file"), "folder/file");
    assert_eq!(path(Some(1), "folder"), "folder");
    assert_eq!(path(Some(0), "file"), "file");
    assert_eq!(path(None, "file"), "file");
    assert_eq!((path(Some(0), ""), path(Some(9), "")), (String::new(), String::new()));
    let made = Operation {
        fiber: Some(1),
        name: "target".to_owned(),
        ..operation(Kind::MakeDirectory, Route::Inline, 0, None)
    };
    assert_eq!(Place::of(&all, &made).path(), "target", "its source's fiber makes it");
}

#[test]
fn names_of_fibers_in_a_circle_are_followed_to_an_end() {
    let scopes = vec![Scope {
        kind: ScopeKind::Scope,
        thread: 0,
        fiber: Some(0),
        name: String::new(),
        began: 0,
        ended: None,
        cancelled: None,
    }];
    let fibers = vec![Fiber { scope: 0, name: "own".to_owned(), began: 0, ended: None }];
    let all = Trace { scopes, fibers, ..trace() };
    let operation = Operation { fiber: Some(0), ..operation(Kind::Read, Route::Pool, 0, None) };
    assert_eq!(Place::of(&all, &operation), Place { folder: "", name: "own" });
}

#[test]
fn completions_are_told_by_how_they_were_met() {
    let summary = Summary::of(&Trace { operations: five_operations(), ..trace() }, 10);
    let told = Timelines { peek: 0, at_once: 0, slept: 1, unknown: 1, basis: Basis::Operations };
    assert_eq!(summary.timelines, Some(told));
    assert_eq!((summary.hand_overs, summary.causes.len()), (None, 0));
    assert_eq!(Summary::of(&trace(), 10).timelines, None);
}

#[test]
fn a_program_that_is_not_ours_is_told_from_requests_and_task_work() {
    let did = |did| KernelEvent { thread: 0, at: 0, processor: 0, did, chain: None };
    let work = |cause, count| did(Did::TaskWork { cause, count });
    let kernel = vec![
        work(Cause::Ipi, 3),
        work(Cause::SystemCall, 2),
        work(Cause::Ipi, 4),
        work(Cause::GetEvents, 5),
        work(Cause::GetEventsSlept, 6),
        work(Cause::Unknown, 1),
        did(Did::HandOver(None)),
    ];
    let request = |opcode: &str, completed, handed_over| Request {
        thread: 0,
        ring: 0,
        opcode: opcode.to_owned(),
        user_data: 0,
        submitted: 100,
        completed,
        result: completed.map(|_| -5),
        handed_over,
    };
    let requests = vec![
        request("NOP", Some(110), None),
        request("READ", Some(400), Some(150)),
        request("READ", None, None),
    ];
    let summary = Summary::of(&Trace { requests, kernel, ..trace() }, 10);
    let cause = |cause, runs, units| CauseCount { cause, runs, units };
    assert_eq!(
        summary.causes,
        [
            cause(Cause::GetEvents, 1, 5),
            cause(Cause::GetEventsSlept, 1, 6),
            cause(Cause::SystemCall, 1, 2),
            cause(Cause::Ipi, 2, 7),
            cause(Cause::Unknown, 1, 1),
        ]
    );
    let told = Timelines { peek: 9, at_once: 5, slept: 6, unknown: 1, basis: Basis::TaskWork };
    assert_eq!(summary.timelines, Some(told));
    assert_eq!(summary.hand_overs, Some(HandOvers { handed_over: 1, requests: 3 }));
    let opcodes: Vec<_> = summary
        .requests
        .iter()
        .map(|its| (its.opcode.as_str(), its.count, its.handed_over, its.failed))
        .collect();
    assert_eq!(opcodes, [("READ", 2, 1, 1), ("NOP", 1, 0, 1)]);
    assert_eq!(summary.requests[0].times.map(|times| times.total), Some(300));
    let depth = &summary.depths[0];
    assert_eq!((depth.series, depth.peak), (Series::Requests, 3));
    assert_eq!(summary.events, 10);
}

#[test]
fn an_empty_recording_comes_to_nothing() {
    let summary = Summary::of(&Trace::default(), 10);
    assert_eq!((summary.events, summary.time(), summary.depths.len()), (0, 0, 0));
    assert_eq!((summary.batches, summary.enters, summary.hand_overs), (None, None, None));
}

#[test]
fn requests_of_devices_are_summed_up_beside_the_operations() {
    assert_eq!(Summary::of(&trace(), 4).devices, None);
    let request = |device, kind, issued, completed| DeviceRequest {
        device,
        kind,
        sector: 0,
        bytes: 512,
        thread: (kind == DeviceKind::Read).then_some(0),
        issued,
        completed,
        is_failed: completed == Some(900),
    };
    let (read, write) = (DeviceKind::Read, DeviceKind::Write);
    let mut trace = trace();
    // In flight from 0 to 400, and from 700 to 1,000.
    trace.operations = vec![
        operation(Kind::Read, Route::Ring, 0, Some(300)),
        operation(Kind::Read, Route::Ring, 200, Some(400)),
        operation(Kind::Sync, Route::Pool, 700, None),
    ];
    trace.device_requests = vec![
        request(2, read, 100, Some(250)),
        request(2, read, 200, Some(260)),
        request(2, write, 350, Some(500)),
        request(3, write, 800, Some(900)),
        // It may be complete at any time.
        request(3, write, 850, None),
    ];
    let summary = Summary::of(&trace, 4);
    let times = |count, total, median, max| Some(Times { count, total, median, p99: max, max });
    let row = |device, kind, count, own, failed, open, times| DeviceTimes {
        device,
        kind,
        count,
        own,
        bytes: 512 * count,
        failed,
        open,
        times,
    };
    let rows = vec![
        row(2, read, 2, 2, 0, 0, times(2, 210, 60, 150)),
        row(2, write, 1, 0, 0, 0, times(1, 150, 150, 150)),
        row(3, write, 2, 0, 1, 1, times(1, 100, 100, 100)),
    ];
    let expected = Devices { rows, time: 410, operations: 700, both: 160 + 50 + 100 };
    assert_eq!(summary.devices, Some(expected));
    assert_eq!(summary.devices.map(|devices| (devices.count(), devices.open())), Some((5, 1)));
    let depth = summary.depths.iter().find(|depth| depth.series == Series::Devices).unwrap();
    assert_eq!((depth.peak, depth.area, depth.peaks.as_slice()), (2, 460, &[2, 1, 0, 1][..]));
    // Of a program without operations, its requests count.
    trace.operations.clear();
    assert_eq!(
        Summary::of(&trace, 4).devices.map(|devices| (devices.operations, devices.both)),
        Some((0, 0))
    );
}

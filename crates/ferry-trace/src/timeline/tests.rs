use ferry_io::Route;

use super::{Class, Part, RowKind, Timeline, extent};
use crate::Trace;
use crate::model::{Cause, Did, KernelEvent, Nanos, Role, SubmitReason, Thread};
use crate::sample;
use crate::summary::duration;

/// Overlap of `piece` with a span.
fn overlap((began, ended): (Nanos, Nanos), piece: &std::ops::Range<Nanos>) -> Nanos {
    ended.min(piece.end).saturating_sub(began.max(piece.start))
}

fn time_of(parts: &[Part], class: Class) -> Nanos {
    parts.iter().filter(|part| part.class == class).map(|part| part.time).sum()
}

fn count_of(parts: &[Part], class: Class) -> usize {
    parts.iter().filter(|part| part.class == class).map(|part| part.count).sum()
}

/// A worker's inline operations one after another, as on a real thread; those of the sample overlap.
fn in_order(mut trace: Trace) -> Trace {
    let mut free = [0; 8];
    for operation in &mut trace.operations {
        let thread = match operation.route {
            Route::Inline | Route::Offload => usize::try_from(operation.thread).unwrap(),
            Route::Pool => 2,
            Route::Ring => continue,
        };
        let took = duration(operation).unwrap() - 400;
        let began = operation.asked.max(free[thread]);
        (operation.started, operation.completed) = (Some(began), Some(began + took));
        free[thread] = began + took;
    }
    trace
}

#[test]
fn what_a_cell_holds_is_what_going_through_everything_finds() {
    let trace = in_order(sample::copy_of(300));
    let timeline = Timeline::of(&trace);
    let took = trace.about.took;
    for cells in [1, 7, 80, 3_000] {
        for cell in 0..cells {
            let piece = took * cell / cells..took * (cell + 1) / cells;
            for (index, row) in timeline.rows.iter().enumerate() {
                let parts = row.parts(&piece);
                for route in Route::ALL {
                    let is_its = |item: &usize| {
                        let is_route = trace.operations[*item].route == route;
                        is_route && timeline.row_of(&trace, (Class::Route(route), *item)) == Some(index)
                    };
                    let its = (0..trace.operations.len()).filter(is_its);
                    let extents = its.map(|item| extent(&trace, (Class::Route(route), item)).unwrap());
                    let whole: Nanos = extents.map(|extent| overlap(extent, &piece)).sum();
                    assert_eq!(time_of(&parts, Class::Route(route)), whole, "{route:?} {piece:?}");
                }
                for why in [SubmitReason::Full, SubmitReason::Idle, SubmitReason::Forced] {
                    let is_its = |batch: &&crate::model::Submission| {
                        row.kind == RowKind::Submissions
                            && batch.thread == row.thread
                            && batch.why == why
                            && piece.contains(&batch.at)
                    };
                    let whole = trace.submissions.iter().filter(is_its).count();
                    assert_eq!(count_of(&parts, Class::SubmitReason(why)), whole, "{why:?} {piece:?}");
                }
            }
        }
    }
}

#[test]
fn cells_side_by_side_hold_what_the_whole_holds() {
    let trace = in_order(sample::copy_of(500));
    let timeline = Timeline::of(&trace);
    for row in &timeline.rows {
        let whole: Nanos = row.parts(&(0..timeline.took)).iter().map(|part| part.time).sum();
        let cells = (0..97).map(|cell| timeline.took * cell / 97..timeline.took * (cell + 1) / 97);
        let sum: Nanos = cells.flat_map(|piece| row.parts(&piece)).map(|part| part.time).sum();
        assert_eq!(sum, whole, "{:?}", row.kind);
    }
}

#[test]
fn rows_are_those_in_which_something_is() {
    let trace = sample::copy_of(100);
    let rows: Vec<(u32, RowKind)> =
        Timeline::of(&trace).rows.iter().map(|row| (row.thread, row.kind)).collect();
    let of_worker = [RowKind::Calls, RowKind::Ring, RowKind::Submissions, RowKind::TaskWork];
    let mut expected: Vec<(u32, RowKind)> =
        (0..2).flat_map(|worker| of_worker.map(|kind| (worker, kind))).collect();
    expected.push((2, RowKind::Pool));
    assert_eq!(rows, expected);
    assert_eq!(Timeline::of(&Trace::default()).rows.len(), 0);
}

#[test]
fn a_program_that_is_not_ours_is_in_rows_of_its_requests() {
    let mut trace = sample::copy_of(100);
    trace.operations.clear();
    trace.submissions.clear();
    trace.rests.clear();
    trace.threads.iter_mut().for_each(|thread| thread.role = Role::Other);
    let did = |at, did| KernelEvent { thread: 3, at, processor: 0, did, chain: None };
    trace.kernel.extend([
        did(10, Did::Wake { by: None }),
        did(30, Did::Sleep),
        did(60, Did::Run),
        did(70, Did::Sleep),
        did(90, Did::Wake { by: None }),
    ]);
    let timeline = Timeline::of(&trace);
    let rows: Vec<(u32, RowKind)> = timeline.rows.iter().map(|row| (row.thread, row.kind)).collect();
    let requests = (0..2).flat_map(|thread| [(thread, RowKind::Requests), (thread, RowKind::TaskWork)]);
    assert_eq!(rows, requests.chain([(3, RowKind::Awake)]).collect::<Vec<_>>());
    let awake = timeline.rows.last().unwrap();
    assert_eq!(time_of(&awake.parts(&(0..100)), Class::Awake), 40);
    let requests: Nanos = trace
        .requests
        .iter()
        .filter(|its| its.thread == 0)
        .map(|its| its.completed.unwrap() - its.submitted)
        .sum();
    assert_eq!(time_of(&timeline.rows[0].parts(&(0..timeline.took)), Class::Requests), requests);
    assert_eq!(timeline.longest.len(), trace.requests.len());
    assert_eq!(
        timeline.row_of(&trace, timeline.longest[0]).map(|row| timeline.rows[row].kind),
        Some(RowKind::Requests)
    );
}

#[test]
fn what_is_in_a_cell_is_given_up_to_a_bound() {
    let trace = in_order(sample::copy_of(6_000));
    let timeline = Timeline::of(&trace);
    let whole = 0..timeline.took;
    for row in &timeline.rows {
        assert_eq!(row.items(&whole, 10).len(), 10, "{:?}", row.kind);
    }
    // The number of examined spans is bounded.
    let ring = timeline.rows.iter().find(|row| row.kind == RowKind::Ring).unwrap();
    assert_eq!(ring.items(&whole, usize::MAX).len(), super::depth::LOOKED_AT);
}

#[test]
fn the_items_of_a_cell_are_those_that_run_in_it() {
    let trace = in_order(sample::copy_of(300));
    let timeline = Timeline::of(&trace);
    for index in (0..trace.operations.len()).step_by(7) {
        let operation = &trace.operations[index];
        let item = (Class::Route(operation.route), index);
        let row = &timeline.rows[timeline.row_of(&trace, item).unwrap()];
        let (began, ended) = extent(&trace, item).unwrap();
        let middle = u64::midpoint(began, ended);
        let found = row.items(&(middle..middle + 1), 100);
        assert!(found.contains(&item), "{operation:?}: {found:?}");
    }
}

#[test]
fn neighbours_are_the_next_beginnings() {
    let trace = sample::copy_of(100);
    let timeline = Timeline::of(&trace);
    let row = &timeline.rows[3];
    assert_eq!(row.kind, RowKind::TaskWork);
    let is_its = |event: &&KernelEvent| {
        event.thread == row.thread
            && matches!(event.did, Did::TaskWork { cause, .. } if Cause::ALL.contains(&cause))
    };
    let times: Vec<Nanos> = trace.kernel.iter().filter(is_its).map(|event| event.at).collect();
    let mut at = 0;
    let mut visited = Vec::new();
    while let Some(next) = row.neighbour(at, true) {
        visited.push(next);
        at = next;
    }
    let mut distinct = times.clone();
    distinct.dedup();
    assert_eq!(visited, distinct);
    assert_eq!(row.neighbour(at, false), distinct.iter().rev().nth(1).copied());
}

#[test]
fn the_longest_come_first() {
    let trace = sample::copy_of(200);
    let longest = Timeline::of(&trace).longest;
    assert_eq!(longest.len(), trace.operations.len());
    assert!(
        longest
            .windows(2)
            .all(|pair| { duration(&trace.operations[pair[0].1]) >= duration(&trace.operations[pair[1].1]) })
    );
}

#[test]
fn a_thread_is_awake_from_its_beginning_to_its_end() {
    let mut trace = sample::copy_of(10);
    let did = |at, did| KernelEvent { thread: 3, at, processor: 0, did, chain: None };
    trace.kernel.extend([did(10, Did::Began), did(15, Did::Wake { by: None }), did(30, Did::Ended)]);
    let timeline = Timeline::of(&trace);
    let awake = timeline.rows.iter().find(|row| row.kind == RowKind::Awake).unwrap();
    assert_eq!(time_of(&awake.parts(&(0..timeline.took)), Class::Awake), 20);
}

/// A hostile file: many threads with a few items each.
fn many_threads(threads: u32, operations: u32) -> Trace {
    let mut trace = sample::copy_of(operations / 4);
    let role = |thread| [Role::Worker, Role::Pool, Role::Other][thread as usize % 3];
    let made = |thread| Thread { tid: thread, role: role(thread), name: format!("iou-sqp-{thread}") };
    trace.threads = (0..threads).map(made).collect();
    for (index, operation) in (0..).zip(&mut trace.operations) {
        operation.thread = index % threads / 3 * 3;
        operation.ran_on = operation.ran_on.map(|_| (index % threads / 3 * 3 + 1).min(threads / 3 * 3 - 2));
    }
    (0..).zip(&mut trace.requests).for_each(|(index, request)| request.thread = index % threads);
    (0..).zip(&mut trace.kernel).for_each(|(index, event)| event.thread = index % threads);
    (0..).zip(&mut trace.rests).for_each(|(index, rest)| rest.thread = index % threads);
    (0..).zip(&mut trace.submissions).for_each(|(index, batch)| batch.thread = index % threads);
    trace
}

#[test]
fn many_threads_with_many_operations_take_no_longer_than_few() {
    let trace = many_threads(10_000, 100_000);
    let begun = std::time::Instant::now();
    let timeline = Timeline::of(&trace);
    let summary = crate::Summary::of(&trace, 46);
    let took = begun.elapsed();
    // A pass for each thread would take a thousand million steps; one pass takes 0.1 s without optimisation.
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    let count = |parts: Vec<Part>| parts.iter().map(|part| part.count).sum::<usize>();
    let of = |kind| {
        let rows = timeline.rows.iter().filter(move |row| row.kind == kind);
        rows.map(|row| count(row.parts(&(0..Nanos::MAX)))).sum::<usize>()
    };
    assert_eq!((of(RowKind::Pool), of(RowKind::Ring), of(RowKind::TaskWork)), (25_000, 50_000, 33_335));
    assert_eq!(summary.threads.iter().map(|its| its.operations).sum::<u64>(), 100_000 + 25_000);
    for item in (0..trace.operations.len()).map(|index| (Class::Route(trace.operations[index].route), index))
    {
        let row = &timeline.rows[timeline.row_of(&trace, item).unwrap()];
        assert!([RowKind::Calls, RowKind::Ring, RowKind::Pool].contains(&row.kind));
    }
}

#[test]
fn a_device_has_a_row_of_its_requests() {
    let mut trace = sample::with_device(sample::copy_of(100));
    trace.device_requests[3].completed = None;
    let timeline = Timeline::of(&trace);
    let row = timeline.rows.last().unwrap();
    assert_eq!((row.thread, row.kind), (4, RowKind::Device));
    assert!(row.peak() > Some(1), "{:?}", row.peak());
    let took: Nanos = trace.device_requests.iter().filter_map(|its| Some(its.completed? - its.issued)).sum();
    assert_eq!(time_of(&row.parts(&(0..timeline.took)), Class::Device), took);
    let item = (Class::Device, 3);
    assert_eq!(timeline.row_of(&trace, item), Some(timeline.rows.len() - 1));
    let issued = trace.device_requests[3].issued;
    assert_eq!(extent(&trace, item), Some((issued, issued)));
}

use ferry_io::Operation as Kind;
use ferry_io::Reason;
use ferry_io::Route;
use ferry_io::sampling::{DeviceKind, Event, SampleKind, Summary};

use super::{add, join};
use crate::model::{Cause, CompletionMet, DeviceRequest, Did, Operation, Role, Thread, Trace};

const RING: u64 = 0xffff_8880_0000_0000;

/// Chains: waiting, an IPI, a device interrupt, the thread's own call.
fn summary() -> Summary {
    let chains = [
        "tctx_task_work_run io_cqring_wait __do_sys_io_uring_enter do_syscall_64",
        "tctx_task_work_run irqentry_exit_to_user_mode asm_sysvec_reschedule_ipi",
        "try_to_wake_up __io_req_task_work_add common_interrupt asm_common_interrupt",
        "try_to_wake_up futex_wake do_syscall_64 entry_SYSCALL_64_after_hwframe",
    ];
    let chains = chains.map(|chain| chain.split(' ').map(str::to_owned).collect()).to_vec();
    Summary {
        lost: 3,
        missing: vec!["a line".to_owned()],
        operations: vec![(22, "READ".to_owned())],
        chains,
        chain_of: vec![0, 1, 2, 3],
        ..Summary::default()
    }
}

fn at(at: u64, tid: u32, what: SampleKind) -> Event {
    Event { at, tid, processor: 1, chain: None, what }
}

fn by(chain: u32, event: Event) -> Event {
    Event { chain: Some(chain), ..event }
}

fn submit(user_data: u64) -> SampleKind {
    SampleKind::Submit { ring: RING, user_data, opcode: 22 }
}

fn complete(user_data: u64, result: i32) -> SampleKind {
    SampleKind::Complete { ring: RING, user_data, result }
}

fn enter(completions: u32) -> SampleKind {
    SampleKind::Enter { requests: 0, completions, flags: u32::from(completions > 0) }
}

fn ran(count: u32) -> SampleKind {
    SampleKind::TaskWork { count, ring: None }
}

#[test]
fn each_timeline_is_told_from_the_others() {
    let events = vec![
        at(0, 7, SampleKind::Named("fio".to_owned())),
        // Two requests are submitted; one of them completes before the call returns.
        at(1010, 7, enter(0)),
        at(1020, 7, submit(1)),
        at(1021, 7, submit(2)),
        at(1022, 7, submit(3)),
        at(1023, 7, submit(4)),
        at(1025, 7, complete(4, 4096)),
        at(1030, 7, SampleKind::Leave { result: 4 }),
        // An interrupt from another processor in between.
        at(1040, 7, complete(1, -5)),
        by(1, at(1041, 7, ran(1))),
        // A wait: one completion is already there, then the thread sleeps and is woken.
        at(1050, 7, enter(2)),
        at(1060, 7, complete(2, 1)),
        by(0, at(1061, 7, ran(1))),
        at(1070, 7, SampleKind::Sleep),
        by(2, at(1080, 99, SampleKind::Wake { woken: 7, by_interrupt: true })),
        at(1090, 7, complete(3, 2)),
        by(0, at(1091, 7, ran(1))),
        at(1095, 7, SampleKind::Leave { result: 0 }),
    ];
    let mut trace = Trace::default();
    // The order of events does not matter.
    let shuffled = events.iter().rev().cloned().collect();
    let met = add(&mut trace, 1000, shuffled, &summary());
    assert_eq!(
        met,
        [CompletionMet::Peek, CompletionMet::AtOnce, CompletionMet::Slept, CompletionMet::Peek].map(Some)
    );
    assert_eq!(trace.threads, [Thread { tid: 7, role: Role::Other, name: "fio".to_owned() }]);
    let told: Vec<_> = trace.requests.iter().map(|its| (its.submitted, its.completed, its.result)).collect();
    assert_eq!(
        told,
        [
            (20, Some(40), Some(-5)),
            (21, Some(60), Some(1)),
            (22, Some(90), Some(2)),
            (23, Some(25), Some(4096))
        ]
    );
    assert!(trace.requests.iter().all(|request| request.opcode == "READ" && request.ring == 0));
    let did: Vec<_> = trace.kernel.iter().map(|event| (event.at, event.did.clone(), event.chain)).collect();
    assert_eq!(
        did,
        [
            (41, Did::TaskWork { cause: Cause::Ipi, count: 1 }, Some(1)),
            (61, Did::TaskWork { cause: Cause::GetEvents, count: 1 }, Some(0)),
            (70, Did::Sleep, None),
            (80, Did::Wake { by: None }, Some(2)),
            (91, Did::TaskWork { cause: Cause::GetEventsSlept, count: 1 }, Some(0)),
        ]
    );
    assert_eq!((trace.lost.kernel, trace.about.missing), (3, vec!["a line".to_owned()]));
}

#[test]
fn a_devices_requests_have_their_completions() {
    const DEVICE: u32 = 254 << 20;
    let issue = |device, sector, kind, bytes| SampleKind::DeviceIssue { device, sector, kind, bytes };
    let done =
        |device, sector, kind, is_failed| SampleKind::DeviceComplete { device, sector, kind, is_failed };
    let (read, write) = (DeviceKind::Read, DeviceKind::Write);
    let events = vec![
        at(0, 7, SampleKind::Named("fio".to_owned())),
        // Before the recording.
        at(990, 7, issue(DEVICE, 1, read, 512)),
        at(1_005, 99, done(DEVICE, 1, read, false)),
        at(1_010, 7, issue(DEVICE, 8, read, 4_096)),
        // Of another program, and to the same sector.
        at(1_020, 99, issue(DEVICE, 8, write, 8_192)),
        at(1_030, 0, done(DEVICE, 8, write, true)),
        // The completion of the first is not sampled.
        at(1_040, 7, issue(DEVICE, 8, read, 4_096)),
        at(1_070, 5, done(DEVICE, 8, read, false)),
        at(1_080, 99, issue(DEVICE + 1, 8, DeviceKind::Flush, 0)),
    ];
    let summary = Summary { devices: vec![(DEVICE, "vda".to_owned())], ..Summary::default() };
    let mut trace = Trace::default();
    add(&mut trace, 1_000, events.into_iter().rev().collect(), &summary);
    let names: Vec<_> = trace.threads.iter().map(|thread| (thread.role, thread.name.as_str())).collect();
    let other = format!("device {}", DEVICE + 1);
    assert_eq!(names, [(Role::Other, "fio"), (Role::Device, "vda"), (Role::Device, other.as_str())]);
    let request = |kind, bytes, thread, issued, completed| DeviceRequest {
        device: 1,
        kind,
        sector: 8,
        bytes,
        thread,
        issued,
        completed,
        is_failed: false,
    };
    let expected = [
        request(read, 4_096, Some(0), 10, None),
        DeviceRequest { is_failed: true, ..request(write, 8_192, None, 20, Some(30)) },
        request(read, 4_096, Some(0), 40, Some(70)),
        DeviceRequest { device: 2, ..request(DeviceKind::Flush, 0, None, 80, None) },
    ];
    assert_eq!(trace.device_requests, expected);
}

#[test]
fn what_a_kernel_worker_did_belongs_to_whom_it_did_it_for() {
    let events = vec![
        at(0, 7, SampleKind::Named("fio".to_owned())),
        at(0, 8, SampleKind::Named("iou-wrk-7".to_owned())),
        at(1001, 8, SampleKind::Began { parent: 7 }),
        at(1002, 7, submit(1)),
        at(1003, 7, SampleKind::HandOver { ring: RING, user_data: 1 }),
        at(1004, 7, enter(1)),
        at(1005, 7, SampleKind::Sleep),
        at(1006, 8, complete(1, 0)),
        by(3, at(1007, 8, SampleKind::Wake { woken: 7, by_interrupt: false })),
        at(1008, 7, SampleKind::Leave { result: 0 }),
    ];
    let mut trace = Trace {
        threads: vec![Thread { tid: 7, role: Role::Worker, name: "worker 0".to_owned() }],
        ..Trace::default()
    };
    let met = add(&mut trace, 1000, events, &summary());
    assert_eq!(met, [Some(CompletionMet::Slept)]);
    assert_eq!(trace.threads[0].name, "worker 0");
    assert_eq!(trace.threads[1], Thread { tid: 8, role: Role::Kernel, name: "iou-wrk-7".to_owned() });
    assert_eq!(trace.requests[0].handed_over, Some(3));
    assert_eq!(trace.kernel[1].did, Did::HandOver(Some(0)));
    assert_eq!(trace.kernel[3].did, Did::Wake { by: Some(1) });
}

#[test]
fn a_sleep_while_requests_are_submitted_does_not_wait_for_completions() {
    let events = vec![
        at(1002, 7, submit(1)),
        at(1003, 7, SampleKind::HandOver { ring: RING, user_data: 1 }),
        at(1004, 7, SampleKind::Enter { requests: 1, completions: 0, flags: 1 }),
        at(1005, 7, SampleKind::Sleep),
        at(1006, 8, complete(1, 0)),
        at(1008, 7, SampleKind::Leave { result: 1 }),
    ];
    let mut trace = Trace::default();
    assert_eq!(add(&mut trace, 1000, events, &summary()), [Some(CompletionMet::AtOnce)]);
    assert_eq!(trace.kernel[1].did, Did::Sleep);
}

#[test]
fn a_thread_that_was_there_before_and_has_no_name_is_told_as_waker() {
    let events = vec![by(3, at(1003, 8, SampleKind::Wake { woken: 7, by_interrupt: false }))];
    let worker = |tid, name: &str| Thread { tid, role: Role::Worker, name: name.to_owned() };
    let threads = vec![worker(7, "worker 1"), worker(8, "worker 0")];
    let mut trace = Trace { threads, ..Trace::default() };
    add(&mut trace, 1000, events, &summary());
    assert_eq!(trace.kernel[0].did, Did::Wake { by: Some(1) });
}

#[test]
fn what_a_polling_thread_submitted_is_joined_to_whom_it_polls_for() {
    let events = vec![
        at(0, 9, SampleKind::Named("iou-sqp-7".to_owned())),
        at(1010, 9, submit(5)),
        at(1020, 9, complete(5, 4096)),
    ];
    let worker = |tid, name: &str| Thread { tid, role: Role::Worker, name: name.to_owned() };
    let operation = Operation {
        kind: Kind::Read,
        thread: 1,
        fiber: None,
        name: String::new(),
        size: 4096,
        offset: Some(0),
        route: Route::Ring,
        reason: Reason::Forced,
        asked: 5,
        submitted: None,
        started: None,
        completed: None,
        taken: Some(30),
        result: Some(Ok(4096)),
        abandoned: false,
        ran_on: None,
        submission: None,
        // Index into the keys.
        request: Some(0),
        met: None,
    };
    let mut trace = Trace {
        threads: vec![worker(6, "worker 0"), worker(7, "worker 1")],
        operations: vec![operation],
        ..Trace::default()
    };
    let met = add(&mut trace, 1000, events, &summary());
    join(&mut trace, &[5], &met);
    let joined = &trace.operations[0];
    assert_eq!((joined.request, joined.submitted, joined.completed), (Some(0), Some(10), Some(20)));
}

#[test]
fn who_is_not_of_the_program_is_not_named() {
    let events = vec![
        at(1002, 7, submit(5)),
        by(3, at(1003, 9, SampleKind::Wake { woken: 7, by_interrupt: false })),
        at(1004, 9, SampleKind::TaskAdd { ring: RING, user_data: 5 }),
    ];
    let mut trace = Trace::default();
    add(&mut trace, 1000, events, &summary());
    assert_eq!(trace.kernel[0].did, Did::Wake { by: None });
    let added = trace.kernel.iter().find(|event| event.did == Did::TaskAdd).unwrap();
    assert_eq!(trace.threads[usize::try_from(added.thread).unwrap()].tid, 7);
}

#[test]
fn requests_of_one_name_complete_in_their_order() {
    let events = vec![
        at(1001, 7, submit(0)),
        at(1002, 7, submit(0)),
        at(1003, 7, complete(0, 1)),
        at(1004, 7, complete(0, 2)),
        // The submission of this request was not recorded.
        at(1005, 7, complete(0, 3)),
        by(77, at(1006, 7, ran(1))),
    ];
    let mut trace = Trace::default();
    add(&mut trace, 1000, events, &summary());
    let results: Vec<_> = trace.requests.iter().map(|request| request.result).collect();
    assert_eq!(results, [Some(1), Some(2)]);
    // A missing chain is an unknown cause.
    assert_eq!(trace.kernel[0].did, Did::TaskWork { cause: Cause::Unknown, count: 1 });
}

#[test]
fn beginning_and_end_of_a_thread_that_did_something_are_told() {
    let events = vec![
        at(1000, 7, SampleKind::Began { parent: 6 }),
        at(1000, 8, SampleKind::Began { parent: 6 }),
        at(1001, 9, submit(4)),
        at(1002, 7, submit(5)),
        at(1003, 7, SampleKind::Sleep),
        at(1003, 9, SampleKind::Sleep),
        at(1004, 7, SampleKind::Ended),
        at(1005, 8, SampleKind::Ended),
        // The number is reused.
        at(1006, 7, SampleKind::Began { parent: 6 }),
        at(1007, 7, SampleKind::Sleep),
        at(1008, 7, SampleKind::Run),
    ];
    let mut trace = Trace::default();
    add(&mut trace, 1000, events, &summary());
    let did: Vec<_> = trace.kernel.iter().map(|event| (event.thread, event.at, event.did.clone())).collect();
    assert_eq!(
        did,
        [
            (1, 0, Did::Began),
            (1, 3, Did::Sleep),
            (0, 3, Did::Sleep),
            (1, 4, Did::Ended),
            (1, 6, Did::Began),
            (1, 7, Did::Sleep),
            (1, 8, Did::Run)
        ]
    );
    assert_eq!(trace.threads.len(), 2);
}

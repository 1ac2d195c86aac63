//! Artificial traces of any size for trying out and testing drawings. Equal sizes yield equal traces.

use ferry_io::sampling::DeviceKind;
use ferry_io::{Operation as Kind, Reason, Route};

use crate::model::{
    About, Cause, CompletionMet, DeviceRequest, Did, Enter, Fiber, Gauge, KernelEvent, Nanos, Operation,
    Request, Rest, Role, Sample, Scope, ScopeKind, Submission, SubmitReason, Thread, Trace,
};

const EACH: [(Kind, Route, Reason); 4] = [
    (Kind::Open, Route::Ring, Reason::Missed),
    (Kind::Read, Route::Ring, Reason::Missed),
    (Kind::Write, Route::Inline, Reason::Changes),
    (Kind::Stat, Route::Pool, Reason::RecentlySlow),
];

/// Returns a trace like that of two workers copying `files` files.
#[must_use]
pub fn copy_of(files: u32) -> Trace {
    let mut trace = Trace {
        about: About {
            command: ["ferry", "cp", "-r", "source", "target"].map(str::to_owned).to_vec(),
            run: String::new(),
            recorder: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: "6.12.0".to_owned(),
            processors: 2,
            backend: "uring".to_owned(),
            began: 1_700_000_000_000_000_000,
            monotonic: 86_400_000_000_000,
            took: 0,
            missing: Vec::new(),
        },
        chains: vec![
            ["io_run_task_work", "io_cqring_wait", "__do_sys_io_uring_enter"].map(str::to_owned).to_vec(),
            ["tctx_task_work", "task_work_run", "asm_sysvec_reschedule_ipi"].map(str::to_owned).to_vec(),
        ],
        ..Trace::default()
    };
    let thread = |tid, role, name: &str| Thread { tid, role, name: name.to_owned() };
    trace.threads.extend([thread(11, Role::Worker, "worker 0"), thread(12, Role::Worker, "worker 1")]);
    trace.threads.extend([thread(13, Role::Pool, "pool 0"), thread(14, Role::Kernel, "iou-wrk-11")]);
    for worker in 0..2 {
        trace.scopes.push(scope(ScopeKind::Run, worker, None, 0));
        trace.fibers.push(Fiber { scope: worker, name: String::new(), began: 0, ended: None });
    }
    for worker in 0..2 {
        trace.scopes.push(scope(ScopeKind::ForEach, worker, Some(worker), 500));
    }
    for file in 0..files {
        copy_file(&mut trace, file);
    }
    let end = Nanos::from(files) * 5_000 + 60_000;
    trace.about.took = end;
    for scope in &mut trace.scopes {
        scope.ended = Some(end);
    }
    for fiber in &mut trace.fibers {
        fiber.ended.get_or_insert(end);
    }
    trace.operations.sort_by_key(|operation| operation.asked);
    trace.kernel.sort_by_key(|event| event.at);
    trace
}

/// Adds a block device that reads what the trace's operations read, and writes back some of what they write.
#[must_use]
pub fn with_device(mut trace: Trace) -> Trace {
    let device = u32::try_from(trace.threads.len()).unwrap_or(u32::MAX);
    trace.threads.push(Thread { tid: 0, role: Role::Device, name: "vda".to_owned() });
    let operations = trace.operations.iter().zip(0_u64..);
    let requests = operations.filter_map(|(operation, index)| {
        let (kind, thread) = if operation.kind == Kind::Read {
            (DeviceKind::Read, Some(operation.thread))
        } else if operation.kind == Kind::Write && index.is_multiple_of(4) {
            (DeviceKind::Write, None)
        } else {
            return None;
        };
        let issued = operation.asked + 300;
        let completed = operation.completed.map(|completed| completed.max(issued + 100) - 50);
        let (sector, bytes) = (2_048 + index * 8, operation.size);
        Some(DeviceRequest { device, kind, sector, bytes, thread, issued, completed, is_failed: false })
    });
    trace.device_requests = requests.collect();
    trace
}

fn scope(kind: ScopeKind, thread: u32, fiber: Option<u32>, began: Nanos) -> Scope {
    Scope { kind, thread, fiber, name: String::new(), began, ended: None, cancelled: None }
}

/// Adds the operations of one file, with their batches, sleep and task work.
fn copy_file(trace: &mut Trace, file: u32) {
    let worker = file % 2;
    let began = Nanos::from(file) * 5_000 + 1_000;
    let fiber = u32::try_from(trace.fibers.len()).unwrap_or(u32::MAX);
    let mut at = began;
    for (step, (kind, route, reason)) in (1_u64..).zip(EACH) {
        let took = 1_000 + u64::from(file.wrapping_mul(2_654_435_761) >> 20) * step;
        let mut operation = operation(kind, route, reason, worker, at);
        operation.fiber = Some(fiber);
        operation.name = format!("file {file}");
        if matches!(kind, Kind::Read | Kind::Write) {
            (operation.size, operation.offset) = (4_096, Some(u64::from(file % 8) * 4_096));
        }
        operation.completed = Some(at + took);
        operation.taken = Some(at + took + 400);
        operation.result = Some(if file % 1_000 == 999 { Err(2) } else { Ok(operation.size) });
        if route == Route::Ring {
            operation.submission = Some(u32::try_from(trace.submissions.len()).unwrap_or(u32::MAX));
            operation.request = Some(u32::try_from(trace.requests.len()).unwrap_or(u32::MAX));
            operation.met =
                Some([CompletionMet::Peek, CompletionMet::AtOnce, CompletionMet::Slept][file as usize % 3]);
            enter(trace, worker, file, at, took);
        }
        if route == Route::Pool {
            operation.ran_on = Some(2);
        }
        trace.operations.push(operation);
        at += took + 500;
    }
    let value = u64::from(file % 64);
    trace.samples.push(Sample { thread: worker, at: began, gauge: Gauge::InFlight, value });
    trace.fibers.push(Fiber { scope: 2 + worker, name: format!("file {file}"), began, ended: Some(at) });
}

fn operation(kind: Kind, route: Route, reason: Reason, thread: u32, asked: Nanos) -> Operation {
    Operation {
        kind,
        thread,
        fiber: None,
        name: String::new(),
        size: 0,
        offset: None,
        route,
        reason,
        asked,
        submitted: Some(asked + 200),
        started: (route != Route::Ring).then_some(asked + 300),
        completed: None,
        taken: None,
        result: None,
        abandoned: false,
        ran_on: None,
        submission: None,
        request: None,
        met: None,
    }
}

fn enter(trace: &mut Trace, thread: u32, file: u32, at: Nanos, took: Nanos) {
    let slept = file % 3 == 2;
    let why = [SubmitReason::Idle, SubmitReason::Forced, SubmitReason::Full][file as usize % 3];
    trace.submissions.push(Submission {
        thread,
        at: at + 200,
        requests: 1 + file % 9,
        why,
        in_flight: file % 64,
    });
    let (began, ended) = (at + 100, at + took);
    trace.enters.push(Enter {
        thread,
        began,
        ended,
        submitted: 1 + file % 9,
        waits: true,
        slept,
        found: 0,
        taken: 1,
    });
    if slept {
        trace.rests.push(Rest { thread, began, ended });
    }
    trace.requests.push(Request {
        thread,
        ring: thread,
        opcode: "READ".to_owned(),
        user_data: u64::from(file),
        submitted: at + 200,
        completed: Some(at + took),
        result: Some(4_096),
        handed_over: file.is_multiple_of(50).then_some(at + 250),
    });
    let cause = Cause::ALL[file as usize % Cause::ALL.len()];
    let did = Did::TaskWork { cause, count: 1 };
    trace.kernel.push(KernelEvent { thread, at: at + took, processor: thread, did, chain: Some(file % 2) });
}

//! The Perfetto export is read by Perfetto's own classes (PyPI's `perfetto`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_io::Route;
use ferry_trace::model::{Cause, Did, Enter, Gauge, KernelEvent, Rest, Role};
use ferry_trace::{Trace, export, sample};

/// Python with that package: the one that .ci/run installs beside the build, or the system's.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("perfetto/bin/python");
    let has_package = |python: &PathBuf| {
        let import = "import perfetto.protos.perfetto.trace.perfetto_trace_pb2";
        Command::new(python).args(["-c", import]).output().is_ok_and(|output| output.status.success())
    };
    let found = [own, PathBuf::from("python3")].into_iter().find(has_package);
    if found.is_none() {
        eprintln!("SKIP: there is no Python with the package perfetto");
    }
    found
}

/// Counts of the checker, if it can run here.
fn counted(trace: &Trace) -> Option<BTreeMap<String, u64>> {
    let python = python()?;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace.pftrace");
    let mut file = Vec::new();
    export::perfetto(trace, &mut file).unwrap();
    std::fs::write(&path, file).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/check_perfetto.py");
    let output = Command::new(python).arg(script).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines = printed.lines().filter(|line| !line.ends_with(" command"));
    Some(
        lines
            .map(|line| line.split_once(' ').unwrap())
            .map(|(n, what)| (what.to_owned(), n.parse().unwrap()))
            .collect(),
    )
}

/// Expected counts of a trace whose references are all valid.
fn expected(trace: &Trace) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |what: &str, count: u64| *counts.entry(what.to_owned()).or_insert(0) += count;
    add("recording", 1);
    add("counter", trace.counters.len() as u64);
    let threads = trace.threads.iter().filter(|thread| thread.role != Role::Device);
    add("thread track", threads.count() as u64);
    add("device", trace.device_requests.len() as u64);
    add("fiber", trace.fibers.len() as u64);
    add("scope", trace.scopes.len() as u64);
    add("failed", 0);
    for operation in &trace.operations {
        add("operation", 1);
        add(&format!("operation {}", operation.kind.name()), 1);
        add(&format!("route {}", operation.route.name()), 1);
        add("bytes", operation.size);
        add("failed", u64::from(operation.result.is_some_and(|result| result.is_err())));
        add("completion", u64::from(operation.route == Route::Ring && operation.taken.is_some()));
        let is_elsewhere = operation.submission.is_some() || operation.request.is_some();
        add(
            "flow",
            u64::from(
                is_elsewhere
                    || operation.ran_on.is_some()
                    || operation.taken.is_some() && operation.route == Route::Ring,
            ),
        );
        if operation.started.is_some() {
            add("thread", 1);
            add(&format!("thread {}", operation.kind.name()), 1);
        }
    }
    for submission in &trace.submissions {
        add("submission", 1);
        add("submitted", u64::from(submission.requests));
    }
    add("thread", (trace.enters.len() + trace.rests.len()) as u64);
    add("thread io_uring_enter", trace.enters.len() as u64);
    add("thread idle", trace.rests.len() as u64);
    for request in &trace.requests {
        add("request", 1 + u64::from(request.handed_over.is_some()));
    }
    for event in &trace.kernel {
        add("kernel", 1);
        if let Did::TaskWork { cause, .. } = event.did {
            add(&format!("task work, {}", cause.name()), 1);
        }
    }
    for sample in &trace.samples {
        let name = match sample.gauge {
            Gauge::InFlight => "in flight",
            Gauge::Blocks => "blocks",
            Gauge::Descriptors => "descriptors",
        };
        add(&format!("sample of {name}"), 1);
    }
    counts.retain(|what, count| *count > 0 || what == "flow" || what == "thread track");
    counts
}

/// Leaves out parts of operations, which depend on times and are checked elsewhere.
fn without_parts(mut counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    counts.retain(|what, count| {
        !what.starts_with("part") && (*count > 0 || what == "flow" || what == "thread track")
    });
    counts
}

#[test]
fn perfettos_own_classes_read_what_the_trace_has() {
    let mut trace = sample::with_device(sample::copy_of(1000));
    trace.counters.push(("submissions".to_owned(), 2000));
    let Some(counts) = counted(&trace) else { return };
    assert!(counts["part in the ring"] == 2000 && counts["part runs"] == 2000);
    assert!(counts["flow"] == 3000 && counts["failed"] == 4);
    assert!(Cause::ALL.iter().all(|cause| counts[&format!("task work, {}", cause.name())] == 250));
    assert_eq!(without_parts(counts), expected(&trace));
}

/// One of the checker's counts.
fn count(counts: &BTreeMap<String, u64>, what: &str) -> u64 {
    counts.get(what).copied().unwrap_or(0)
}

#[test]
fn what_is_unfinished_or_overlaps_still_makes_slices_that_begin_and_end() {
    let mut trace = sample::copy_of(60);
    trace.about.took = 150_000;
    for operation in trace.operations.iter_mut().step_by(7) {
        (operation.completed, operation.taken, operation.result) = (None, None, None);
    }
    for operation in trace.operations.iter_mut().step_by(11) {
        operation.fiber = None;
    }
    trace.scopes[2].ended = None;
    trace.fibers.iter_mut().step_by(5).for_each(|fiber| fiber.ended = None);
    trace.requests.iter_mut().step_by(3).for_each(|request| request.completed = None);
    // Three sleeps that overlap, and a call that ends before it begins.
    for began in [100, 200, 300] {
        trace.rests.insert(0, Rest { thread: 0, began, ended: began + 5_000 });
    }
    let first = trace.enters[0];
    trace.enters.push(Enter { began: 900, ended: 1, ..first });
    // Two sleeps without a wake-up in between: the wake-up was not recorded. The last sleep has none. A thread that
    // runs again without a recorded wake-up ends its sleep.
    let sleeps = [
        (6, Did::Sleep),
        (8, Did::Run),
        (10, Did::Sleep),
        (20, Did::Sleep),
        (30, Did::Wake { by: Some(1) }),
        (40, Did::Sleep),
    ];
    for (at, did) in [(5, Did::Began)].into_iter().chain(sleeps) {
        trace.kernel.push(KernelEvent { thread: 1, at, processor: 0, did, chain: None });
    }
    // From 10 to 30, and from 40 to the thread's end.
    trace.kernel.push(KernelEvent { thread: 1, at: 45, processor: 0, did: Did::Ended, chain: None });
    let Some(counts) = counted(&trace) else { return };
    assert_eq!(count(&counts, "nanoseconds asleep"), 27);
    for (what, expected) in [
        ("operation", trace.operations.len()),
        ("fiber", trace.fibers.len()),
        ("scope", trace.scopes.len()),
        ("thread idle", trace.rests.len()),
        ("thread io_uring_enter", trace.enters.len()),
        // Only one of two sleeps.
        ("kernel", trace.kernel.len() - 1),
    ] {
        assert_eq!(count(&counts, what), expected as u64, "{what}");
    }
}

#[test]
fn what_refers_to_nothing_is_left_out() {
    let Some(counts) = counted(&Trace::default()) else { return };
    assert_eq!(
        counts,
        [("flow", 0), ("recording", 1), ("thread track", 0)].map(|(what, n)| (what.to_owned(), n)).into()
    );

    let mut trace = sample::copy_of(20);
    trace.threads.clear();
    let Some(counts) = counted(&trace) else { return };
    assert_eq!((count(&counts, "operation"), count(&counts, "thread")), (0, 0));

    let mut trace = sample::copy_of(20);
    (trace.scopes, trace.fibers, trace.submissions, trace.requests) = (vec![], vec![], vec![], vec![]);
    let Some(counts) = counted(&trace) else { return };
    // From the request to the completion, or to the executing thread.
    assert_eq!((count(&counts, "operation"), count(&counts, "flow")), (80, 60));
}

#[test]
fn names_are_kept_whatever_they_are() {
    let mut trace = sample::copy_of(1);
    trace.about.command = ["ferry", "cp", "ä \u{202e}\n</script>\0", ""].map(str::to_owned).to_vec();
    trace.operations[0].name = "\u{fffd}\u{1f600}\t".to_owned();
    let Some(counts) = counted(&trace) else { return };
    assert_eq!(without_parts(counts), expected(&trace));
}

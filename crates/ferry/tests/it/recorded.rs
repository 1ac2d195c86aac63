//! `ferry trace record`.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

fn record(folder: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferry"));
    command.current_dir(folder).args(["trace", "record"]).args(arguments);
    command.output().expect("it runs")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns true if the kernel may be traced here; otherwise prints SKIP.
fn is_allowed(output: &Output) -> bool {
    let is_refused = output.status.code() == Some(125) && errors(output).contains("cannot trace the kernel");
    if is_refused {
        eprintln!("SKIP: {}", errors(output).trim());
    }
    !is_refused
}

#[test]
fn a_recorded_command_ends_as_it_would_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = record(folder.path(), &["--", "sh", "-c", "echo said; exit 7"]);
    if !is_allowed(&ended) {
        return;
    }
    assert_eq!(ended.status.code(), Some(7), "{}", errors(&ended));
    assert_eq!(ended.stdout, b"said\n");
    let told = "ferry trace record: recorded to 'trace.ferry'\n\
                ferry trace record: only the kernel's side: no run on ferry-io was recorded\n";
    assert_eq!(errors(&ended), told);
    let ended = record(folder.path(), &["--output=killed", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(ended.status.signal(), Some(15));
    for (word, code) in [("./missing", 127), (".", 126)] {
        let ended = record(folder.path(), &["-o", "other", "--", word]);
        assert_eq!(ended.status.code(), Some(code), "{}", errors(&ended));
        assert_eq!(errors(&ended).lines().count(), 1);
    }
    fs::write(folder.path().join("letter"), "dear").expect("a file");
    let ended = record(folder.path(), &["-o", "letter", "--", "true"]);
    assert_eq!(ended.status.code(), Some(125));
    assert_eq!(fs::read(folder.path().join("letter")).expect("it is there"), b"dear");
}

#[test]
fn a_command_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["true"][..], &["--"], &["-o"], &["true", "--", "true"], &["--what", "--", "true"]] {
        let ended = record(folder.path(), arguments);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
        assert!(!folder.path().join("trace.ferry").exists());
    }
}

#[test]
fn fios_requests_are_recorded_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let fio = ["--name=reads", "--ioengine=io_uring", "--rw=randread", "--bs=4k", "--iodepth=8", "--size=1m"];
    if Command::new("fio").arg("--version").output().is_err() {
        return eprintln!("SKIP: fio is not installed");
    }
    let ended = record(folder.path(), &[&["--", "fio"][..], &fio].concat());
    if !is_allowed(&ended) {
        return;
    }
    assert!(ended.status.success(), "{}", errors(&ended));
    let trace = ferry_trace::read::open(&folder.path().join("trace.ferry")).expect("a recording");
    assert_eq!(trace.about.command[0], "fio");
    assert_eq!((trace.lost.kernel, trace.requests.len()), (0, 256));
    assert!(trace.requests.iter().all(|request| request.opcode == "READ" && request.result == Some(4096)));
    assert!(trace.threads.iter().any(|thread| thread.name == "fio"));
    assert!(ferry_trace::check::check(&trace).is_empty());
}

#[test]
fn a_program_on_ferry_io_is_recorded_from_both_sides() {
    let folder = many_files();
    let ferry = env!("CARGO_BIN_EXE_ferry");
    let ended = record(folder.path(), &["-o", "t", "--", ferry, "cp", "-r", "--route=ring", "s", "d"]);
    if !is_allowed(&ended) {
        return;
    }
    assert!(ended.status.success(), "{}", errors(&ended));
    assert_eq!(errors(&ended), "ferry trace record: recorded to 't', with the program's side\n");
    let trace = ferry_trace::read::open(&folder.path().join("t")).expect("a recording");
    assert_eq!(ferry_trace::check::check(&trace), Vec::<String>::new());
    assert_eq!(trace.about.command[1..], ["cp", "-r", "--route=ring", "s", "d"].map(str::to_owned));
    assert!(trace.fibers.iter().any(|fiber| fiber.name == "f7"));
    let on_ring = |operation: &&ferry_trace::model::Operation| operation.route == ferry_io::Route::Ring;
    let on_ring: Vec<_> = trace.operations.iter().filter(on_ring).collect();
    assert!(on_ring.iter().all(|operation| operation.request.is_some()), "each is a request of the kernel's");
    if on_ring.is_empty() {
        eprintln!("SKIP: there is no io_uring here");
    }
    // The kernel's events of a thread belong to the program's worker.
    let worker = trace.threads.iter().position(|thread| thread.name == "worker 0").expect("a worker");
    assert!(trace.kernel.iter().any(|event| usize::try_from(event.thread) == Ok(worker)));
    let tids: std::collections::HashSet<u32> = trace.threads.iter().map(|thread| thread.tid).collect();
    assert_eq!(tids.len(), trace.threads.len());
}

#[test]
fn why_there_is_no_programs_side_is_told() {
    let folder = many_files();
    let ferry = env!("CARGO_BIN_EXE_ferry");
    let twice = format!("{ferry} cp -r s d && {ferry} cp -r s e");
    let ended = record(folder.path(), &["-o", "t", "--", "sh", "-c", &twice]);
    if !is_allowed(&ended) {
        return;
    }
    assert_eq!(
        errors(&ended),
        "ferry trace record: recorded to 't'\n\
         ferry trace record: only the kernel's side: 2 runs on ferry-io can't be joined\n\
         ferry trace record: set FERRY_TRACE=FILE.%n to get a recording of each run\n"
    );
    let ended = record(folder.path(), &["-o", "t", "--kernel-only", "--", ferry, "cp", "-r", "s", "f"]);
    assert_eq!(errors(&ended), "ferry trace record: recorded to 't'\n");
    let mut command = Command::new(ferry);
    command.args(["trace", "record", "-o", "t", "--", ferry, "cp", "-r", "s", "g"]);
    let ended = command.current_dir(folder.path()).env("FERRY_TRACE", "own").output().expect("it runs");
    assert_eq!(
        errors(&ended),
        "ferry trace record: recorded to 't'\n\
         ferry trace record: only the kernel's side: the other goes to FERRY_TRACE's file\n"
    );
    let own = ferry_trace::read::open(&folder.path().join("own")).expect("a recording");
    assert!(own.about.missing.iter().all(|line| !line.contains("FERRY_TRACE_KERNEL")), "it has both sides");
}

#[test]
fn a_command_of_another_user_is_recorded_from_both_sides() {
    let folder = many_files();
    let ferry = folder.path().join("ferry");
    crate::scene::place_program(env!("CARGO_BIN_EXE_ferry").as_ref(), &ferry);
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let copy = [ferry.to_str().expect("plain"), "cp", "-r", "s", "d"];
    let ended = record(folder.path(), &[&["-o", "t", "--"], &user[..], &copy].concat());
    if !is_allowed(&ended) || errors(&ended).contains("Operation not permitted") {
        return eprintln!("SKIP: {}", errors(&ended).trim());
    }
    assert_eq!(errors(&ended), "ferry trace record: recorded to 't', with the program's side\n");
}

#[test]
fn a_signal_is_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    if !is_allowed(&record(folder.path(), &["-o", "first", "--", "true"])) {
        return;
    }
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferry"));
    command.current_dir(folder.path()).args(["trace", "record", "--", "sh", "-c", script]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    let mut said = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut said).expect("it speaks");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(9));
}

/// A directory with 300 files in `s`, writable for everyone.
fn many_files() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("s")).expect("a folder");
    for number in 0..300 {
        fs::write(folder.path().join(format!("s/f{number}")), "content").expect("a file");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    folder
}

/// Recording of `cp -r --trace t`, prefixed with these words.
fn copied(folder: &std::path::Path, before: &[&str]) -> Option<ferry_trace::model::Trace> {
    let copy = [env!("CARGO_BIN_EXE_ferry"), "cp", "-r", "--route=ring", "--trace=t", "s", "d"];
    let words = [before, &copy].concat();
    let output = Command::new(words[0]).current_dir(folder).args(&words[1..]).output().expect("it runs");
    if errors(&output).contains("Operation not permitted") && !before.is_empty() {
        eprintln!("SKIP: {}", errors(&output).trim());
        return None;
    }
    assert_eq!((output.status.code(), errors(&output)), (Some(0), String::new()));
    assert_eq!(fs::read_dir(folder.join("d")).expect("it is there").count(), 300);
    Some(ferry_trace::read::open(&folder.join("t")).expect("a recording"))
}

#[test]
fn what_a_recording_needs_is_not_taken_from_the_copy() {
    let folder = many_files();
    let trace =
        copied(folder.path(), &["sh", "-c", "ulimit -n 36; exec \"$0\" \"$@\""]).expect("sh may do so");
    let missing = &trace.about.missing;
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].starts_with("nothing of the kernel's side: it needs "), "{missing:?}");
}

#[test]
fn who_may_not_see_the_kernel_is_told_so_once() {
    let folder = many_files();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let Some(trace) = copied(folder.path(), &nobody) else { return };
    assert_eq!(trace.about.missing, ["nothing of the kernel's side: it needs root or CAP_PERFMON"]);
}

#[test]
fn strangers_are_not_woken_in_a_pid_namespace() {
    let folder = many_files();
    let Some(trace) = copied(folder.path(), &["unshare", "-p", "-f", "--mount-proc"]) else { return };
    if trace.about.missing.iter().any(|line| line.starts_with("nothing of the kernel's side")) {
        return eprintln!("SKIP: {:?}", trace.about.missing);
    }
    assert!(trace.about.missing.iter().any(|line| line.contains("in a PID namespace")));
    let is_wake = |did: &ferry_trace::model::Did| matches!(did, ferry_trace::model::Did::Wake { .. });
    assert!(!trace.kernel.iter().any(|event| is_wake(&event.did)));
}

#[test]
fn a_recording_ends_with_its_run() {
    let folder = many_files();
    let trace = copied(folder.path(), &[]).expect("it may");
    let last = trace.operations.iter().filter_map(|operation| operation.taken).max().expect("some");
    // Removing the tracepoints alone takes the kernel twice this time.
    assert!(trace.about.took - last < 150_000_000, "{} {last}", trace.about.took);
    let descriptors =
        trace.samples.iter().filter(|sample| sample.gauge == ferry_trace::model::Gauge::Descriptors);
    let last = descriptors.max_by_key(|sample| sample.at).expect("some");
    assert!(last.value < 100, "what was closed is not open: {last:?}");
}

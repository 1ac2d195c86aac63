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

/// Whether the kernel's side may be seen here; if not, that is told.
fn is_allowed(output: &Output) -> bool {
    let is_refused = output.status.code() == Some(125) && errors(output).contains("can't be seen here");
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
    assert_eq!(errors(&ended), "ferry trace record: recorded to 'trace.ferry'\n");
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

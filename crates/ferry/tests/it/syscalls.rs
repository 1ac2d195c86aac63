//! `ferry lab syscalls`, and its counters compared with strace.

use std::path::Path;
use std::process::Command;

use ferry_tree::compare::{Options, snapshots};
use serde_json::Value;

use crate::measured::quick;
use crate::scene::{FERRY, comparison, is_root, skip, text};

/// Returns `None` without io_uring.
fn a_ring() -> Option<()> {
    ferry_lab::needs::ring().or_else(|why| skip(&why).ok_or(())).ok()
}

fn figures(record: &Value) -> impl Iterator<Item = &Value> {
    let cells = record["cells"].as_array().unwrap();
    cells.iter().flat_map(|cell| cell["runs"].as_array().unwrap()).map(|run| &run["figures"])
}

#[test]
fn counters_equal_the_tracepoints_of_the_same_run() {
    let Some(()) = a_ring() else { return };
    let measured = quick("syscalls", &["--files=2", "--markdown"]);
    let said = text(&measured.output.stdout);
    assert!(said.contains("3,905 files of 1 MiB in blocks of 4,096 bytes take about 80,000"), "{said}");
    assert!(said.contains("dfs, two fibers a folder: 155 files of 64K, 2 levels of folders"), "{said}");
    assert!(figures(&measured.record).all(|figures| figures["switches"].is_number()));
    let traced = figures(&measured.record).filter(|figures| figures["traced_enters"].is_number()).count();
    if traced == 0 {
        assert!(!is_root(), "root may trace: {said}");
        skip::<()>("nothing may be traced");
        return;
    }
    for figures in figures(&measured.record) {
        for (own, theirs) in [
            ("ring_enters", "traced_enters"),
            ("requests", "traced_requests"),
            ("handovers", "traced_handovers"),
        ] {
            assert_eq!(figures[own], figures[theirs], "{own}: {figures}");
        }
    }
    assert!(said.contains("tracepoints in the same run | holds |"), "{said}");
}

/// Number of io_uring_enter(2) calls seen by strace, and the copy's statistics; `None` without strace.
fn counted_by_strace(folder: &Path, options: &[&str]) -> Option<(u64, Value)> {
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-e", "trace=io_uring_enter", "-o", "log", FERRY, "cp", "-r", "--stats=json"]);
    command.args(options).args(["source", "target"]).current_dir(folder);
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => return skip("strace is not here"),
    };
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    let Some(line) = log.lines().find(|line| line.ends_with("io_uring_enter")) else {
        return skip(&format!("strace counted nothing: {}", text(&output.stderr)));
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Columns: % time, seconds, usecs/call, calls, errors if any, syscall.
    let calls = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    Some((calls, serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap()))
}

#[test]
fn counters_equal_what_strace_counts() {
    let Some(()) = a_ring() else { return };
    for options in
        [&["--queue-depth=1"][..], &["--queue-depth=64"], &["--queue-depth=64", "--ring-mode=sqpoll"]]
    {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("source")).unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(place.path().join("source").join(name), vec![7; 300_000]).unwrap();
        }
        let options = [&["--route=ring", "--block-size=4K"], options].concat();
        let Some((calls, stats)) = counted_by_strace(place.path(), &options) else { return };
        assert_eq!(stats["ring_enters"], calls, "{options:?}");
        assert!(calls > 0, "{options:?}: {calls}");
    }
}

/// Every second io_uring_enter(2) fails, as without memory, with too many completions, or after a signal.
#[test]
fn a_copy_withstands_refused_calls_of_the_ring() {
    let Some(()) = a_ring() else { return };
    for errno in ["EBUSY", "EAGAIN", "EINTR", "ENOMEM"] {
        for mode in ["defer", "coop", "plain"] {
            let place = tempfile::tempdir().unwrap();
            std::fs::create_dir(place.path().join("source")).unwrap();
            for name in 0..40_u8 {
                let path = place.path().join("source").join(name.to_string());
                std::fs::write(path, vec![name; 5000 * usize::from(name)]).unwrap();
            }
            let mut command = Command::new("strace");
            command.args(["-f", "-o", "log", "-e", "trace=io_uring_enter"]);
            command.args(["-e", &format!("inject=io_uring_enter:error={errno}:when=1+2")]).arg(FERRY);
            command.args([
                "cp",
                "-r",
                "--route=ring",
                "--block-size=4K",
                "--queue-depth=8",
                "--ring-mode",
                mode,
            ]);
            let output = match command.args(["source", "target"]).current_dir(place.path()).output() {
                Ok(output) => output,
                Err(_) => {
                    skip::<()>("strace is not here");
                    return;
                }
            };
            assert!(output.status.success(), "{errno}, {mode}: {}", text(&output.stderr));
            let log = std::fs::read_to_string(place.path().join("log")).unwrap();
            let refused = log.lines().filter(|line| line.contains("(INJECTED)")).count();
            assert!(refused > 10, "{errno}, {mode}: {refused} calls were refused");
            let [source, target] = ["source", "target"].map(|name| place.path().join(name));
            let capture = |path: &Path| ferry_tree::capture::capture(path).unwrap();
            let options = Options { mtime: false, ..comparison() };
            let differences = snapshots(&capture(&source), &capture(&target), &options);
            assert!(differences.is_empty(), "{errno}, {mode}: {differences:?}");
        }
    }
}

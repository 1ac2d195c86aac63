//! `--bwlimit`: the rate that it reaches.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, ferry, text};

/// Rate as the option's value and in bytes per second.
const RATE: (&str, f64) = ("6M", 6.0 * 1_048_576.0);
const BYTES: usize = 12 << 20;

/// Copies `s` to a new `t`; returns the rate in bytes per second from `--stats`.
fn rate(folder: &Path, options: &[&str]) -> f64 {
    let all = [&["cp", "-r", "--stats=json", "--bwlimit", RATE.0], options, &["s", "t"]].concat();
    let output = ferry(folder, &all);
    assert!(output.status.success(), "{all:?}: {}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["bytes"].as_u64(), Some(BYTES as u64), "{found}");
    let same = ferry(folder, &["verify", "--ignore=times,owner,mode", "s", "t"]);
    assert!(same.status.success(), "{all:?}: {}", text(&same.stdout));
    ferry_tree::remove::remove(&folder.join("t")).unwrap();
    found["bytes"].as_f64().unwrap() / found["wall_seconds"].as_f64().unwrap()
}

const MOST_TRIES: usize = 10;

/// Expects the rate within 5 %; retries if it is too low, because the machine may be busy.
#[track_caller]
fn assert_holds(folder: &Path, options: &[&str]) {
    let mut rates = Vec::new();
    for _ in 0..MOST_TRIES {
        rates.push(rate(folder, options) / RATE.1);
        assert!(rates.iter().all(|&part| part <= 1.05), "{options:?} is faster than allowed: {rates:?}");
        if rates.iter().any(|&part| part >= 0.95) {
            return;
        }
    }
    panic!("{options:?} is slower than allowed: {rates:?}");
}

#[test]
fn a_large_file_keeps_to_its_rate() {
    let memory = Filesystem::memory();
    let mut content = vec![0; BYTES];
    ferry_tree::fill::fill(1, 0, &mut content);
    fs::write(memory.path().join("s"), content).unwrap();
    for options in [
        &["--backend=uring"][..],
        &["--backend=posix"],
        &["--reflink=never", "--fsync"],
        &["--sparse=always"],
        &["--atomic"],
    ] {
        assert_holds(memory.path(), options);
    }
}

#[test]
fn many_small_files_keep_to_their_rate() {
    let memory = Filesystem::memory();
    fs::create_dir(memory.path().join("s")).unwrap();
    for index in 0..BYTES / 4096 {
        fs::write(memory.path().join(format!("s/{index}")), [7; 4096]).unwrap();
    }
    for options in [&["--backend=uring"][..], &["--backend=posix"], &["--atomic"]] {
        assert_holds(memory.path(), options);
    }
}

#[test]
fn a_slow_copy_is_interrupted_at_once() {
    let memory = Filesystem::memory();
    fs::create_dir(memory.path().join("s")).unwrap();
    for (name, size) in [("large", 64 << 20), ("small", 100)] {
        fs::write(memory.path().join("s").join(name), vec![7; size]).unwrap();
    }
    for backend in ["--backend=uring", "--backend=posix"] {
        let mut command = Command::new(FERRY);
        command.current_dir(memory.path()).args(["cp", "-r", "--bwlimit=1", backend, "s", "t"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        let begun = Instant::now();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(2), "{backend}: {status}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{backend}: {:?}", begun.elapsed());
        assert_eq!(fs::read_dir(memory.path().join("t")).unwrap().count(), 0, "{backend}");
        fs::remove_dir(memory.path().join("t")).unwrap();
    }
}

#[test]
fn a_rate_that_is_none_is_refused() {
    let memory = Filesystem::memory();
    fs::write(memory.path().join("f"), "text").unwrap();
    for rate in [
        "0",
        "0K",
        "",
        "-1",
        "+1",
        "1.5M",
        "fast",
        "1T",
        "1 M",
        "99999999999999999999",
        "18446744073709551615K",
    ] {
        let output = ferry(memory.path(), &["cp", &format!("--bwlimit={rate}"), "f", "g"]);
        let said = text(&output.stderr);
        let start = format!("ferry cp: invalid rate '{rate}' for '--bwlimit'");
        assert!(output.status.code() == Some(1) && said.starts_with(&start), "{rate}: {said}");
        assert!(!memory.path().join("g").exists(), "{rate}");
    }
    for rate in ["1G", "1GiB", "1k", "1000000", "18446744073709551615"] {
        let output = ferry(memory.path(), &["cp", "--bwlimit", rate, "f", "g"]);
        assert!(output.status.success(), "{rate}: {}", text(&output.stderr));
    }
}

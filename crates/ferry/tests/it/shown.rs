//! Effects of options, shown by the statistics: submissions, ring modes, durability, shared extents.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{Stage, ferry, skip, text};

fn statistics(folder: &Path, options: &[&str]) -> Value {
    let output = ferry(folder, &[&["cp", "--stats=json"], options].concat());
    assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(statistics: &Value, key: &str) -> u64 {
    statistics[key].as_u64().unwrap_or_else(|| panic!("{key} in {statistics}"))
}

#[test]
fn one_request_at_a_time_enters_the_kernel_twice_a_block() {
    let memory = Filesystem::memory();
    for (block, block_bytes, blocks) in [("4K", 4 << 10, 2048), ("1M", 1 << 20, 160)] {
        let mut content = vec![0; block_bytes * blocks];
        ferry_tree::fill::fill(1, 0, &mut content);
        fs::write(memory.path().join("file"), &content).unwrap();
        let options = ["--backend=uring", "--route=ring", "--queue-depth=1", "--block-size", block];
        let found = statistics(memory.path(), &[&options[..], &["file", "copy"]].concat());
        assert!(fs::read(memory.path().join("copy")).unwrap() == content);
        let (enters, promised) = (number(&found, "ring_enters"), 2 * blocks as u64);
        assert!(
            enters.abs_diff(promised) * 100 <= promised * 5,
            "{block}: {enters} for {blocks} blocks: {found}"
        );
        fs::remove_file(memory.path().join("copy")).unwrap();
    }
}

#[test]
fn many_fibers_share_their_submissions() {
    let memory = Filesystem::memory();
    fs::create_dir(memory.path().join("many")).unwrap();
    for index in 0..400 {
        fs::write(memory.path().join(format!("many/{index}")), [7; 3000]).unwrap();
    }
    let run = |depth: &str, target: &str| {
        let options = ["-r", "--backend=uring", "--route=ring", "--workers=1", "--queue-depth", depth];
        let found = statistics(memory.path(), &[&options[..], &["many", target]].concat());
        (number(&found, "ring_enters"), number(&found, "submitted"))
    };
    let (one, eight, most) = (run("1", "one"), run("8", "eight"), run("256", "most"));
    assert_eq!((one.1, one.1), (eight.1, most.1), "the same operations");
    // A file's own operations wait for each other, so not every batch is full.
    assert!(eight.0 * 4 <= one.0, "{eight:?} after {one:?}");
    assert!(most.0 * 10 <= one.0, "{most:?} after {one:?}");
}

#[test]
fn every_ring_mode_is_taken_or_refused_with_its_reason() {
    let stage = Stage::new();
    for mode in ["defer", "coop", "plain", "sqpoll", "iopoll"] {
        stage.set();
        let options = ["cp", "-a", "--stats=json", "--route=ring", "--ring-mode", mode, "src", "new"];
        let output = ferry(&stage.root(), &options);
        if output.status.success() {
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            let reason = found["backend_reason"].as_str().unwrap();
            assert!(found["backend"] == "uring" && reason.contains(mode), "{mode}: {found}");
            let same = ferry(&stage.root(), &["verify", "src", "new"]);
            assert!(same.status.success(), "{mode}: {}", text(&same.stdout));
        } else {
            let said = text(&output.stderr);
            let start = format!("ferry cp: ring mode {mode} is unavailable here (");
            assert!(said.starts_with(&start) && mode == "iopoll", "{mode}: {said}");
            assert!(!stage.root().join("new").exists());
        }
    }
    let output = ferry(&stage.root(), &["cp", "--ring-mode=zork", "f", "new"]);
    let said = text(&output.stderr).replace(['‘', '’'], "'");
    assert!(said.starts_with("ferry cp: invalid argument 'zork' for '--ring-mode'"), "{said}");
}

#[test]
fn durable_copies_wait_for_the_device() {
    let stage = Stage::new();
    let syncs = |options: &[&str]| {
        stage.set();
        let found = statistics(&stage.root(), options);
        let routes = found["operations_by_kind"]["sync"].as_object().cloned().unwrap_or_default();
        routes.values().filter_map(Value::as_u64).sum::<u64>()
    };
    for backend in ["--backend=uring", "--backend=posix"] {
        assert_eq!(syncs(&[backend, "-a", "src", "new"]), 0);
        assert!(syncs(&[backend, "-a", "--fsync", "src", "new"]) > 0);
        // The file, and the directory with its name.
        assert!(syncs(&[backend, "--fsync", "f", "new"]) >= 2);
    }
}

/// Returns true if FIEMAP marks every extent as shared.
pub(crate) fn is_shared(file: &Path) -> Option<bool> {
    let Ok(output) = Command::new("filefrag").arg("-v").arg(file).output() else {
        return skip("there is no filefrag");
    };
    let printed = text(&output.stdout).to_owned();
    // Parses `   0:        0..     511:      12288..     12799:    512:             last,shared,eof`.
    let is_extent =
        |line: &&str| line.split(':').next().is_some_and(|first| first.trim().parse::<u32>().is_ok());
    let extents: Vec<&str> = printed.lines().filter(is_extent).collect();
    assert!(!extents.is_empty(), "{printed}");
    Some(extents.iter().all(|line| line.contains("shared")))
}

fn shares_extents(filesystem: &Filesystem) {
    let root = filesystem.path();
    fs::create_dir(root.join("source")).unwrap();
    for (name, seed) in [("a", 1), ("b", 2)] {
        let mut content = vec![0; 2 << 20];
        ferry_tree::fill::fill(seed, 0, &mut content);
        fs::write(root.join("source").join(name), content).unwrap();
    }
    for (backend, target) in [("--backend=uring", "one"), ("--backend=posix", "two")] {
        let found = statistics(root, &["-a", "--reflink=always", backend, "source", target]);
        assert_eq!(found["methods"]["reflink"]["files"].as_u64(), Some(2), "{found}");
        let same = ferry(root, &["verify", "source", target]);
        assert!(same.status.success(), "{}", text(&same.stdout));
        for name in ["a", "b"] {
            assert_ne!(is_shared(&root.join(target).join(name)), Some(false), "{target}/{name}");
        }
    }
    let found = statistics(root, &["-a", "--reflink=never", "source", "three"]);
    assert_eq!(found["methods"]["reflink"]["files"].as_u64(), Some(0), "{found}");
}

#[test]
fn btrfs_shares_extents() {
    within("shown::btrfs_shares_extents", "btrfs", shares_extents);
}

#[test]
fn xfs_shares_extents() {
    within("shown::xfs_shares_extents", "xfs", shares_extents);
}

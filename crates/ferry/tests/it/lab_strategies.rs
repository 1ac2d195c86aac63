//! `ferry lab strategies`: record, and the same bytes as plain programs.

use std::process::Command;

use crate::measured::{best, cells, left_in, quick};
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{ferry, text};
use crate::shown::is_shared;

const ALWAYS: &[&str] = &["read-write", "splice", "sendfile", "mmap", "cp", "dd"];

#[test]
fn a_quick_run_makes_a_record() {
    let record = quick("strategies", &[]).record;
    let cells = cells(&record);
    for state in ["cold", "warm"] {
        let found = |prefix: String| cells.iter().filter(|(name, _)| name.starts_with(&prefix)).count();
        assert_eq!(found(format!("one/{state}/")), 14);
        assert_eq!(found(format!("many/{state}/")), 13);
    }
    for (name, missing) in cells {
        let strategy = name.split('/').nth(2).unwrap();
        if name.contains("/warm/") && ALWAYS.contains(&strategy) {
            assert_eq!(missing, None, "{name}");
        }
    }
    // Speeds need a quiet machine; the measured work does not.
    for program in ["cp", "dd/128K"] {
        let [ours, theirs] = ["read-write/128K", program]
            .map(|name| best(&record, &format!("one/warm/{name}"), "throughput_b_s"));
        assert!(
            ours < 20.0 * theirs && theirs < 20.0 * ours,
            "{ours} and {program}'s {theirs} bytes a second"
        );
    }
}

#[test]
fn strategies_write_what_plain_programs_write() {
    // Direct I/O needs a disk.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = folder.path();
    let content: Vec<u8> = (0..300_u32 << 10).map(|n| (n ^ (n >> 8) ^ (n >> 16)).to_le_bytes()[0]).collect();
    std::fs::write(place.join("source"), &content).unwrap();
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(place).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {}", text(&output.stderr));
    };
    run("cp", &["--reflink=never", "source", "by-cp"]);
    run("dd", &["if=source", "of=by-dd", "bs=4096"]);
    let plain = ["read-write", "splice", "sendfile", "copy-file-range", "mmap"];
    let others = ["dontcache", "ring-buffered", "ring-registered", "ring-direct", "direct-read", "own-cache"];
    for strategy in plain.into_iter().chain(others) {
        for (block, depth) in [("4096", "1"), ("1048576", "8")] {
            let target = format!("{strategy}-{block}");
            let words = ["lab", "strategy", strategy, "--block-size", block, "--depth", depth];
            let output = ferry(place, &[&words[..], &["source", &target]].concat());
            let said = text(&output.stderr);
            let lacks = ["io_uring", "RWF_DONTCACHE", "O_DIRECT", "not supported", "registered buffers"]
                .iter()
                .any(|name| said.contains(name));
            if others.contains(&strategy) && lacks {
                eprintln!("SKIP {strategy}: {said}");
                continue;
            }
            assert!(output.status.success(), "{strategy}: {said}");
            for program in ["by-cp", "by-dd"] {
                let [ours, theirs] =
                    [target.as_str(), program].map(|name| std::fs::read(place.join(name)).unwrap());
                assert!(ours == theirs, "{target} differs from {program}");
            }
        }
    }
}

/// Clones a file and a directory, and compares them.
fn reflinks(filesystem: &Filesystem) {
    let root = filesystem.path();
    let folder = root.join("source");
    std::fs::create_dir(&folder).unwrap();
    for (name, size) in [("whole", 3 << 20), ("odd", 70_001), ("empty", 0)] {
        let mut content = vec![0; size];
        ferry_tree::fill::fill(9, 0, &mut content);
        std::fs::write(folder.join(name), content).unwrap();
    }
    for (source, target) in [("source/whole", "file"), ("source", "folder")] {
        let words = ["lab", "strategy", "reflink", "--block-size", "131072", "--depth", "8", source, target];
        let output = ferry(root, &words);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{source}");
        let same = Command::new("diff").args(["-r", source, target]).current_dir(root).output().unwrap();
        assert!(same.status.success(), "{same:?}");
    }
    for target in ["file", "folder/whole", "folder/odd"] {
        assert_ne!(is_shared(&root.join(target)), Some(false), "{target}");
    }
}

#[test]
fn reflinks_are_made_on_btrfs() {
    within("lab_strategies::reflinks_are_made_on_btrfs", "btrfs", reflinks);
}

#[test]
fn reflinks_are_made_on_xfs() {
    within("lab_strategies::reflinks_are_made_on_xfs", "xfs", reflinks);
}

#[test]
fn what_it_needs_is_checked_first() {
    let place = tempfile::tempdir().unwrap();
    let said = |options: &[&str], code: i32| {
        let output = ferry(place.path(), &[&["lab", "strategies"], options].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(left_in(place.path()).is_empty());
        text(&output.stderr).to_owned()
    };
    let told = said(&["--size", "5000"], 2);
    assert_eq!(told, "ferry lab: '--size' must be a multiple of 4K, because direct I/O requires it\n");
    assert!(said(&["--size", "1000G"], 1).contains(" needs "));
    assert!(said(&["--strategies", "teleport"], 2).contains("valid are: read-write, splice"));
}

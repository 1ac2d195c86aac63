//! Long and deep folders, and runs that are killed.

use std::process::{Command, Stdio};
use std::time::Duration;

use ferry_tree::fill::SplitMix64;
use ferry_tree::{Node, Tree};

use super::{Pair, said, seeds};
use crate::random::filesystem::Filesystem;
use crate::scene::FERRY;

fn old(text: &str) -> Node {
    Node::file(text).mtime(1_000, 1)
}

#[test]
fn a_folder_of_many_rows_is_walked_in_parts() {
    let memory = Filesystem::memory();
    let (mut source, mut target) = (Tree::new(), Tree::new());
    for number in 0..3_000 {
        let name = format!("long/{number}");
        match number % 5 {
            0 => source.insert(name.as_bytes(), old("new")),
            1 => target.insert(name.as_bytes(), old("gone")),
            2 => {
                source.insert(name.as_bytes(), Node::directory());
                source.insert(format!("{name}/inner").as_bytes(), old("inner"));
                target.insert(format!("{name}/other").as_bytes(), old("other"));
            }
            3 => {
                source.insert(name.as_bytes(), old("longer"));
                target.insert(name.as_bytes(), old("short"));
            }
            _ => {
                source.insert(name.as_bytes(), old("same"));
                target.insert(name.as_bytes(), old("same"));
            }
        }
    }
    let words = ["--delete", "--max-delete=any"];
    for plan in [&[][..], &["--plan", "plan"]] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        let mut output = pair.sync(&[&words, plan].concat());
        if !plan.is_empty() {
            output = super::sync(pair.path(), &["--apply", "plan"]);
        }
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
    }
}

#[test]
fn trees_deeper_than_the_open_levels_become_equal() {
    let memory = Filesystem::memory();
    let (mut source, mut target) = (Tree::new(), Tree::new());
    let mut path = String::new();
    for level in 0..300 {
        path += if level == 0 { "d" } else { "/d" };
        source.insert(format!("{path}/z").as_bytes(), old("new"));
        target.insert(format!("{path}/z").as_bytes(), old("older"));
        // Planned on the way back up.
        source.insert(format!("{path}/zz/file").as_bytes(), old("file"));
        target.insert(format!("{path}/a/gone").as_bytes(), old("gone"));
    }
    for words in [&["--delete=now"][..], &["--delete"], &["--delete", "--plan", "plan"]] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        let mut output = pair.sync(words);
        if words.len() > 1 {
            output = super::sync(pair.path(), &["--apply", "plan"]);
        }
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
    }
}

/// Returns trees of files that differ, of which each is either old or new.
fn trees() -> (Tree, Tree) {
    let (mut source, mut target) = (Tree::new(), Tree::new());
    for number in 0..200 {
        let name = format!("{}/{number}", number % 7);
        source.insert(name.as_bytes(), old(&"new".repeat(1 + number * 40)));
        if number % 3 > 0 {
            target.insert(name.as_bytes(), old(&"old".repeat(2 + number * 30)));
        }
        target.insert(format!("{name} gone").as_bytes(), old("gone"));
    }
    (source, target)
}

#[test]
fn a_run_that_is_killed_loses_nothing_and_the_next_one_ends_equal() {
    let memory = Filesystem::memory();
    let (source, target) = trees();
    for seed in seeds(6) {
        let mut numbers = SplitMix64::new(seed);
        let pair = Pair::new(memory.path(), seed, &source, &target);
        for _ in 0..3 {
            let mut command = Command::new(FERRY);
            command.args(["sync", "--delete", "source", "target"]).current_dir(pair.path());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(numbers.below(30_000)));
            // It may have ended.
            child.kill().ok();
            child.wait().unwrap();
            for number in (0..200_usize).filter(|number| number % 3 > 0) {
                let path = pair.path().join(format!("target/{}/{number}", number % 7));
                let bytes = std::fs::read(path).unwrap();
                let is_old = bytes == "old".repeat(2 + number * 30).as_bytes();
                let is_new = bytes == "new".repeat(1 + number * 40).as_bytes();
                assert!(is_old || is_new, "FERRY_SEED={seed}: {number} is neither old nor new");
            }
        }
        let output = pair.sync(&["--delete"]);
        assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
        pair.assert_equal("source", "target", &output);
    }
}

/// Runs with 64 descriptors, of a tree with many folders, one with many levels, and files whose bytes are compared.
#[test]
fn few_descriptors_are_enough() {
    let memory = Filesystem::memory();
    let mut source = Tree::new();
    let deep: Vec<String> = (0..90).map(|level| format!("{level}")).collect();
    source.insert(format!("{}/file", deep.join("/")).as_bytes(), Node::file("deep").mtime(5, 5));
    for number in 0..256_u32 {
        // Eight levels with two folders each.
        let path: Vec<String> = (0..8).map(|bit| format!("{bit}{}", number >> bit & 1)).collect();
        source.insert(format!("{}/file", path.join("/")).as_bytes(), Node::file("some").mtime(5, 5));
    }
    for number in 0..200 {
        source.insert(format!("flat/{number}").as_bytes(), Node::file("text").mtime(5, 5));
    }
    let target = source.clone();
    for backend in ["--backend=uring", "--backend=posix"] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        for words in ["--delete", "--delete --checksum"] {
            std::fs::write(pair.path().join("target/flat/7"), "else").unwrap();
            std::fs::remove_dir_all(pair.path().join("target").join(deep[..40].join("/"))).unwrap();
            let line = format!("ulimit -n 64; exec {FERRY} sync {backend} {words} source target");
            let output = Command::new("sh").args(["-c", &line]).current_dir(pair.path()).output().unwrap();
            assert!(output.status.success(), "{backend} {words}: {}", said(&output));
            pair.assert_equal("source", "target", &output);
        }
    }
}

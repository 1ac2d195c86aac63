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

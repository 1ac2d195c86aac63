//! Plans: what is shown, recorded and performed is the same, and what has changed since is refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use ferry_tree::random::Knobs;
use ferry_tree::{Node, Tree, capture};

use super::{Pair, compared, knobs, said, seeds, sync};
use crate::random::filesystem::{self, Filesystem};

/// Returns the actions that a run has printed.
fn lines(output: &Output) -> BTreeSet<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Splits `create      'folder/name'/` into verb and path.
fn parts(line: &str) -> (&str, &str) {
    let (verb, rest) = line.split_once(' ').unwrap();
    (verb, rest.trim_start().trim_end_matches('/').trim_matches('\''))
}

/// Panics unless a run has performed what was planned. It makes a new folder with everything in it by one action.
fn assert_performed(planned: &BTreeSet<String>, performed: &BTreeSet<String>, seed: u64) {
    let more: Vec<_> = performed.difference(planned).collect();
    assert!(more.is_empty(), "FERRY_SEED={seed}: performed, but not planned: {more:?}");
    let made: BTreeSet<&str> = performed
        .iter()
        .map(|line| parts(line))
        .filter(|(verb, _)| ["create", "exchange"].contains(verb))
        .map(|(_, path)| path)
        .collect();
    for line in planned.difference(performed) {
        let (verb, path) = parts(line);
        let is_made = Path::new(path).ancestors().skip(1).any(|above| made.contains(above.to_str().unwrap()));
        assert!(verb == "create" && is_made, "FERRY_SEED={seed}: planned, but not performed: {line}");
    }
}

/// Shows, records, applies and performs the actions of random pairs: they are the same.
fn check(filesystem: &Filesystem, count: u64) {
    for seed in seeds(count) {
        // The lines are read again, so names are plain.
        let knobs = Knobs { odd_names: false, ..knobs(filesystem.path(), seed) };
        let backend = ["--backend", ["uring", "posix"][usize::try_from(seed % 2).unwrap()]];
        let (pair, _) = Pair::random(filesystem.path(), seed, &knobs);
        let before = capture::capture(&pair.path().join("target")).unwrap();
        let shown = pair.sync(&["--delete=now", "--dry-run"]);
        let planned = pair.sync(&[&["--delete", "--plan", "plan", "-v"], &backend[..]].concat());
        assert!(shown.status.success() && planned.status.success(), "{}", said(&planned));
        assert_eq!(shown.stdout, planned.stdout, "FERRY_SEED={seed}");
        let after = capture::capture(&pair.path().join("target")).unwrap();
        let differences = ferry_tree::compare::snapshots(&before, &after, &compared());
        assert!(differences.is_empty(), "FERRY_SEED={seed}: planning changed {differences:?}");
        let apply = ["--apply", "plan", "--delete=now", "-v"];
        let applied = sync(pair.path(), &[&apply, &backend[..]].concat());
        assert_eq!(applied.status.code(), Some(0), "FERRY_SEED={seed}: {}", said(&applied));
        pair.assert_equal("source", "target", &applied);
        assert_eq!(lines(&applied), lines(&planned), "FERRY_SEED={seed}");
        // Once more, everything has changed since it was planned.
        let again = sync(pair.path(), &["--apply", "plan", "--delete=now"]);
        pair.assert_equal("source", "target", &again);
        let (other, _) = Pair::random(filesystem.path(), seed, &knobs);
        let run = other.sync(&[&["--delete", "-v"], &backend[..]].concat());
        assert_eq!(run.status.code(), Some(0), "FERRY_SEED={seed}: {}", said(&run));
        other.assert_equal("source", "target", &run);
        assert_performed(&lines(&planned), &lines(&run), seed);
    }
}

#[test]
fn a_run_performs_what_its_plan_says() {
    check(&Filesystem::memory(), 4);
}

#[test]
fn a_run_performs_what_its_plan_says_on_ext4() {
    filesystem::within("sync::plans::a_run_performs_what_its_plan_says_on_ext4", "ext4", |ext4| {
        check(ext4, 2);
    });
}

#[test]
fn a_run_performs_what_its_plan_says_on_xfs() {
    filesystem::within("sync::plans::a_run_performs_what_its_plan_says_on_xfs", "xfs", |xfs| check(xfs, 2));
}

#[test]
fn a_run_performs_what_its_plan_says_on_btrfs() {
    filesystem::within("sync::plans::a_run_performs_what_its_plan_says_on_btrfs", "btrfs", |btrfs| {
        check(btrfs, 2);
    });
}

#[test]
fn a_plan_for_other_folders_is_refused() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &Tree::new().with("a", Node::file("a")), &Tree::new());
    assert!(pair.sync(&["--plan", "plan"]).status.success());
    let target = pair.path().join("target");
    std::fs::rename(&target, pair.path().join("was")).unwrap();
    // The target is not made, and another one is not taken for it.
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir(&target).unwrap();
        }
        let applied = sync(pair.path(), &["--apply", "plan"]);
        assert_eq!(applied.status.code(), Some(1), "{}", said(&applied));
        assert_eq!(target.exists(), is_there);
        assert!(!target.join("a").exists(), "{}", said(&applied));
    }
    std::fs::remove_dir(&target).unwrap();
    std::fs::rename(pair.path().join("was"), &target).unwrap();
    std::fs::rename(pair.path().join("source"), pair.path().join("was")).unwrap();
    std::fs::create_dir(pair.path().join("source")).unwrap();
    let applied = sync(pair.path(), &["--apply", "plan"]);
    assert!(said(&applied).contains("is not the directory that the plan was made for"), "{}", said(&applied));
}

#[test]
fn an_action_whose_source_or_target_has_changed_is_refused() {
    let memory = Filesystem::memory();
    let old = |text: &str| Node::file(text).mtime(1_000, 1);
    let source = Tree::new().with("a", old("new a")).with("b", old("new b")).with("c", old("c"));
    let target = Tree::new().with("a", old("a")).with("b", old("b")).with("d", old("d")).with("e", old("e"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    assert!(pair.sync(&["--delete", "--plan", "plan"]).status.success());
    let write = |name: &str| std::fs::write(pair.path().join(name), "changed").unwrap();
    write("source/a");
    write("target/c");
    write("target/d");
    write("source/e");
    let applied = sync(pair.path(), &["--apply", "plan"]);
    assert_eq!(applied.status.code(), Some(1));
    let read = |name: &str| std::fs::read_to_string(pair.path().join("target").join(name)).unwrap();
    assert_eq!((read("a"), read("b")), ("a".to_owned(), "new b".to_owned()), "{}", said(&applied));
    assert_eq!((read("c"), read("d"), read("e")), ("changed".into(), "changed".into(), "e".into()));
}

#[test]
fn a_plan_that_is_damaged_changes_nothing() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("a", Node::file("a")).with("b", Node::file("b"));
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    assert!(pair.sync(&["--plan", "plan"]).status.success());
    let plan = std::fs::read_to_string(pair.path().join("plan")).unwrap();
    let cut = plan.trim_end().rfind('\n').unwrap();
    std::fs::write(pair.path().join("plan"), &plan[..=cut]).unwrap();
    let applied = sync(pair.path(), &["--apply", "plan"]);
    assert_eq!(applied.status.code(), Some(1));
    assert!(said(&applied).contains("incomplete"), "{}", said(&applied));
    assert_eq!(std::fs::read_dir(pair.path().join("target")).unwrap().count(), 0);
}

#[test]
fn a_target_with_several_names_that_was_written_to_since_is_refused() {
    let memory = Filesystem::memory();
    let old = |text: &str| Node::file(text).mtime(1_000, 1);
    let source = Tree::new().with("a", old("new a")).with("b", old("new b"));
    let target =
        Tree::new().with("a", old("old")).with("b", Node::hard_link("a")).with("c", Node::hard_link("a"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    assert!(pair.sync(&["--delete", "--plan", "plan"]).status.success());
    std::fs::write(pair.path().join("target/c"), "changed").unwrap();
    let applied = sync(pair.path(), &["--apply", "plan"]);
    assert_eq!(applied.status.code(), Some(1), "{}", said(&applied));
    for name in ["a", "b", "c"] {
        let found = std::fs::read(pair.path().join("target").join(name)).unwrap();
        assert_eq!(found, b"changed", "{name}: {}", said(&applied));
    }
}

#[test]
fn a_plan_has_its_name_only_when_it_is_complete() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("a", Node::file("a"));
    let target = Tree::new().with("b", Node::file("b"));
    let pair = Pair::new(memory.path(), 0, &source, &target);
    let names = || std::fs::read_dir(pair.path()).unwrap().count();
    std::fs::write(pair.path().join("plan"), "older").unwrap();
    for words in [&["--delete", "--max-delete=0", "--plan=plan"][..], &["--plan=missing/plan"]] {
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(std::fs::read(pair.path().join("plan")).unwrap(), b"older", "{}", said(&output));
        assert_eq!(names(), 3, "{}", said(&output));
    }
    for tree in ["source", "target"] {
        let output = pair.sync(&["--plan", &format!("{tree}/plan")]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("it would be planned, too"), "{}", said(&output));
    }
    let output = pair.sync(&["--plan", "/dev/stdout"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("{\"end\":{\"actions\":"), "{}", said(&output));
    assert!(pair.sync(&["--plan", "plan"]).status.success());
    assert!(std::fs::read_to_string(pair.path().join("plan")).unwrap().contains("{\"end\":{\"actions\":"));
    assert_eq!(names(), 3);
}

/// `/dev/stdout` is a link like this one. It may lead to a regular file, which no other one may take the place of.
#[test]
fn a_plan_goes_to_an_open_descriptor_and_through_links() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &Tree::new().with("a", Node::file("a")), &Tree::new());
    let at = |name: &str| pair.path().join(name);
    std::os::unix::fs::symlink("/proc/self/fd/1", at("stdout")).unwrap();
    std::os::unix::fs::symlink("written", at("link")).unwrap();
    std::fs::write(at("written"), "before\n").unwrap();
    for name in ["stdout", "/proc/self/fd/1"] {
        let file = std::fs::OpenOptions::new().append(true).open(at("written")).unwrap();
        let mut command = std::process::Command::new(crate::scene::FERRY);
        command.args(["sync", "--plan", name, "source", "target"]).current_dir(pair.path()).stdout(file);
        assert!(command.status().unwrap().success());
        let written = std::fs::read_to_string(at("written")).unwrap();
        assert!(
            written.starts_with("before\n{\"plan\"") && written.contains("{\"end\""),
            "{name}: {written}"
        );
        assert!(at("stdout").is_symlink(), "{name}");
    }
    assert!(pair.sync(&["--plan", "link"]).status.success());
    assert!(at("link").is_symlink());
    assert!(std::fs::read_to_string(at("written")).unwrap().starts_with("{\"plan\""));
    // A link into a tree.
    std::fs::write(at("source/plan"), "").unwrap();
    std::os::unix::fs::symlink("source/plan", at("into")).unwrap();
    let output = pair.sync(&["--plan", "into"]);
    assert!(said(&output).contains("it would be planned, too"), "{}", said(&output));
}

#[test]
fn empty_operands_are_refused() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &Tree::new().with("a", Node::file("a")), &Tree::new());
    for words in [
        ["source", ""],
        ["", "target"],
        ["--undo=target", ""],
        ["--plan=", "source"],
        ["--apply=", "--delete"],
    ] {
        let output = sync(pair.path(), &words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
    }
    assert_eq!(std::fs::read_dir(pair.path()).unwrap().count(), 2);
}

#[test]
fn plans_keep_to_their_schema() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../docs/plan.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let memory = Filesystem::memory();
    for seed in seeds(4) {
        let (pair, _) = Pair::random(memory.path(), seed, &knobs(memory.path(), seed));
        assert!(pair.sync(&["--delete", "--plan", "plan"]).status.success());
        for line in std::fs::read_to_string(pair.path().join("plan")).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&line), "FERRY_SEED={seed}: {line}");
        }
    }
}

//! The example `copy_trees` copies several trees at once, reports failures, and leaves nothing incomplete.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ferry_tree::capture::capture;
use ferry_tree::compare::{Options, snapshots};
use ferry_tree::workload::{self, Workload};
use ferry_tree::{Node, Tree, make};

/// Attempts to stop a copy before its end.
const ATTEMPTS: usize = 5;

fn example(arguments: &[&Path], options: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let program: PathBuf = folder.join("examples/copy_trees");
    let output = Command::new(&program).args(options).args(arguments).output();
    output.unwrap_or_else(|error| {
        panic!("{} is built by `cargo test -p ferry-copy`: {error}", program.display())
    })
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_example_copies_several_trees_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let tree = Tree::new()
        .with("notes", Node::directory().mode(0o750))
        .with("notes/today", Node::file("text").mode(0o600).mtime(1_700_000_000, 5))
        .with("notes/now", Node::symlink("today"))
        .with("same", Node::hard_link("notes/today"));
    make::make(&tree, &path("a")).unwrap();
    workload::make(&Workload::plain(3, 2, 4, 5000, 1), &path("b"), 2).unwrap();
    let output = example(&[&path("a"), &path("a2"), &path("b"), &path("b2")], &[]);
    assert!(output.status.success(), "{output:?}");
    for (source, target) in [("a", "a2"), ("b", "b2")] {
        let [source, target] = [source, target].map(|name| capture(&path(name)).unwrap());
        assert_eq!(snapshots(&source, &target, &Options::all()), []);
    }
    let said = text(&output.stdout);
    assert!(said.contains("a2: ended; 1 files, 4 bytes, 0 failed"), "{said}");
    assert!(said.contains("b2: ended; 52 files, 260000 bytes, 0 failed"), "{said}");
}

#[test]
fn the_example_reports_what_it_cannot_copy() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    std::fs::write(path("file"), "text").unwrap();
    let output = example(&[&path("missing"), &path("target"), &path("file"), &path("copy")], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("missing: stat: No such file or directory"), "{output:?}");
    assert_eq!(std::fs::read(path("copy")).unwrap(), b"text", "the other copy goes on");
    assert_eq!(example(&[&path("file")], &[]).status.code(), Some(2), "a target is missing");
}

#[test]
fn the_example_leaves_no_incomplete_file_when_its_time_is_up() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    workload::make(&Workload::plain(0, 0, 2000, 16_384, 1), &path("source"), 2).unwrap();
    for attempt in 0..ATTEMPTS {
        let target = path(&attempt.to_string());
        let output = example(&[&path("source"), &target], &["--seconds", "0"]);
        for entry in std::fs::read_dir(&target).into_iter().flatten() {
            let name = entry.unwrap().file_name();
            let [copy, original] = [&target, &path("source")].map(|folder| std::fs::read(folder.join(&name)));
            // A name of ferry's own would have no original.
            assert!(copy.unwrap() == original.unwrap(), "{name:?} is incomplete: {output:?}");
        }
        if text(&output.stdout).contains("stopped; ") {
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            return;
        }
    }
    panic!("no copy was stopped before its end");
}

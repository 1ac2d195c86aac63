//! Targets on which names that differ in case alone lead to one entry, as on FAT.

use std::fs;
use std::path::Path;

use ferry_tree::{Node, Tree, make};

use super::{said, sync};
use crate::faulty::served::{Files, Served};
use crate::random::filesystem;
use crate::scene::skip;

/// Calls `body` with a folder that has a source and a target with names that are folded.
fn with_target(test: &str, source: &Tree, fill: impl FnOnce(&mut Files), body: impl FnOnce(&Path)) {
    filesystem::within(test, "tmpfs", |memory| {
        let place = memory.path();
        make::make(source, &place.join("source")).unwrap();
        let fill = |files: &mut Files| {
            fill(files);
            files.folds_names = true;
        };
        match Served::at(&place.join("target"), fill, Box::new(|_, _, _| Ok(()))) {
            Ok(_served) => body(place),
            Err(why) => drop(skip::<()>(&why)),
        }
    });
}

fn file(text: &str) -> Node {
    Node::file(text).mtime(1_000, 0)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| error.to_string())
}

#[test]
fn an_entry_that_the_source_has_under_a_folded_name_is_not_deleted() {
    let test = "sync::folded::an_entry_that_the_source_has_under_a_folded_name_is_not_deleted";
    let mut source = Tree::new()
        .with("Foo", file("new"))
        .with("Sub/p", file("p"))
        .with("zoo/p", file("p"))
        .with("other/x", file("x"));
    // Each of these comes with the first rows, and its like in the source with later ones.
    for number in 0..2_000 {
        source.insert(format!("m{number}").as_bytes(), file("m"));
    }
    let fill = |files: &mut Files| {
        files.file("foo", b"old");
        files.folder("sub");
        files.file("sub/q", b"old");
        files.folder("ZOO");
        files.file("ZOO/q", b"old");
        files.folder("other");
        files.file("other/gone", b"gone");
    };
    with_target(test, &source, fill, |place| {
        let target = place.join("target");
        for round in 0..2 {
            let output = sync(place, &["--delete=now", "-v", "source", "target"]);
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            let told = said(&output);
            for name in ["Foo", "Sub", "zoo"] {
                let line = format!("skipping 'target/{name}': its directory has it under another name");
                assert_eq!(told.matches(&line).count(), 1, "{name}: {told}");
            }
            assert!(!told.contains("delete "), "round {round}: {told}");
            for name in ["foo", "sub/q", "ZOO/q"] {
                assert_eq!(read(&target.join(name)), "old", "{name}: {told}");
            }
            assert!(target.join("m1999").exists(), "{told}");
        }
    });
}

#[test]
fn of_source_folders_that_are_folded_to_one_the_others_are_reported() {
    let test = "sync::folded::of_source_folders_that_are_folded_to_one_the_others_are_reported";
    let source = Tree::new()
        .with("D/x", file("x"))
        .with("d/y", file("y"))
        .with("in/D/x", file("x"))
        .with("in/d/y", file("y"));
    for words in [&[][..], &["--exclude=none"]] {
        with_target(
            test,
            &source,
            |_| {},
            |place| {
                let output = sync(place, &[words, &["source", "target"]].concat());
                assert_eq!(output.status.code(), Some(1), "{}", said(&output));
                for folder in ["D", "in/D"] {
                    let count = fs::read_dir(place.join("target").join(folder)).unwrap().count();
                    assert_eq!(count, 1, "{}", said(&output));
                }
            },
        );
    }
}

#[test]
fn of_source_names_that_are_folded_to_one_the_first_is_copied() {
    let test = "sync::folded::of_source_names_that_are_folded_to_one_the_first_is_copied";
    let source = Tree::new()
        .with("A", file("upper"))
        .with("a", file("lower"))
        .with("in/B", file("upper"))
        .with("in/b", file("lower"));
    with_target(
        test,
        &source,
        |_| {},
        |place| {
            let target = place.join("target");
            for _ in 0..2 {
                let output = sync(place, &["--delete=now", "source", "target"]);
                assert_eq!(output.status.code(), Some(1), "{}", said(&output));
                let found: Vec<_> = ["A", "in/B"].iter().map(|name| read(&target.join(name))).collect();
                assert_eq!(found[0], "upper", "{}", said(&output));
                assert!(["upper", "lower"].contains(&found[1].as_str()), "{}", said(&output));
            }
        },
    );
}

//! Entries that take no part: by pattern, size, time and filesystem.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ferry_tree::{Node, Tree};

use super::{Pair, said};
use crate::random::filesystem::{self, Filesystem};

const PATHS: [&str; 9] = [
    "keep.txt",
    "skip.o",
    "build/out.o",
    "build/deep/file",
    "src/main.c",
    "src/main.o",
    "src/kept.o",
    "logs/today.log",
    "logs/.gitignore",
];

fn source() -> Tree {
    let text = |path: &&str| if path.ends_with(".gitignore") { "*.log\n" } else { "new" };
    PATHS.iter().fold(Tree::new(), |tree, path| tree.with(*path, Node::file(text(path)).mtime(2_000, 2)))
}

/// Returns all files beneath a folder that are no part of the trash.
fn files(folder: &Path) -> Vec<String> {
    fn add(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && relative != ".ferry-trash" {
                add(root, &path, found);
            } else if path.is_file() {
                found.push(relative);
            }
        }
    }
    let mut found = Vec::new();
    add(folder, folder, &mut found);
    found.sort();
    found
}

fn all_but(left_out: &[&str]) -> Vec<String> {
    let mut rest: Vec<_> =
        PATHS.iter().filter(|path| !left_out.contains(path)).map(|path| (*path).to_owned()).collect();
    rest.sort();
    rest
}

#[test]
fn what_is_left_out_is_not_copied() {
    let memory = Filesystem::memory();
    for (words, left_out) in [
        (&["--exclude=*.o"][..], &["skip.o", "build/out.o", "src/main.o", "src/kept.o"][..]),
        (&["--exclude=*.o", "--include=kept.o"], &["skip.o", "build/out.o", "src/main.o"]),
        (&["--exclude=build/"], &["build/out.o", "build/deep/file"]),
        (&["--exclude=/src/*.o"], &["src/main.o", "src/kept.o"]),
        (&["--include=*.o", "--exclude", "build", "--include=out.o"], &["build/out.o", "build/deep/file"]),
        (&["--gitignore"], &["logs/today.log"]),
        (&["--gitignore", "--include=today.log"], &[]),
        (&["--max-size=3"], &["logs/.gitignore"]),
        (&["--min-size=4"], &PATHS[..8]),
        (&["--newer-than=1970-01-02"], &PATHS[..]),
        (&["--newer-than=1970-01-01"], &[]),
        (&["--exclude-from=list"], &["keep.txt", "src/main.c"]),
    ] {
        let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
        fs::write(pair.path().join("list"), "# a comment\n\n*.txt\n/src/*.c\n").unwrap();
        let output = pair.sync(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        assert_eq!(files(&pair.path().join("target")), all_but(left_out), "{words:?}: {}", said(&output));
        // A run into a target that exists does the same as one that makes it.
        fs::create_dir(pair.path().join("other")).unwrap();
        let again = pair.sync(words);
        assert!(again.status.success(), "{}", said(&again));
        assert_eq!(files(&pair.path().join("target")), all_but(left_out), "{words:?}");
    }
}

#[test]
fn what_is_left_out_stays_in_the_target_unless_it_is_to_be_deleted() {
    let memory = Filesystem::memory();
    let target = Tree::new()
        .with("skip.o", Node::file("old").mtime(1_000, 1))
        .with("src/gone.o", Node::file("gone"))
        .with("src/gone.c", Node::file("gone"))
        .with("only/here.o", Node::file("gone"))
        .with("build/out.o", Node::file("old").mtime(1_000, 1));
    for (how, excluded_stays) in [(&[][..], true), (&["--delete-excluded"], false)] {
        let pair = Pair::new(memory.path(), 0, &source(), &target);
        let words = [&["--delete", "--exclude=*.o", "--exclude=build/"], how].concat();
        let output = pair.sync(&words);
        assert!(output.status.success(), "{}", said(&output));
        let here = pair.path().join("target");
        assert!(!here.join("src/gone.c").exists(), "{}", said(&output));
        for path in ["skip.o", "src/gone.o", "only/here.o", "build/out.o"] {
            assert_eq!(here.join(path).exists(), excluded_stays, "{path}: {}", said(&output));
        }
        if excluded_stays {
            assert_eq!(fs::read(here.join("skip.o")).unwrap(), b"old");
        }
        let again = pair.sync(&[&words[..], &["-v"]].concat());
        assert!(again.status.success() && again.stdout.is_empty(), "{}", said(&again));
    }
}

#[test]
fn a_plan_with_excluded_entries_is_performed_as_it_is() {
    let memory = Filesystem::memory();
    let target = Tree::new().with("build/out.o", Node::file("old")).with("skip.o", Node::file("old"));
    let words = ["--delete", "--exclude=*.o", "--exclude=build/", "--delete-excluded"];
    let [direct, applied] = [0, 1].map(|seed| Pair::new(memory.path(), seed, &source(), &target));
    assert!(direct.sync(&words).status.success());
    let output = applied.sync(&[&words[..], &["--plan=plan"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let output = super::sync(applied.path(), &["--apply=plan"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(files(&direct.path().join("target")), files(&applied.path().join("target")));
}

#[test]
fn each_entry_left_out_is_explained() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
    let words = ["-n", "--explain", "--exclude=build", "--gitignore", "--min-size=3", "--max-size=5"];
    let output = pair.sync(&words);
    let text = said(&output);
    for line in [
        "left out    'build'/ (--exclude 'build')",
        "left out    'logs/today.log' (logs/.gitignore:1 '*.log')",
        "left out    'logs/.gitignore' (--max-size)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(text.matches("left out").count(), 3, "{text}");
}

#[test]
fn patterns_that_are_unknown_delete_nothing() {
    let memory = Filesystem::memory();
    let bad = Tree::new().with("folder/.gitignore", Node::file(b"ok\n\xff\n").mtime(5, 5));
    let target = Tree::new().with("folder/old", Node::file("old")).with("gone", Node::file("gone"));
    for words in [&["--delete", "--gitignore"][..], &["--delete", "--gitignore", "--delete-excluded"]] {
        let pair = Pair::new(memory.path(), 0, &bad, &target);
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("folder/.gitignore"), "{}", said(&output));
        assert!(pair.path().join("target/folder/old").exists(), "{}", said(&output));
        assert!(!pair.path().join("target/gone").exists(), "{}", said(&output));
    }
}

#[test]
fn a_gitignore_file_without_end_is_not_read() {
    let memory = Filesystem::memory();
    let target = Tree::new().with("gone", Node::file("gone"));
    let source = Tree::new().with("kept", Node::file("kept"));
    for (size, is_read) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        fs::write(pair.path().join("source/.gitignore"), "#".repeat(size)).unwrap();
        let output = pair.sync(&["--delete", "--gitignore"]);
        assert_eq!(output.status.success(), is_read, "{}", said(&output));
        assert_eq!(pair.path().join("target/gone").exists(), !is_read, "{}", said(&output));
    }
}

#[test]
fn options_that_can_not_be_understood_are_refused() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
    fs::write(pair.path().join("bad"), b"ok\n\xff\n").unwrap();
    for (words, message) in [
        (&["--exclude-from=bad"][..], "bad:2: not UTF-8"),
        (&["--exclude-from=source"], "cannot read 'source': Is a directory"),
        (&["--min-size=some"], "invalid size 'some' for '--min-size'"),
        (&["--max-size=-1"], "invalid size '-1' for '--max-size'"),
        (&["--exclude=a["], "--exclude: the pattern \"a[\": "),
        (&["--exclude="], "the pattern of --exclude is empty"),
        (&["--include=!a"], "use --exclude"),
        (&["--exclude-from=missing"], "cannot read 'missing': No such file or directory"),
        (&["--newer-than=yesterday"], "invalid time 'yesterday' for --newer-than"),
        (&["--min-size=5", "--max-size=4"], "--min-size is larger than --max-size"),
        (&["--delete-excluded"], "--delete-excluded needs --delete"),
    ] {
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(message), "{words:?}: {}", said(&output));
    }
    let output = super::sync(pair.path(), &["--apply=plan", "--exclude=x"]);
    assert!(said(&output).contains("--apply and --exclude exclude each other"), "{}", said(&output));
    assert!(files(&pair.path().join("target")).is_empty());
}

#[test]
fn a_recent_file_is_newer_than_an_hour_ago() {
    let memory = Filesystem::memory();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let at = |before: Duration| i64::try_from((now - before).as_secs()).unwrap();
    let source = Tree::new()
        .with("old", Node::file("old").mtime(at(Duration::from_hours(2)), 0))
        .with("new", Node::file("new").mtime(at(Duration::from_mins(5)), 0));
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    assert!(pair.sync(&["--newer-than=1h"]).status.success());
    assert_eq!(files(&pair.path().join("target")), ["new"]);
}

#[test]
fn other_filesystems_are_not_entered() {
    filesystem::within("sync::selection::other_filesystems_are_not_entered", "ext4", |ext4| {
        let source = Tree::new()
            .with("mounted", Node::directory())
            .with("bound", Node::directory())
            .with("plain/file", Node::file("new"));
        let target = Tree::new().with("mounted/old", Node::file("old"));
        let pair = Pair::new(ext4.path(), 0, &source, &target);
        let mount = |words: &[&str]| {
            assert!(Command::new("mount").args(words).current_dir(pair.path()).status().unwrap().success());
        };
        mount(&["-t", "tmpfs", "none", "source/mounted"]);
        mount(&["--bind", "source/plain", "source/bound"]);
        fs::write(pair.path().join("source/mounted/file"), "other").unwrap();
        let output = pair.sync(&["-x", "--delete"]);
        for folder in ["source/mounted", "source/bound"] {
            assert!(Command::new("umount").arg(pair.path().join(folder)).status().unwrap().success());
        }
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(files(&pair.path().join("target")), ["mounted/old", "plain/file"], "{}", said(&output));
        assert!(pair.path().join("target/bound").is_dir());
    });
}

/// A pattern for folders does not exclude a file of SOURCE.
#[test]
fn a_folder_that_is_deleted_as_excluded_gives_way_to_a_file() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("name", Node::file("a file"));
    let target = Tree::new().with("name", Node::directory()).with("name/inside", Node::file("x"));
    for delete in ["--delete", "--delete=now"] {
        let pair = Pair::new(memory.path(), 0, &source, &target);
        let words = ["--exclude=name/", "--delete-excluded", delete, "-v"];
        let output = pair.sync(&words);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        assert!(pair.sync(&words).stdout.is_empty());
    }
    let pair = Pair::new(memory.path(), 0, &source, &target);
    assert!(pair.sync(&["--exclude=name/", "--delete"]).status.success());
    assert!(pair.path().join("target/name/inside").exists(), "the pattern protects the folder");
}

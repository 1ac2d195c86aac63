//! Options that change what is compared, and how files are replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ferry_tree::{Node, Tree};

use super::{Pair, knobs, said, seeds, sync};
use crate::faulty::served::{Call, Files, Mischief, Served};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::skip;

fn pair(source: &[(&str, &str, i64)], target: &[(&str, &str, i64)]) -> Pair {
    let tree = |entries: &[(&str, &str, i64)]| {
        entries
            .iter()
            .fold(Tree::new(), |tree, (name, text, time)| tree.with(name, Node::file(text).mtime(*time, 5)))
    };
    Pair::new(&std::env::temp_dir(), 0, &tree(source), &tree(target))
}

fn text(pair: &Pair, name: &str) -> String {
    fs::read_to_string(pair.path().join("target").join(name)).unwrap()
}

#[test]
fn content_that_differs_behind_equal_times_is_found_by_checksum_alone() {
    let pair = pair(&[("a", "new", 10), ("b", "same", 10)], &[("a", "old", 10), ("b", "same", 20)]);
    assert!(pair.sync(&[]).status.success());
    assert_eq!(text(&pair, "a"), "old");
    let output = pair.sync(&["--checksum", "-v"]);
    assert!(said(&output).contains("replace     'a' (content)"), "{}", said(&output));
    assert_eq!(text(&pair, "a"), "new");
}

#[test]
fn checksum_copies_nothing_that_is_equal() {
    let pair = pair(&[("a", "same", 10)], &[("a", "same", 20)]);
    let before = fs::metadata(pair.path().join("target/a")).unwrap().ino();
    let output = pair.sync(&["--checksum", "-v"]);
    assert!(said(&output).contains("attributes  'a'"), "{}", said(&output));
    let after = fs::metadata(pair.path().join("target/a")).unwrap();
    assert_eq!((after.ino(), after.mtime()), (before, 10));
}

#[test]
fn sizes_alone_are_compared_if_that_is_asked_for() {
    let pair = pair(&[("a", "new", 10), ("b", "longer", 10)], &[("a", "old", 20), ("b", "short", 20)]);
    assert!(pair.sync(&["--size-only"]).status.success());
    assert_eq!((text(&pair, "a"), text(&pair, "b")), ("old".into(), "longer".into()));
}

#[test]
fn newer_targets_stay_if_that_is_asked_for() {
    let pair = pair(&[("a", "source", 10), ("b", "source", 30)], &[("a", "target", 20), ("b", "target", 20)]);
    assert!(pair.sync(&["--newer"]).status.success());
    assert_eq!((text(&pair, "a"), text(&pair, "b")), ("target".into(), "source".into()));
}

#[test]
fn unfinished_targets_are_never_trusted() {
    let oldest = i64::from(i32::MIN);
    let source = Tree::new()
        .with("a", Node::file("new").mtime(10, 5))
        .with("b", Node::file("new").mtime(oldest, 0))
        .with("c", Node::file("new").mtime(oldest, 0));
    let target = Tree::new()
        .with("a", Node::file("old").mtime(oldest, 0))
        .with("b", Node::file("old").mtime(oldest, 0))
        .with("c", Node::file("new").mtime(oldest, 0));
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source, &target);
    // Even where size and time alone would leave them as they are.
    let output = pair.sync(&["--newer", "-v"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((text(&pair, "a"), text(&pair, "b")), ("new".into(), "new".into()));
    assert!(said(&output).contains("replace     'a' (unfinished)"), "{}", said(&output));
    assert!(!said(&output).contains("'c'"), "{}", said(&output));
}

#[test]
fn files_are_overwritten_in_place_if_that_is_asked_for() {
    let pair = pair(&[("a", "the new text", 10)], &[("a", "old", 20)]);
    let before = fs::metadata(pair.path().join("target/a")).unwrap().ino();
    assert!(pair.sync(&["--inplace"]).status.success());
    assert_eq!(fs::metadata(pair.path().join("target/a")).unwrap().ino(), before);
    assert_eq!(text(&pair, "a"), "the new text");
    let memory = Filesystem::memory();
    for seed in seeds(8) {
        let (pair, _) = Pair::random(memory.path(), seed, &knobs(memory.path(), seed));
        let output = pair.sync(&["--inplace", "--delete=now"]);
        assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
        pair.assert_equal("source", "target", &output);
    }
}

#[test]
fn a_missing_target_is_made() {
    let memory = Filesystem::memory();
    for seed in seeds(4) {
        let (pair, _) = Pair::random(memory.path(), seed, &knobs(memory.path(), seed));
        let shown = sync(pair.path(), &["-n", "source", "other"]);
        assert!(shown.status.success() && !pair.path().join("other").exists(), "{}", said(&shown));
        let output = sync(pair.path(), &["source/", "other"]);
        assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
        pair.assert_equal("source", "other", &output);
    }
    let pair = Pair::new(memory.path(), 0, &Tree::new().with("a", Node::file("a")), &Tree::new());
    assert!(sync(pair.path(), &["--plan", "plan", "source", "other"]).status.success());
    let output = sync(pair.path(), &["--apply", "plan"]);
    assert!(output.status.success(), "{}", said(&output));
    pair.assert_equal("source", "other", &output);
    assert_eq!(sync(pair.path(), &["nothing", "other"]).status.code(), Some(1));
    assert_eq!(sync(pair.path(), &["source/a", "other"]).status.code(), Some(1));
}

#[test]
fn a_run_that_is_refused_makes_no_target() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &Tree::new(), &Tree::new());
    assert!(sync(pair.path(), &["--plan", "plan", "source", "other"]).status.success());
    fs::rename(pair.path().join("source"), pair.path().join("was")).unwrap();
    fs::create_dir(pair.path().join("source")).unwrap();
    for words in [&["--delete", "source", "other"][..], &["--apply", "plan"]] {
        let output = sync(pair.path(), words);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(!pair.path().join("other").exists(), "{words:?}: {}", said(&output));
    }
}

/// ext4 with small inodes stores whole seconds from 1901 to 2038.
#[test]
fn times_that_the_target_can_not_store_are_equal_to_those_that_it_stores_instead() {
    let test = "sync::choices::times_that_the_target_can_not_store_are_equal_to_those_that_it_stores_instead";
    filesystem::within(test, "ext4 -I 128", |ext4| {
        let memory = Filesystem::memory();
        let source = Tree::new()
            .with("late", Node::file("late").mtime(5_000_000_000, 7))
            .with("early", Node::file("early").mtime(-3_000_000_000, 7))
            .with("usual", Node::file("usual").mtime(1_000_000_000, 7));
        let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
        let target = ext4.path().join("target");
        let words = ["-v", "source", target.to_str().unwrap()];
        let output = sync(pair.path(), &words);
        assert!(output.status.success(), "{}", said(&output));
        let late = fs::metadata(target.join("late")).unwrap().mtime();
        assert_eq!(late, i64::from(i32::MAX), "{}", said(&output));
        let again = sync(pair.path(), &words);
        assert!(again.status.success() && again.stdout.is_empty(), "{}", said(&again));
    });
}

#[test]
fn writing_keeps_to_the_rate_and_progress_is_counted() {
    let memory = Filesystem::memory();
    let source = Tree::new().with("large", Node::seeded(300_000, 1)).with("small", Node::file("small"));
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    let begun = std::time::Instant::now();
    let output = pair.sync(&["--bwlimit=150K", "--progress"]);
    assert!(output.status.success(), "{}", said(&output));
    // A tenth of a second may be made up for.
    assert!(begun.elapsed().as_millis() > 1_700, "{:?}", begun.elapsed());
    assert!(said(&output).contains("/300 kB  "), "{}", said(&output));
    pair.assert_equal("source", "target", &output);
}

/// Such a filesystem has no unnamed files, by which others are asked.
#[test]
fn a_run_whose_time_is_up_stops_and_the_same_command_continues() {
    let memory = Filesystem::memory();
    let source = (0..40).fold(Tree::new(), |tree, number| {
        tree.with(format!("{number:02}"), Node::seeded(100 << 10, number).mtime(10, 5))
    });
    for backend in ["--backend=uring", "--backend=posix"] {
        let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
        let output = pair.sync(&["--bwlimit=1M", "--time-limit=1s", backend]);
        assert_eq!(output.status.code(), Some(124), "{backend}: {}", said(&output));
        let line = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.starts_with("stopped by --time-limit after "), "{backend}: {line}");
        assert!(line.contains(" MB: created ") || line.contains(" kB: created "), "{backend}: {line}");
        assert!(line.ends_with("; the same command continues"), "{backend}: {line}");
        let copied = fs::read_dir(pair.path().join("target")).unwrap().count();
        assert!((1..40).contains(&copied), "{backend}: {copied} files");
        let output = pair.sync(&["--time-limit=1h", backend]);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
    }
    let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
    for time in ["soon", "0s", ""] {
        let output = pair.sync(&["--time-limit", time]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let message = format!("invalid duration '{time}' for '--time-limit'");
        assert!(said(&output).contains(&message), "{}", said(&output));
    }
}

#[test]
fn times_on_a_filesystem_in_user_space_are_compared_as_it_may_store_them() {
    let test = "sync::choices::times_on_a_filesystem_in_user_space_are_compared_as_it_may_store_them";
    filesystem::within(test, "tmpfs", |memory| {
        let source = Tree::new().with("a", Node::file("a").mtime(1_001, 123_456_789));
        let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
        let at = pair.path().join("served");
        let served = Served::at(&at, |files| files.stores_seconds = true, Box::new(|_, _, _| Ok(())));
        let Ok(_served) = served.map_err(|why| skip::<()>(&why)) else { return };
        let output = sync(pair.path(), &["-v", "source", "served"]);
        assert!(output.status.success(), "{}", said(&output));
        let again = sync(pair.path(), &["-v", "source", "served"]);
        assert!(again.status.success() && !said(&again).contains("'a'"), "{}", said(&again));
        fs::write(pair.path().join("source/a"), "b").unwrap();
        assert!(sync(pair.path(), &["source", "served"]).status.success());
        assert_eq!(fs::read(at.join("a")).unwrap(), b"b");
    });
}

#[test]
fn a_target_that_can_not_be_read_is_named_and_stays() {
    let test = "sync::choices::a_target_that_can_not_be_read_is_named_and_stays";
    filesystem::within(test, "tmpfs", |memory| {
        let old = |text: &str| Node::file(text).mtime(1_001, 0);
        let source = Tree::new().with("a", old("same")).with("b", old("new")).with("in/c", old("c"));
        let pair = Pair::new(memory.path(), 0, &source, &Tree::new());
        let fill = |files: &mut Files| {
            files.file("a", b"same");
            files.file("b", b"old");
            files.folder("in");
            files.file("in/gone", b"gone");
        };
        let fails: Mischief = Box::new(|_, call, name| match (call, name) {
            (Call::Read, "a") | (Call::List, "in") => Err(rustix::io::Errno::IO),
            _ => Ok(()),
        });
        let at = pair.path().join("served");
        let Ok(_served) = Served::at(&at, fill, fails).map_err(|why| skip::<()>(&why)) else { return };
        let output = sync(pair.path(), &["--checksum", "--delete=now", "source", "served"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        for line in ["error reading 'served/a': Input", "'served/in': Input"] {
            assert!(said(&output).contains(line), "{line}: {}", said(&output));
        }
        assert_eq!(fs::read(at.join("b")).unwrap(), b"new", "{}", said(&output));
        assert_eq!(fs::read(at.join("in/gone")).unwrap(), b"gone", "{}", said(&output));
    });
}

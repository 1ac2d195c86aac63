//! Output that can't be written, options that can't be understood, and kernels without io_uring.

use std::fs::File;
use std::process::Command;

use ferry_tree::compare::snapshots;
use ferry_tree::{Node, Tree, capture};

use super::{Pair, compared, said};
use crate::no_uring::FILTER;
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, skip};

fn pair(memory: &Filesystem) -> Pair {
    let file = |text: &str| Node::file(text).mtime(1_000, 1);
    let source = Tree::new().with("a", file("a")).with("folder/b", file("b")).with("left out", file("out"));
    Pair::new(memory.path(), 0, &source, &Tree::new().with("a", file("older")))
}

#[test]
fn lines_that_can_not_be_printed_are_reported_once() {
    let memory = Filesystem::memory();
    for (words, is_performed) in [
        (&["--dry-run"][..], false),
        (&["--verbose"], true),
        (&["--explain", "--exclude=missing", "-v"], true),
        (&["--explain", "--exclude=folder", "-n"], false),
        (&["--plan=plan", "-v"], false),
    ] {
        let pair = pair(&memory);
        let before = capture::capture(&pair.path().join("target")).unwrap();
        let mut command = Command::new(FERRY);
        command.arg("sync").args(words).args(["source", "target"]).current_dir(pair.path());
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        let count = said(&output).matches("ferry sync: write error: No space left on device").count();
        assert_eq!(count, 1, "{words:?}: {}", said(&output));
        if is_performed {
            pair.assert_equal("source", "target", &output);
        } else {
            let after = capture::capture(&pair.path().join("target")).unwrap();
            let differences = snapshots(&before, &after, &compared());
            assert!(differences.is_empty(), "{words:?}: {differences:?}");
        }
    }
}

#[test]
fn progress_that_can_not_be_shown_ends_no_run() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    let mut command = Command::new(FERRY);
    command.args(["sync", "--progress=always", "source", "target"]).current_dir(pair.path());
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    pair.assert_equal("source", "target", &output);
}

#[test]
fn values_that_can_not_be_understood_are_refused() {
    let memory = Filesystem::memory();
    let pair = pair(&memory);
    for (words, message) in [
        (&["--workers=0"][..], "invalid number '0' for '--workers'"),
        (&["--workers=many"], "invalid number 'many' for '--workers'"),
        (&["--workers=9999"], "workers 9999 is not allowed: it must be 1 to 1024"),
        (&["--bwlimit=0"], "invalid rate '0' for '--bwlimit'"),
        (&["--bwlimit=fast"], "invalid rate 'fast' for '--bwlimit'"),
        (&["--backend=fast"], "invalid argument ‘fast’ for ‘--backend’"),
        (&["--progress=fast"], "invalid argument ‘fast’ for ‘--progress’"),
        (&["--hash=fast", "--manifest=m"], "invalid argument ‘fast’ for ‘--hash’"),
    ] {
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(message), "{words:?}: {}", said(&output));
        assert_eq!(std::fs::read(pair.path().join("target/a")).unwrap(), b"older", "{words:?}");
    }
}

#[test]
fn without_io_uring_plain_calls_are_used_unless_it_is_asked_for() {
    let memory = Filesystem::memory();
    for (backend, code) in [("auto", 0), ("posix", 0), ("uring", 1)] {
        let pair = pair(&memory);
        let mut command = Command::new("perl");
        command.args(["-e", FILTER, FERRY, "sync", "--backend", backend, "source", "target"]);
        let Ok(output) = command.current_dir(pair.path()).output() else {
            skip::<()>("there is no perl to set a seccomp filter");
            return;
        };
        if output.status.code() == Some(99) {
            skip::<()>("no seccomp filter can be set");
            return;
        }
        assert_eq!(output.status.code(), Some(code), "{backend}: {}", said(&output));
        if code == 0 {
            pair.assert_equal("source", "target", &output);
        } else {
            assert!(said(&output).contains("--backend posix"), "{}", said(&output));
            assert_eq!(std::fs::read(pair.path().join("target/a")).unwrap(), b"older");
        }
    }
}

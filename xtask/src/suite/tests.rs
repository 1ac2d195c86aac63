use std::process::Command;
use std::time::Duration;

use super::binaries::{Binary, Run};
use super::left_out::{Scope, Selection};
use super::{Tally, report, run_side_by_side, verdict};
use crate::failure::Failure;
use crate::scratch::Scratch;

fn tally(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines() {
        tally.take(line.trim());
    }
    tally
}

const PASSED: &str =
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s";
const FAILED: &str =
    "test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 5.13s";

#[test]
fn last_closing_line_is_the_binarys_own() {
    let found = tally(&format!("{PASSED}\n{FAILED}\n"));
    assert_eq!((found.passed, found.failed, found.ignored), (1, 2, 1));
}

#[test]
fn skips_are_found_with_their_test() {
    let found = tally("---- ring::chains stdout ----\nhello\nSKIP no io_uring here\n");
    assert_eq!(found.skips, ["ring::chains: SKIP no io_uring here"]);
}

#[test]
fn skip_that_was_not_captured_is_found() {
    assert_eq!(tally("test a::b ... SKIP: not root\n").skips, ["a::b: SKIP: not root"]);
}

#[test]
fn name_with_skip_in_it_is_not_a_skip() {
    let no_skips: [&str; 0] = [];
    assert_eq!(tally("test SKIP_is_found ... ok\ntest skip ... ok\nnot a SKIP\n").skips, no_skips);
}

#[test]
fn failed_tests_are_named_with_their_reason() {
    let found = tally(
        "test a::b ... FAILED\ntest c ... ok\ntest d ... FAILED\n---- c stdout ----\n\n\
         thread 'c' (1) panicked at src/c.rs:1:2:\nas it should\n---- a::b stdout ----\nhello\n\n\
         thread 'a::b' (2) panicked at src/a.rs:1:2:\nassertion failed\nstack backtrace:\n",
    );
    let named = |test: &str, reason: &str| (test.to_owned(), reason.to_owned());
    assert_eq!(found.failures, [named("a::b", "assertion failed"), named("d", "")]);
}

#[test]
fn skip_fails_the_suite_only_in_ci() {
    let skipped = tally(&format!("SKIP\n{PASSED}\n"));
    assert!(matches!(verdict(&skipped, true), Err(Failure::Skips { count: 1 })));
    assert!(verdict(&skipped, false).is_ok());
    assert!(verdict(&tally(PASSED), true).is_ok());
}

#[test]
fn ignored_test_fails_the_suite_only_in_ci() {
    let ignored = tally("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
    assert!(matches!(verdict(&ignored, true), Err(Failure::Ignored { count: 1 })));
    assert!(verdict(&ignored, false).is_ok());
}

#[test]
fn suite_without_a_test_fails() {
    assert!(matches!(verdict(&tally(""), false), Err(Failure::NoTests)));
}

/// A binary of two tests with this output.
fn run(output: &str, is_success: bool) -> Run {
    Run {
        name: "ferry it".to_owned(),
        output: output.to_owned(),
        is_success,
        duration: Duration::from_secs(1),
    }
}

#[test]
fn failed_test_fails_the_suite() {
    let found = report(&run(&format!("test a ... FAILED\n{FAILED}\n"), false));
    assert_eq!(found.failures, [("ferry it a".to_owned(), String::new())]);
    assert!(matches!(verdict(&found, false), Err(Failure::Tests { count: 2 })));
}

#[test]
fn binary_that_breaks_off_fails_the_suite() {
    let mut found = report(&run("running 2 tests\ntest a ... ok\n", false));
    found.add(tally(PASSED));
    assert!(matches!(verdict(&found, false), Err(Failure::Tests { count: 1 })));
}

#[test]
fn skips_are_named_with_their_binary() {
    let found = report(&run(&format!("---- a stdout ----\nSKIP: not root\n{PASSED}\n"), true));
    assert_eq!(found.skips, ["ferry it a: SKIP: not root"]);
}

#[test]
fn binaries_run_at_the_same_time() {
    let scratch = Scratch::open().unwrap();
    // Each waits for the other.
    let selection = |name: &str, other: &str| {
        let program = scratch.path().join(name);
        let script = format!(
            "#!/bin/sh\n: >{name}.runs\nfor try in $(seq 200)\ndo [ -e {other}.runs ] && exit; sleep 0.05\ndone\nexit 1\n"
        );
        // Written by another process: a file that a fork of this one holds open can't be run (ETXTBSY).
        let write = r#"printf %s "$1" >"$0" && chmod +x "$0""#;
        let written = Command::new("sh").args(["-c", write]).arg(&program).arg(script).status();
        assert!(written.unwrap().success());
        let binary = Binary { name: name.to_owned(), program, folder: scratch.path().to_owned() };
        Selection::new(binary, vec!["a test".to_owned()], Scope::Usual)
    };
    let (first, second) = (selection("first", "second"), selection("second", "first"));
    let tally = run_side_by_side(vec![&first, &second], 2).unwrap();
    assert!(!tally.has_broken_off, "one has ended before the other began");
}

//! `--retries`: failures that may pass, and those that do not.

use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{said, sync};
use crate::faulty::served::{Call, Files, Mischief, Served};
use crate::random::filesystem;
use crate::scene::skip;

/// Runs with a source in which `bad` can't be opened for some time, and checks the exit code and what was printed.
fn run(test: &str, (errno, time): (Errno, Duration), words: &[&str], check: impl Fn(Option<i32>, &str)) {
    filesystem::within(test, "tmpfs", |memory| {
        let place = tempfile::tempdir_in(memory.path()).unwrap();
        let mut first = None;
        let fails: Mischief = Box::new(move |_, call, name| {
            let strikes = call == Call::Open
                && name == "bad"
                && first.get_or_insert_with(Instant::now).elapsed() < time;
            if strikes { Err(errno) } else { Ok(()) }
        });
        let fill = |files: &mut Files| {
            files.file("bad", b"one");
            files.file("good", b"two");
        };
        let served = Served::at(&place.path().join("served"), fill, fails);
        let Ok(_served) = served.map_err(|why| skip::<()>(&why)) else { return };
        let output = sync(place.path(), &[words, &["served", "target"]].concat());
        assert_eq!(fs::read(place.path().join("target/good")).unwrap(), b"two");
        let is_whole = fs::read(place.path().join("target/bad")).is_ok_and(|bytes| bytes == b"one");
        assert_eq!(is_whole, output.status.success(), "{}", said(&output));
        check(output.status.code(), &said(&output));
    });
}

#[test]
fn what_passes_is_tried_again() {
    let test = "sync::retries::what_passes_is_tried_again";
    run(test, (Errno::TIMEDOUT, Duration::from_millis(900)), &["--retries=3"], |code, said| {
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("ferry sync: 1 path failed; trying again in 1 s (1 of 3)\n"), "{said}");
        assert!(said.ends_with("created 3, replaced 0, set attributes of 0, deleted 0: 6 B\n"), "{said}");
    });
}

#[test]
fn an_error_of_the_device_is_tried_once_more_only() {
    let test = "sync::retries::an_error_of_the_device_is_tried_once_more_only";
    run(test, (Errno::IO, Duration::MAX), &["--retries=3"], |code, said| {
        assert_eq!(code, Some(1), "{said}");
        assert_eq!(said.matches("trying again").count(), 1, "{said}");
        assert_eq!(
            said.matches("cannot open 'served/bad' for reading: Input/output error").count(),
            2,
            "{said}"
        );
    });
}

#[test]
fn what_does_not_pass_is_not_tried_again() {
    let test = "sync::retries::what_does_not_pass_is_not_tried_again";
    run(test, (Errno::PERM, Duration::MAX), &["--retries=3"], |code, said| {
        assert_eq!((code, said.matches("trying again").count()), (Some(1), 0), "{said}");
    });
}

#[test]
fn without_time_there_is_no_further_attempt() {
    let test = "sync::retries::without_time_there_is_no_further_attempt";
    run(test, (Errno::STALE, Duration::MAX), &["--retries=1000", "--time-limit=2s"], |code, said| {
        assert_eq!((code, said.matches("trying again").count()), (Some(1), 1), "{said}");
    });
}

#[test]
fn what_only_plans_is_not_repeated() {
    let place = tempfile::tempdir().unwrap();
    for (word, message) in [
        ("--dry-run", "--dry-run and --retries exclude each other"),
        ("--plan=plan", "--plan and --retries exclude each other"),
        ("--apply=plan", "--apply and --retries exclude each other"),
        ("--retries=some", "invalid number 'some' for '--retries'"),
    ] {
        let output = sync(place.path(), &["--retries=1", word, "source", "target"]);
        assert_eq!(output.status.code(), Some(2), "{word}: {}", said(&output));
        assert!(said(&output).contains(message), "{word}: {}", said(&output));
    }
}

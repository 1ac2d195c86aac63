//! Copies with io_uring disabled system-wide: same results, and the reason on request.
//!
//! This is a separate program because Cargo runs test programs in turn, so no other test is affected.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use ferry_tree::compare::{self, Options, Progress};
use ferry_tree::random::{Knobs, tree};
use ferry_tree::{make, remove};

const SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";

/// Disables io_uring until dropped. A shell re-enables it when this process ends, in any way.
struct SwitchedOff(Child);

impl SwitchedOff {
    fn now() -> Option<Self> {
        const SCRIPT: &str = "trap '' INT TERM HUP; before=$(cat $0) && echo 2 > $0 || exit 1; \
                              echo off; cat > /dev/null; echo $before > $0";
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, SWITCH]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut switched = Self(command.stderr(Stdio::null()).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(switched.0.stdout.take()?).read_line(&mut said).unwrap();
        (said == "off\n").then_some(switched)
    }
}

impl Drop for SwitchedOff {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn copies_are_the_same_and_the_reason_is_told_to_those_who_ask() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    make::make(&tree(7, &Knobs::possible_in(place.path())), &source).unwrap();
    let before = fs::read_to_string(SWITCH).ok();
    let copy = |options: &[&str], target: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferry"));
        command.args(["cp", "-a"]).args(options).args(["source", target]).current_dir(place.path());
        command.output().unwrap()
    };
    let table = [&[][..], &["--workers=3"], &["--route=ring"], &["--fsync"], &["--stats"], &["--explain"]];
    // This affects the whole machine, so keep it short.
    let (copies, refused): (Vec<Output>, Output) = {
        let Some(_switched) = SwitchedOff::now() else {
            eprintln!("SKIP: {SWITCH} can't be changed here");
            return;
        };
        let copies = table.iter().enumerate().map(|(index, options)| copy(options, &index.to_string()));
        (copies.collect(), copy(&["--backend=uring"], "refused"))
    };
    assert_eq!(fs::read_to_string(SWITCH).ok(), before, "it was not switched back");
    for (index, (options, output)) in table.iter().zip(&copies).enumerate() {
        let told =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{options:?}: {told}");
        let is_asked = ["--stats", "--explain"].iter().any(|asking| options.contains(asking));
        if is_asked {
            let tells = told.contains("posix") && told.contains("kernel.io_uring_disabled");
            assert!(tells, "{options:?}: {told}");
        } else {
            assert_eq!(told, "", "{options:?}");
        }
        let target = place.path().join(index.to_string());
        let report = |difference| panic!("{options:?}: {difference}");
        compare::trees(&source, &target, &Options::all(), &Progress::new(), &report).unwrap();
        remove::remove(&target).unwrap();
    }
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("kernel.io_uring_disabled") && said.contains("--backend posix"), "{said}");
    remove::remove(&source).unwrap();
}

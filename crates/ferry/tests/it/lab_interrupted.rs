//! Interrupted experiments keep completed runs, leave nothing else, and can be resumed.

use std::path::Path;
use std::process::{Command, Stdio};

use ferry_lab::record::{Cell, Record, read::read};
use rustix::process::{Pid, Signal, kill_process};

use crate::measured::{lab, left_in, wait_for_a_run};
use crate::scene::{FERRY, text};

fn mounts(folder: &Path) -> Vec<String> {
    let all = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let folder = folder.canonicalize().unwrap();
    all.lines().filter(|line| line.contains(folder.to_str().unwrap())).map(str::to_owned).collect()
}

/// Interrupts after the first run and resumes; returns both records.
#[track_caller]
fn interrupt(name: &str, more: &[&str]) -> (Record, Record) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = place.path().join("record");
    let mut command = Command::new(FERRY);
    command
        .current_dir(place.path())
        .args(["lab", name, "--quick", "--runs=200", "--json=record"])
        .args(more);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_a_run(&path, &mut child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{name}: {said}");
    assert!(said.contains(&format!("`ferry lab {name} --resume 'record'`")), "{said}");
    assert_eq!(
        (left_in(place.path()), mounts(place.path())),
        (vec!["record".to_owned()], Vec::new()),
        "{name}"
    );
    let before = read(&path).unwrap();
    let output = lab(place.path(), &[name, "--quick", "--resume=record", "--runs=1"]);
    assert_eq!(output.status.code(), Some(3), "{name}: {}", text(&output.stderr));
    assert_eq!(
        (left_in(place.path()), mounts(place.path())),
        (vec!["record".to_owned()], Vec::new()),
        "{name}"
    );
    (before, read(&path).unwrap())
}

#[test]
fn every_experiment_keeps_its_runs_when_it_is_interrupted() {
    let few = |name| -> &[&str] {
        match name {
            // Resuming keeps the limit programs of the first pilot, which runs before anything else.
            "copy" => &["--trees=small", "--states=warm", "--limits=auto", "--dd-size=0"],
            "limits" => &["--trees=small", "--states=warm"],
            "strategies" => &["--files=one", "--states=warm"],
            "ring" => &["--loads=alone", "--time=20"],
            "handovers" => &["--filesystems=ext4,here"],
            // A copy larger than its cgroup is killed where the device is slow to write.
            "when" => &["--size=32M"],
            "run" => &["--", "sleep", "0.05", "--", "true"],
            _ => &[],
        }
    };
    let files = ["copy", "limits", "strategies", "write", "disk", "cache"];
    let others = ["ring", "syscalls", "handovers", "when", "evict", "run"];
    for name in files.into_iter().chain(others) {
        let (before, after) = interrupt(name, few(name));
        assert!(!before.complete && after.complete, "{name}: {:?}", after.warnings);
        assert_eq!(before.seed, after.seed, "{name}");
        for cell in &before.cells {
            let now = after.cell(&cell.name).unwrap();
            assert!(cell.runs.iter().all(|run| now.runs.contains(run)), "{name}: {} anew", cell.name);
        }
        let names = |record: &Record| record.cells.iter().map(|cell| cell.name.clone()).collect::<Vec<_>>();
        assert!(names(&after).starts_with(&names(&before)), "{name}");
        assert_eq!(before.settled, after.settled, "{name}");
        let is_there = |cell: &Cell| !cell.runs.is_empty() || cell.missing.is_some();
        assert!(after.cells.iter().all(is_there), "{name}: {:?}", after.cells);
    }
}

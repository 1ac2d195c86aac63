//! Jobs with little space and few descriptors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::job::{PROGRAM, copy, end, expect_equal, make_many, mpirun, run, turn};

/// A small filesystem in memory, unmounted on drop.
struct Small(PathBuf);

impl Small {
    /// Mounts one; `None` without the right to.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(path);
        mount.status().is_ok_and(|status| status.success()).then(|| Self(path.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().ok();
    }
}

impl Small {
    fn grow(&self) {
        let mut grow = Command::new("mount");
        grow.args(["-o", "remount,size=200m"]).arg(&self.0);
        assert!(grow.status().unwrap().success());
    }
}

/// Copies to a target of `room` with a journal of `journal_room`, one of which is too small; again after both have grown.
///
/// Returns what the first job said.
fn expect_stop_and_end(room: &str, journal_room: &str) -> Option<String> {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    let mounted = (Small::mount(&path("small"), room), Small::mount(&path("other"), journal_room));
    let (Some(small), Some(other)) = mounted else {
        println!("SKIP: no filesystem may be mounted");
        return None;
    };
    let (target, journal) = (path("small/target"), path("other/journal"));
    let options = ["--range", "64K", "--lease", "16", "--journal", journal.to_str().unwrap()];
    let output = run(4, &options, &path("source"), &target);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let end = "ferry-mpi: stopped early: space or quota is used up; the same command goes on";
    assert_eq!(said.lines().rfind(|line| line.starts_with("ferry-mpi: ")), Some(end), "{said}");
    small.grow();
    other.grow();
    copy(4, &options, &path("source"), &target);
    expect_equal(&path("source"), &target, "after a full filesystem");
    Some(said)
}

#[test]
fn a_full_filesystem_stops_all_ranks_and_the_job_goes_on_when_there_is_room() {
    let Some(said) = expect_stop_and_end("9m", "200m") else { return };
    assert!(!said.contains("the journal"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_full_filesystem_of_the_journal_stops_all_ranks_and_the_job_goes_on_when_there_is_room() {
    let Some(said) = expect_stop_and_end("200m", "64k") else { return };
    let failures: Vec<_> = said.lines().filter(|line| line.contains("No space left on device")).collect();
    assert_eq!(failures.len(), 1, "{said}");
    assert!(failures[0].starts_with("ferry-mpi: cannot write the journal '"), "{said}");
}

#[test]
fn sixty_four_descriptors_are_enough_for_each_of_sixteen_ranks() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    for task in [&["cp", "-aT"][..], &["sync"]] {
        let target = path(task[0]);
        let mut limited = mpirun(16);
        limited.args(["sh", "-c", "ulimit -n 64 && exec \"$0\" \"$@\"", PROGRAM]).args(task);
        limited.args(["--range", "64K", "--lease", "64"]).arg(path("source")).arg(&target);
        let output = end(limited.spawn().unwrap());
        assert!(output.status.success(), "{task:?}: {}", String::from_utf8_lossy(&output.stderr));
        expect_equal(&path("source"), &target, "64 descriptors");
    }
}

#[test]
fn a_full_filesystem_stops_a_sync_that_goes_on_when_there_is_room() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    let Some(small) = Small::mount(&path("small"), "9m") else {
        println!("SKIP: no filesystem may be mounted");
        return;
    };
    let target = path("small/target");
    let sync = || {
        let mut sync = mpirun(4);
        sync.args([PROGRAM, "sync", "--range", "64K", "--lease", "16", "--journal"]).arg(path("journal"));
        end(sync.arg(path("source")).arg(&target).spawn().unwrap())
    };
    let output = sync();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("space or quota is used up"), "{said}");
    small.grow();
    let output = sync();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_equal(&path("source"), &target, "after a full filesystem");
}

#[test]
fn processes_that_mpi_has_not_joined_change_nothing() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::create_dir(&source).unwrap();
    let mut alone = Command::new(PROGRAM);
    alone.env("SLURM_STEP_NUM_TASKS", "4").args(["cp", "-aT"]).arg(&source).arg(&target);
    let output = alone.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("ferry-mpi: 4 processes were started, but MPI has not joined them"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!target.exists());
}

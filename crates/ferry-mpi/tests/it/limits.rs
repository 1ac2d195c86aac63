//! Jobs with little space and few descriptors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::job::{copy, end, expect_equal, job, make_many, run, turn};

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
fn sixty_four_descriptors_are_enough_for_each_rank() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    let copied = job(4, &["--range", "64K", "--lease", "64"], &path("source"), &path("target"));
    let arguments: Vec<_> = copied.get_args().collect();
    let program =
        arguments.iter().position(|argument| argument.to_string_lossy().ends_with("ferry-mpi")).unwrap();
    let mut limited = Command::new("mpirun");
    limited.args(&arguments[..program]);
    limited.args(["sh", "-c", "ulimit -n 64 && exec \"$0\" \"$@\""]).args(&arguments[program..]);
    let output = end(limited.stderr(std::process::Stdio::piped()).spawn().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_equal(&path("source"), &path("target"), "64 descriptors");
}

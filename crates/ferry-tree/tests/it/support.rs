//! Directories for tests, and re-execution of a test under other limits or users.

use ferry_tree::compare::{self, Difference, Options, Progress, Summary};
use ferry_tree::random::Knobs;
use ferry_tree::remove::remove;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A test's own directory, removed at its end at any depth.
pub(crate) struct Place(PathBuf);

impl Place {
    /// In the directory for temporary files.
    pub(crate) fn new() -> Self {
        Self::beneath(&std::env::temp_dir())
    }

    /// In memory if possible: ext4 creates files slowly for five seconds after many were removed.
    pub(crate) fn fast() -> Self {
        let shared_memory = Path::new("/dev/shm");
        if shared_memory.is_dir() { Self::beneath(shared_memory) } else { Self::new() }
    }

    /// In this directory.
    pub(crate) fn beneath(directory: &Path) -> Self {
        let made = tempfile::Builder::new().prefix("ferry-tree-").tempdir_in(directory).unwrap();
        Self(made.keep())
    }

    /// One on disk, and one in memory where there is such a filesystem.
    pub(crate) fn everywhere() -> Vec<Self> {
        let shared_memory = Path::new("/dev/shm");
        let mut places = vec![Self::new()];
        if shared_memory.is_dir() {
            places.push(Self::beneath(shared_memory));
        } else {
            println!("SKIP: no tmpfs at /dev/shm");
        }
        places
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            remove(&self.0).unwrap();
        }
    }
}

/// Features of trees in this directory. Prints a SKIP line for the missing ones.
pub(crate) fn knobs(place: &Place) -> Knobs {
    let knobs = Knobs::possible_in(place.path());
    for lacking in knobs.without() {
        println!("SKIP: no {lacking} in {}", place.path().display());
    }
    knobs
}

/// All differences on disk as sorted lines, and the totals.
pub(crate) fn verify(source: &Path, target: &Path, options: &Options) -> (Vec<String>, Summary) {
    let (differences, summary) = differences(source, target, options);
    let mut lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    lines.sort_unstable();
    (lines, summary)
}

/// All differences on disk in any order, and the totals.
pub(crate) fn differences(source: &Path, target: &Path, options: &Options) -> (Vec<Difference>, Summary) {
    let found = Mutex::new(Vec::new());
    let observer = |difference| found.lock().unwrap().push(difference);
    let summary = compare::trees(source, target, options, &Progress::new(), &observer).unwrap();
    (found.into_inner().unwrap(), summary)
}

/// Returns true for root; otherwise prints why the test is skipped.
pub(crate) fn is_root(reason: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIP: {reason} needs root");
    }
    root
}

const AGAIN: &str = "FERRY_TREE_TEST_AGAIN";

/// Returns true in the process that [`again`] started.
pub(crate) fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

/// Runs one test of this program in another process with at most `limit` open files.
pub(crate) fn again_with_few_descriptors(test: &str, limit: usize) {
    let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    succeed(&mut command, test);
}

/// Runs one test of this program as the user nobody, in a directory of its own. Requires root.
pub(crate) fn again_as_nobody(test: &str) {
    const NOBODY: u32 = 65_534;
    if !is_root("becoming another user") {
        return;
    }
    let place = Place::new();
    std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // The directory of the program may be inaccessible to nobody.
    let program = place.join("program");
    // Another process writes it: a file that a fork of this one still has open for writing can't be run (ETXTBSY).
    let test_program = std::env::current_exe().unwrap();
    assert!(Command::new("cp").arg(test_program).arg(&program).status().unwrap().success());
    let mut command = Command::new(&program);
    command.uid(NOBODY).gid(NOBODY).env("TMPDIR", place.path()).current_dir(place.path());
    succeed(&mut command, test);
}

fn succeed(command: &mut Command, test: &str) {
    let output = command.arg("--exact").arg(test).arg("--nocapture").env(AGAIN, "1").output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

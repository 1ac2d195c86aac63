//! Bounds on open files and directories, observed in running copies.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, Stage, skip, text};

/// Maximum numbers of descriptors below the source, each at one moment.
#[derive(Debug, Default)]
struct Open {
    files: usize,
    /// Directories of these files.
    busy: usize,
    folders: usize,
}

/// Copies `source` to `target` and polls the open descriptors.
fn watch(place: &Path, limit: &str, options: &[&str]) -> Open {
    let source = place.join("source");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limit} exec \"$0\" cp -r \"$@\" source target"), FERRY]).args(options);
    let mut child = command.current_dir(place).stderr(Stdio::piped()).spawn().unwrap();
    let descriptors = PathBuf::from(format!("/proc/{}/fd", child.id()));
    let mut most = Open::default();
    while child.try_wait().unwrap().is_none() {
        let Ok(listing) = fs::read_dir(&descriptors) else { continue };
        let paths = listing.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let paths: HashSet<PathBuf> = paths.filter(|path| path.starts_with(&source)).collect();
        // Only files have an extension in these trees.
        let files: Vec<_> = paths.iter().filter(|path| path.extension().is_some()).collect();
        let busy: HashSet<_> = files.iter().filter_map(|path| path.parent()).collect();
        most.files = most.files.max(files.len());
        most.busy = most.busy.max(busy.len());
        most.folders = most.folders.max(paths.len() - files.len());
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    ferry_tree::remove::remove(&place.join("target")).unwrap();
    most
}

fn fill(place: &Path, folders: usize, files: usize, size: usize) {
    for folder in 0..folders {
        let folder = place.join(format!("source/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..files {
            fs::write(folder.join(format!("{file}.file")), vec![1; size]).unwrap();
        }
    }
}

const FEW: &str = "ulimit -n 64;";

/// Options that keep many files in flight.
const MANY_IN_FLIGHT: [[&str; 3]; 3] = [
    ["--backend=posix", "--reflink=never", "--fsync"],
    ["--backend=posix", "--reflink=never", "--route=pool"],
    ["--backend=auto", "--reflink=never", "--route=ring"],
];

#[test]
fn files_at_once_are_bounded_by_blocks_and_by_descriptors() {
    // Threads of the pool may still be closing completed files.
    const CLOSING: usize = 32;
    let memory = Filesystem::memory();
    fill(memory.path(), 4, 100, 1 << 20);
    let options = ["--backend=posix", "--route=pool", "--reflink=never", "--workers=4"];
    let most = watch(memory.path(), "", &options).files;
    assert!((100..=128 + CLOSING).contains(&most), "{most} files were open");
    let verified = ["--backend=posix", "--verify", "--route=pool"];
    for options in MANY_IN_FLIGHT.iter().chain([&verified]) {
        let most = watch(memory.path(), FEW, options).files;
        assert!((2..=32).contains(&most), "{options:?}: {most} files were open with 64 descriptors");
    }
}

#[test]
fn folders_at_once_are_bounded_by_worker() {
    let memory = Filesystem::memory();
    fill(memory.path(), 60, 8, 512 << 10);
    let options = ["--backend=posix", "--route=pool", "--reflink=never", "--workers=1"];
    let most = watch(memory.path(), "", &options).busy;
    assert!((10..=16).contains(&most), "{most} folders were being copied");
    for options in MANY_IN_FLIGHT {
        let most = watch(memory.path(), FEW, &[&options[..], &["--workers=1"]].concat()).busy;
        assert!((1..=8).contains(&most), "{options:?}: {most} folders were being copied with 64 descriptors");
    }
}

#[test]
fn folders_kept_open_are_bounded() {
    let memory = Filesystem::memory();
    let mut path = memory.path().join("source");
    for _ in 0..600 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    // A large file keeps the copy here, where most directories are open.
    fs::write(path.join("large.file"), vec![1; 192 << 20]).unwrap();
    let options = ["--reflink=never", "--workers=1"];
    let most = watch(memory.path(), "", &options).folders;
    // Includes the directories being worked on.
    assert!((200..=256 + 16).contains(&most), "{most} folders were open");
    let most = watch(memory.path(), FEW, &options).folders;
    assert!((2..=8 + 8).contains(&most), "{most} folders were open with 64 descriptors");
}

#[test]
fn hidden_names_are_tried_a_hundred_times() {
    let stage = Stage::new();
    for (taken, code, content) in [(99, 0, "f's text"), (100, 1, "g's text, longer")] {
        stage.set();
        // `exec` keeps the process id.
        let script = format!(
            "for i in $(seq 0 $(({taken} - 1))); do : > $(printf .ferry-%x-%x-%x $(stat -c %i .) $$ $i); done
             exec \"$0\" cp --link --force f g"
        );
        let mut command = Command::new("sh");
        let output = command.args(["-c", &script, FERRY]).current_dir(stage.root()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{taken}: {}", text(&output.stderr));
        assert_eq!(fs::read_to_string(stage.root().join("g")).unwrap(), content);
        let names = fs::read_dir(stage.root()).unwrap().flatten();
        let left = names.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".ferry-"));
        assert_eq!(left.count(), taken);
    }
}

#[test]
fn the_quota_of_processors_is_read_for_several_files_only() {
    let memory = Filesystem::memory();
    fs::create_dir(memory.path().join("d")).unwrap();
    fs::write(memory.path().join("a"), "bytes").unwrap();
    fs::write(memory.path().join("b"), "bytes").unwrap();
    for (operands, is_read) in
        [("a c", false), ("-t d a", false), ("a b d", true), ("-r d e", true), ("--workers=1 -r d f", false)]
    {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "log", "-e", "trace=openat", FERRY, "cp", "--profile=none"]);
        let Ok(output) = command.args(operands.split(' ')).current_dir(memory.path()).output() else {
            skip::<()>("strace is not here");
            return;
        };
        assert!(output.status.success(), "{operands}: {}", text(&output.stderr));
        let log = fs::read_to_string(memory.path().join("log")).unwrap();
        assert_eq!(log.contains("/proc/self/cgroup"), is_read, "{operands}: {log}");
    }
}

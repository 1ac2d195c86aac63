//! Options that rsync has as well, on random pairs of trees: both programs leave equal targets.
//!
//! Each pair takes one way to compare and one selection, on either backend, as root or as a normal user. Patterns are names
//! without wildcards, which gitignore(5) and rsync(1) read alike. `cargo xtask acceptance-sync pairs` runs thousands of pairs.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_tree::Tree;
use ferry_tree::fill::SplitMix64;
use ferry_tree::random::Knobs;

use super::user::{NOBODY, give_to_user};
use super::{Pair, beside_rsync, knobs, said, seeds};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::{FERRY, is_root, place_program, skip};

/// Ways to compare and to replace: options of ferry and of rsync.
const WAYS: [[&[&str]; 2]; 5] = [
    [&[], &[]],
    [&["--checksum"], &["--checksum"]],
    [&["--size-only"], &["--size-only"]],
    [&["--newer"], &["--update"]],
    [&["--inplace"], &["--inplace"]],
];
const SELECTIONS: u64 = 7;

/// Returns the selection of a seed, as options of ferry and of rsync. A pattern is a name of the tree.
fn selection(seed: u64, tree: &Tree) -> [Vec<String>; 2] {
    let mut numbers = SplitMix64::new(seed ^ 0x6265_7369_6465);
    let names: Vec<String> = tree.nodes().filter_map(|(path, _)| plain_name(path)).collect();
    let mut name =
        || names.get(numbers.index(names.len().max(1))).cloned().unwrap_or_else(|| "own".to_owned());
    let (one, other) = (name(), name());
    let exclude = format!("--exclude={one}");
    let both = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        [words.clone(), words]
    };
    match seed / WAYS.len() as u64 % SELECTIONS {
        0 => both(&[]),
        1 => both(&["--min-size=2000"]),
        2 => both(&["--max-size=2000"]),
        3 => both(&[&exclude]),
        4 => both(&[&exclude, "--delete-excluded"]),
        5 => both(&["--one-file-system"]),
        // The last match decides in gitignore(5), the first one in rsync(1).
        _ => {
            let include = format!("--include={other}");
            [vec![exclude.clone(), include.clone()], vec![include, exclude]]
        }
    }
}

/// The last component of a path, if both programs take it for a pattern without wildcards.
fn plain_name(path: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(path.rsplit(|&byte| byte == b'/').next()?).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (!name.is_empty() && !name.starts_with(['-', '.']) && name.bytes().all(is_plain)).then(|| name.to_owned())
}

/// A filesystem that is mounted in the source; unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it, if the test has mounts of its own.
    fn within(source: &Path) -> Option<Self> {
        if !filesystem::has_own_mounts() {
            return None;
        }
        let path = source.join("mounted");
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "mode=755", "tmpfs"]).arg(&path);
        assert!(mount.status().unwrap().success());
        std::fs::write(path.join("inside"), "on another filesystem").unwrap();
        Some(Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        assert!(status.unwrap().success() || std::thread::panicking());
    }
}

fn check(filesystem: &Filesystem, count: u64) {
    if Command::new("rsync").arg("--version").output().is_err() {
        skip::<()>("rsync is not installed");
        return;
    }
    let program = filesystem.beside().join("ferry");
    place_program(Path::new(FERRY), &program);
    let (mut pairs, mut compared) = (0, 0);
    for seed in seeds(count) {
        // Options that leave files out may leave out some names of a file, which each program then copies alone.
        let mut knobs = Knobs { hard_links: false, ..knobs(filesystem.path(), seed) };
        let is_of_user = is_root() && seed / 2 % 2 == 1;
        if is_of_user {
            knobs =
                Knobs { unreadable: false, devices: false, owners: false, trusted_xattrs: false, ..knobs };
        }
        let (pair, target) = Pair::random(filesystem.path(), seed, &knobs);
        if is_of_user {
            give_to_user(&pair);
        }
        pairs += 1;
        compared += u64::from(compare(&pair, &target, seed, is_of_user.then_some(&program)));
    }
    eprintln!("SEEDS: pairs={pairs} compared={compared}");
    assert!(compared > 0 || std::env::var_os("FERRY_SEED").is_some(), "rsync failed in each case");
}

/// Runs both programs, as a normal user if `user` is that user's ferry. Returns false if rsync failed.
fn compare(pair: &Pair, target: &Tree, seed: u64, user: Option<&PathBuf>) -> bool {
    // With the same times where no time is described.
    let same = Command::new("cp").args(["-a", "target", "other"]).current_dir(pair.path()).status();
    assert!(same.unwrap().success());
    let [our_way, their_way] = WAYS[usize::try_from(seed).unwrap() % WAYS.len()];
    let [ours, theirs] = selection(seed, target);
    let crosses = ours.iter().any(|word| word == "--one-file-system");
    let _mounted = if crosses { Mounted::within(&pair.path().join("source")) } else { None };
    let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
    let run = |program: &Path, words: &[&str], ways: &[&str], selected: &[String]| {
        let mut command = Command::new(program);
        command.args(words).args(ways).args(selected).current_dir(pair.path()).env("LC_ALL", "C.UTF-8");
        if user.is_some() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    let program = user.map_or(Path::new(FERRY), PathBuf::as_path);
    let mut ferry = run(program, &["sync", "--delete=now", "--backend", backend], our_way, &ours);
    let output = ferry.args(["source", "target"]).output().unwrap();
    let mut rsync = run(Path::new("rsync"), &["-aHAX", "--delete"], their_way, &theirs);
    let succeeded = rsync.args(["source/", "other/"]).output().unwrap().status.success();
    // A folder with an excluded entry can't give way to a file: both programs report that.
    let may_fail = !succeeded && ours.iter().any(|word| word.starts_with("--exclude"));
    let is_right = output.status.success() || may_fail && output.status.code() == Some(1);
    assert!(is_right, "FERRY_SEED={seed} {ferry:?}: {}", said(&output));
    if succeeded {
        let report = beside_rsync(pair);
        assert!(report.is_empty(), "FERRY_SEED={seed} {ferry:?}: {report:#?}");
    }
    succeeded
}

#[test]
fn on_tmpfs() {
    check(&Filesystem::memory(), 35);
}

#[test]
fn on_ext4() {
    within("ext4");
}

#[test]
fn on_xfs() {
    within("xfs");
}

#[test]
fn on_btrfs() {
    within("btrfs");
}

fn within(kind: &'static str) {
    let name = format!("sync::beside::on_{kind}");
    filesystem::within(&name, kind, |filesystem| check(filesystem, 12));
}

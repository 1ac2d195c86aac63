//! Options that rsync has as well, on random pairs of trees: both programs leave equal targets.
//!
//! Patterns are names without wildcards, which gitignore(5) and rsync(1) read alike.

use std::process::Command;

use ferry_tree::Tree;
use ferry_tree::fill::SplitMix64;
use ferry_tree::random::Knobs;

use super::{Pair, beside_rsync, knobs, said, seeds};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::skip;

/// Options of both programs for a seed; a pattern excludes a name of the tree.
fn options(seed: u64, tree: &Tree) -> [Vec<String>; 2] {
    let mut numbers = SplitMix64::new(seed ^ 0x6265_7369_6465);
    let names: Vec<String> = tree.nodes().filter_map(|(path, _)| plain_name(path)).collect();
    let mut name =
        || names.get(numbers.index(names.len().max(1))).cloned().unwrap_or_else(|| "own".to_owned());
    let (one, other) = (name(), name());
    let words = |ferry: &[&str], rsync: &[&str]| {
        [ferry, rsync].map(|words| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    };
    let exclude = format!("--exclude={one}");
    match seed % 9 {
        0 => words(&["--checksum"], &["--checksum"]),
        1 => words(&["--size-only"], &["--size-only"]),
        2 => words(&["--newer"], &["--update"]),
        3 => words(&["--inplace"], &["--inplace"]),
        4 => words(&["--min-size=2000"], &["--min-size=2000"]),
        5 => words(&["--max-size=2000"], &["--max-size=2000"]),
        6 => words(&[&exclude], &[&exclude]),
        7 => words(&[&exclude, "--delete-excluded"], &[&exclude, "--delete-excluded"]),
        // The last match decides in gitignore(5), the first one in rsync(1).
        _ => {
            let include = format!("--include={other}");
            words(&[&exclude, &include], &[&include, &exclude])
        }
    }
}

/// The last component of a path, if both programs take it for a pattern without wildcards.
fn plain_name(path: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(path.rsplit(|&byte| byte == b'/').next()?).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (!name.is_empty() && !name.starts_with(['-', '.']) && name.bytes().all(is_plain)).then(|| name.to_owned())
}

fn check(filesystem: &Filesystem, count: u64) {
    if Command::new("rsync").arg("--version").output().is_err() {
        skip::<()>("rsync is not installed");
        return;
    }
    let mut compared = 0;
    for seed in seeds(count) {
        // Options that leave files out may leave out some names of a file, which each program then copies alone.
        let knobs = Knobs { hard_links: false, ..knobs(filesystem.path(), seed) };
        let (pair, target) = Pair::random(filesystem.path(), seed, &knobs);
        compared += u64::from(compare(&pair, &target, seed));
    }
    assert!(compared > 0 || std::env::var_os("FERRY_SEED").is_some(), "rsync failed in each case");
}

/// Runs both programs; returns false if rsync failed.
fn compare(pair: &Pair, target: &Tree, seed: u64) -> bool {
    // With the same times where no time is described.
    let same = Command::new("cp").args(["-a", "target", "other"]).current_dir(pair.path()).status();
    assert!(same.unwrap().success());
    let [ours, theirs] = options(seed, target);
    let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let output = pair.sync(&[&["--delete=now", "--backend", backend], &ours[..]].concat());
    assert_eq!(output.status.code(), Some(0), "FERRY_SEED={seed} {ours:?}: {}", said(&output));
    let mut rsync = Command::new("rsync");
    rsync.args(["-aHAX", "--delete"]).args(&theirs).args(["source/", "other/"]).current_dir(pair.path());
    let succeeded = rsync.output().unwrap().status.success();
    if succeeded {
        let report = beside_rsync(pair);
        assert!(report.is_empty(), "FERRY_SEED={seed} {ours:?}: {report:#?}");
    }
    succeeded
}

#[test]
fn on_tmpfs() {
    check(&Filesystem::memory(), 27);
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
    filesystem::within(&name, kind, |filesystem| check(filesystem, 9));
}

//! Runs that are killed at any moment while they copy large files: no complete file is lost, and the next run ends equal without
//! copying much again. `cargo xtask acceptance-sync kills` runs a thousand.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ferry_tree::fill::{SplitMix64, derive};
use ferry_tree::{Node, Tree, make};
use rustix::process::{Pid, Signal, kill_process};

use super::events::events;
use super::{Pair, assert_listed, said, seeds};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::FERRY;

const MIB: u64 = 1 << 20;
/// Sizes of files that are gone on with.
const LARGE: [u64; 2] = [90 * MIB + 4321, 66 * MIB];
const SMALL: u64 = 30;
/// Bytes that a run may copy again: far fewer than 64 MiB for each of its two workers.
const BOUND: u64 = 16 * MIB;
/// Bytes a second, and the time that a copy of everything takes.
const RATE: &str = "--bwlimit=64M";
const LASTS_MS: u64 = 2_500;
/// Longest time before a run without a limit is killed.
const UNLIMITED_MS: u64 = 400;

/// Returns the source; of each other file, the target has an older version.
fn trees() -> (Tree, Tree) {
    let (mut source, mut target) = (Tree::new(), Tree::new());
    let names = LARGE.iter().enumerate().map(|(index, size)| (format!("large/{index}"), *size));
    let small = (0..SMALL).map(|index| (format!("small/{}/{index}", index % 3), 1_000 + index * 9_000));
    for (index, (name, size)) in names.chain(small).enumerate() {
        source.insert(name.as_bytes(), Node::seeded(size, index as u64 + 1).mtime(2_000, 2));
        if index % 2 == 1 {
            target.insert(name.as_bytes(), Node::file(format!("older {index}")).mtime(1_000, 1));
        }
    }
    (source, target)
}

/// Bytes of all files beneath a folder, by path.
pub(super) fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(root).unwrap().to_owned();
                found.insert(path, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// Bytes that files beneath a folder take, hidden ones included.
pub(super) fn stored(root: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            let facts = entry.metadata().unwrap();
            if facts.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += facts.blocks() * 512;
            }
        }
    }
    bytes
}

/// Kills a run after a time. Returns false if it has ended before.
fn kill(mut run: Child, after: Duration) -> bool {
    std::thread::sleep(after);
    let ended = run.try_wait().unwrap().is_some();
    if !ended {
        kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
        run.wait().unwrap();
    }
    !ended
}

/// Panics if a file that was complete is neither the older one nor the new one.
fn assert_nothing_lost(pair: &Pair, source: &BTreeMap<PathBuf, Vec<u8>>, older: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, bytes) in older {
        let found = fs::read(pair.path().join("target").join(path)).unwrap_or_default();
        let is_whole = found == *bytes || source.get(path) == Some(&found);
        assert!(is_whole, "FERRY_SEED={}: {} is lost", pair.seed, path.display());
    }
}

fn check(filesystem: &Path, count: u64) {
    let (source, target) = trees();
    let mut pair = Pair::new(filesystem, 0, &source, &Tree::new());
    let whole = contents(&pair.path().join("source"));
    let all = whole.values().map(|bytes| bytes.len() as u64).sum::<u64>();
    let (mut kills, mut ended, mut most_again) = (0, 0, 0);
    for seed in seeds(count) {
        pair.seed = seed;
        let mut numbers = SplitMix64::new(derive(seed, 9));
        let place = pair.path().join("target");
        ferry_tree::remove::remove(&place).unwrap();
        make::make(&target, &place).unwrap();
        let older = contents(&place);
        let is_limited = seed % 4 != 3;
        let backend = ["--backend=uring", "--backend=posix"][numbers.index(2)];
        let manifest: &[&str] = if numbers.percent(30) { &["--manifest=m"] } else { &[] };
        let mut command = Command::new(FERRY);
        command.args(["sync", "--workers=2", backend]).args(is_limited.then_some(RATE)).args(manifest);
        command.args(["source", "target"]).current_dir(pair.path()).stdout(Stdio::null());
        let before = stored(&place);
        let run = command.stderr(Stdio::null()).spawn().unwrap();
        let after = numbers.below(if is_limited { LASTS_MS } else { UNLIMITED_MS });
        let is_killed = kill(run, Duration::from_millis(after));
        kills += u64::from(is_killed);
        ended += u64::from(!is_killed);
        assert_nothing_lost(&pair, &whole, &older);
        let copied = stored(&place).saturating_sub(before);
        let output = pair.sync(&[&["--events", backend], manifest].concat());
        assert_eq!(output.status.code(), Some(0), "FERRY_SEED={seed}: {}", said(&output));
        pair.assert_equal("source", "target", &output);
        if !manifest.is_empty() {
            assert_listed(&pair, "m", &output);
        }
        let bytes = events(&output.stdout).last().unwrap()["end"]["bytes"].as_u64().unwrap();
        let again = (copied + bytes).saturating_sub(all);
        assert!(again <= BOUND, "FERRY_SEED={seed}: {again} bytes were copied again, after {after} ms");
        most_again = most_again.max(again);
    }
    eprintln!("SEEDS: kills={kills} ended_before={ended} most_kib_again={}", most_again >> 10);
}

#[test]
fn on_tmpfs() {
    check(Filesystem::memory().path(), 8);
}

#[test]
fn on_ext4() {
    filesystem::within("sync::killed::on_ext4", "ext4", |ext4| check(ext4.path(), 4));
}

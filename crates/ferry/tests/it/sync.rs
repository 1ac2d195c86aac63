//! `ferry sync`: random pairs of trees become equal, as rsync makes them; plans are kept to; nothing else is deleted.
//!
//! `FERRY_SEEDS` multiplies the number of seeds; `FERRY_SEEDS==100` runs 100. `FERRY_SEED` runs a single seed, as printed on
//! failure, and `FERRY_SEED=100..200` those of a range.

mod attributes;
mod bad_files;
mod beside;
mod calls;
mod chaos;
mod choices;
mod deletion;
mod device;
pub(crate) mod events;
mod folded;
mod killed;
mod large;
mod lent;
mod listed;
mod load;
mod output;
mod pairs;
mod plans;
mod power;
mod resumed;
mod retries;
mod run_mark;
mod selection;
mod undo;
mod unplugged;
mod user;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

use ferry_copy::Algorithm;
use ferry_tree::attributes::EntryKind;
use ferry_tree::compare::{Difference, Holes, Mismatch, Options, snapshots};
use ferry_tree::random::{Knobs, tree};
use ferry_tree::{Tree, capture, make};

use crate::manifest::{hashes, listed};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::{FERRY, is_root, scaled, skip};

/// Runs `ferry sync`.
fn sync(within: &Path, words: &[&str]) -> Output {
    Command::new(FERRY).arg("sync").args(words).current_dir(within).env("LC_ALL", "C.UTF-8").output().unwrap()
}

/// Runs `ferry sync` on one worker, with strace's injection of a fault; `None` without strace.
fn struck(within: &Path, inject: &str, words: &[&str]) -> Option<Output> {
    let call = inject.split(['=', ':']).nth(1).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "log", "-e", &format!("trace={call}"), "-e", inject, FERRY]);
    command.args(["sync", "--backend=posix", "--workers=1"]).args(words).current_dir(within);
    command.output().ok().or_else(|| skip("strace is not here"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Everything that is compared; a file whose bytes are equal keeps its holes.
fn compared() -> Options {
    Options { threads: 1, holes: Holes::Ignore, ..Options::all() }
}

fn seeds(count: u64) -> Vec<u64> {
    let Ok(given) = std::env::var("FERRY_SEED") else { return (0..scaled(count)).collect() };
    let number = |text: &str| text.parse().expect("FERRY_SEED is a number, or a range like 100..200");
    match given.split_once("..") {
        Some((first, end)) => (number(first)..number(end)).collect(),
        None => vec![number(&given)],
    }
}

/// Two trees in a folder of their own.
struct Pair {
    place: tempfile::TempDir,
    seed: u64,
}

impl Pair {
    fn new(filesystem: &Path, seed: u64, source: &Tree, target: &Tree) -> Self {
        let place = tempfile::tempdir_in(filesystem).unwrap();
        make::make(source, &place.path().join("source")).unwrap();
        make::make(target, &place.path().join("target")).unwrap();
        Self { place, seed }
    }

    fn random(filesystem: &Path, seed: u64, knobs: &Knobs) -> (Self, Tree) {
        let source = tree(seed, knobs);
        let target = pairs::changed(&source, seed, knobs);
        (Self::new(filesystem, seed, &source, &target), target)
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn sync(&self, words: &[&str]) -> Output {
        sync(self.path(), &[words, &["source", "target"]].concat())
    }

    /// Panics unless two trees are equal, apart from the trash.
    fn assert_equal(&self, one: &str, other: &str, output: &Output) {
        let found = [one, other].map(|name| {
            let mut found = capture::capture(&self.path().join(name)).unwrap();
            found.entries.retain(|path, _| !path.starts_with(b".ferry-trash"));
            found
        });
        let differences = snapshots(&found[0], &found[1], &compared());
        let text: Vec<_> = differences.iter().map(ToString::to_string).collect();
        assert!(text.is_empty(), "FERRY_SEED={}: {one} and {other}: {text:#?}\n{}", self.seed, said(output));
    }
}

/// Panics unless each line of a manifest has the hash of its file in the target, and each file that both trees have has a
/// line or was reported.
fn assert_listed(pair: &Pair, manifest: &str, output: &Output) {
    let (seed, said) = (pair.seed, said(output));
    let found = hashes(&pair.path().join("target"), Algorithm::Blake3);
    let lines = listed(&std::fs::read(pair.path().join(manifest)).unwrap());
    for (path, line) in &lines {
        let name = path.escape_ascii();
        assert_eq!(found.get(path), Some(line), "FERRY_SEED={seed}: the line of {name}\n{said}");
    }
    let is_reported = |path: &[u8]| {
        let named = |above: &Path| ["source", "target"].map(|tree| quoted(&Path::new(tree).join(above)));
        let path = Path::new(OsStr::from_bytes(path));
        path.ancestors().any(|above| named(above).iter().any(|name| said.contains(name.as_str())))
    };
    for path in found.keys().filter(|path| !lines.contains_key(*path) && !is_reported(path)) {
        let is_taking_part = pair.path().join("source").join(OsStr::from_bytes(path)).is_file();
        assert!(!is_taking_part, "FERRY_SEED={seed}: no line of {}\n{said}", path.escape_ascii());
    }
}

/// A path of plain letters as it is in messages.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().trim_end_matches('/'))
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Modes may keep a user from removing what they made.
        ferry_tree::remove::remove(&self.path().join("source")).ok();
        ferry_tree::remove::remove(&self.path().join("target")).ok();
        ferry_tree::remove::remove(&self.path().join("other")).ok();
    }
}

fn knobs(filesystem: &Path, seed: u64) -> Knobs {
    let possible = Knobs::possible_in(filesystem);
    // Modes that keep the user out, and times that rsync can't set, are not what is tested here.
    Knobs { entries: 40, unreadable: possible.unreadable && is_root() && seed.is_multiple_of(2), ..possible }
}

/// Returns the differences between rsync's target and ferry's.
///
/// ferry's target equals the source already. rsync leaves links between files that its source has apart; such files have
/// one set of attributes. It changes the owning group's permissions in some ACLs with a mask. It leaves the time at which it
/// changed a folder that the source lacks, and that of a mount point, which is the folder `mounted`.
fn beside_rsync(pair: &Pair) -> Vec<String> {
    let [theirs, ours] = ["other", "target"].map(|name| {
        let mut found = capture::capture(&pair.path().join(name)).unwrap();
        found.entries.retain(|path, _| !path.starts_with(b".ferry-trash"));
        found
    });
    let is_alone = |path: &Vec<u8>| {
        let links =
            |found: &ferry_tree::Snapshot| found.entries.get(path).map(|facts| facts.attributes.link_count);
        let is_folder = |found: &ferry_tree::Snapshot| {
            found.entries.get(path).is_some_and(|facts| facts.attributes.kind == EntryKind::Directory)
        };
        is_folder(&theirs) || links(&theirs).is_none_or(|links| links == 1)
    };
    let differences = snapshots(&theirs, &ours, &Options { links: false, ..compared() });
    let status = |path: &[u8]| pair.path().join("source").join(OsStr::from_bytes(path)).symlink_metadata();
    let has_time = |path: &[u8]| status(path).is_ok() && path != b"mounted";
    // rsync makes the folder on which a filesystem is mounted after it has set the time of the root.
    let is_right_time = |found: &Difference| {
        let Mismatch::Mtime { target, .. } = found.mismatch else { return false };
        let wanted = status(b"").map(|source| (source.mtime(), source.mtime_nsec()));
        let found_time = (target.seconds, i64::from(target.nanoseconds));
        found.path.is_empty() && wanted.is_ok_and(|wanted| wanted == found_time)
    };
    let is_ours = |found: &&Difference| {
        let is_acl = matches!(found.mismatch, Mismatch::Acl { default: false, .. });
        let is_time = matches!(found.mismatch, Mismatch::Mtime { .. });
        is_alone(&found.path) && !is_acl && (!is_time || has_time(&found.path)) && !is_right_time(found)
    };
    differences.iter().filter(is_ours).map(ToString::to_string).collect()
}

/// Makes random targets equal to their sources, and compares with rsync.
fn check(filesystem: &Filesystem, count: u64) {
    let has_rsync = Command::new("rsync").arg("--version").output().is_ok()
        || skip::<()>("rsync is not installed").is_some();
    let (mut pairs, mut compared) = (0, 0);
    for seed in seeds(count) {
        pairs += 1;
        let (pair, target) = Pair::random(filesystem.path(), seed, &knobs(filesystem.path(), seed));
        let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
        let delete = ["--delete", "--delete=now"][usize::try_from(seed / 2 % 2).unwrap()];
        make::make(&target, &pair.path().join("other")).unwrap();
        let verify: &[&str] = if seed % 3 == 2 { &["--verify"] } else { &[] };
        let output = pair.sync(&[&[delete, "--backend", backend], verify].concat());
        assert_eq!(output.status.code(), Some(0), "FERRY_SEED={seed}: {}", said(&output));
        pair.assert_equal("source", "target", &output);
        if has_rsync {
            let rsync = ["-aHAX", "--delete", "source/", "other/"];
            let rsync = Command::new("rsync").args(rsync).current_dir(pair.path()).output().unwrap();
            if rsync.status.success() {
                compared += 1;
                let report = beside_rsync(&pair);
                assert!(report.is_empty(), "FERRY_SEED={seed}: {report:#?}");
            }
        }
        let again = pair.sync(&[delete, "--backend", backend, "-v"]);
        assert!(again.stdout.is_empty() && again.status.success(), "FERRY_SEED={seed}: {}", said(&again));
    }
    eprintln!("SEEDS: pairs={pairs} compared={compared}");
}

#[test]
fn on_tmpfs() {
    check(&Filesystem::memory(), 8);
}

#[test]
fn on_ext4() {
    filesystem::within("sync::on_ext4", "ext4", |ext4| check(ext4, 4));
}

#[test]
fn on_xfs() {
    filesystem::within("sync::on_xfs", "xfs", |xfs| check(xfs, 3));
}

#[test]
fn on_btrfs() {
    filesystem::within("sync::on_btrfs", "btrfs", |btrfs| check(btrfs, 3));
}

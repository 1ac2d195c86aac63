//! Runs with deletion beside a hostile program. Nothing outside the target changes, no bytes of the target are lost, only
//! what the run was to take away is in the trash, and `--undo` restores that.
//!
//! The program puts files of its own in the place of others, takes entries out of the target, and has names of folders
//! lead elsewhere for a moment. It destroys nothing itself: what it takes it keeps. So each file that was ever in the
//! target has to be in the target, in the trash, or with that program.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_copy::{Algorithm, Digest};
use ferry_tree::attributes::EntryKind;
use ferry_tree::capture::Facts;
use ferry_tree::compare::snapshots;
use ferry_tree::fill::{SplitMix64, derive};
use ferry_tree::{Node, Snapshot, Tree, capture};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;

use super::calls::contents;
use super::events::events;
use super::{Pair, assert_listed, compared, quoted, said, seeds, sync};
use crate::manifest::listed;
use crate::random::filesystem::{self, Filesystem};

const FOLDERS: u64 = 5;
const FILES: u64 = 40;

fn trees() -> (Tree, Tree) {
    let (mut source, mut target) = (Tree::new(), Tree::new());
    for folder in 0..FOLDERS {
        for file in 0..FILES {
            let name = format!("{folder}/{file}");
            if file % 4 > 0 {
                let new = Node::file(format!("new {folder} {file}")).mtime(2_000, 2);
                source.insert(name.as_bytes(), new);
            }
            if file % 5 > 0 {
                let old = Node::file(format!("old {folder} {file}")).mtime(1_000, 1);
                target.insert(name.as_bytes(), old);
            }
        }
    }
    (source, target)
}

/// The hostile program.
struct Hostile<'a> {
    place: &'a Path,
    numbers: SplitMix64,
    /// Files that it has put into the target.
    put: Vec<Vec<u8>>,
}

impl Hostile<'_> {
    fn step(&mut self) {
        let folder = self.place.join("target").join(self.numbers.below(FOLDERS).to_string());
        let name = folder.join(self.numbers.below(FILES).to_string());
        let own = self.place.join("kept").join(self.put.len().to_string());
        match self.numbers.below(8) {
            0 => {
                // The name leads out of the target for a moment.
                let link = self.place.join("kept").join(format!("link {}", self.numbers.next_u64()));
                std::os::unix::fs::symlink(self.place.join("outside"), &link).unwrap();
                if renameat_with(CWD, &link, CWD, &folder, RenameFlags::EXCHANGE).is_ok() {
                    std::thread::yield_now();
                    // The run may have taken the link for an entry of another type.
                    if renameat_with(CWD, &link, CWD, &folder, RenameFlags::EXCHANGE).is_err() {
                        renameat_with(CWD, &link, CWD, &folder, RenameFlags::NOREPLACE).ok();
                    }
                }
            }
            1 => {
                let taken = self.place.join("kept").join(format!("taken {}", self.numbers.next_u64()));
                renameat_with(CWD, &name, CWD, &taken, RenameFlags::NOREPLACE).ok();
            }
            _ => {
                let bytes = format!("foreign {}", self.put.len()).into_bytes();
                fs::write(&own, &bytes).unwrap();
                self.put.push(bytes);
                // What has the name now comes here.
                if renameat_with(CWD, &own, CWD, &name, RenameFlags::EXCHANGE).is_err() {
                    renameat_with(CWD, &own, CWD, &name, RenameFlags::NOREPLACE).ok();
                }
            }
        }
    }
}

/// Panics unless each line of the manifest is the hash of a file that the source has, or that was put into the target. The
/// hostile program may have changed the target since, so the lines can't be compared with it.
fn assert_hashes_of(pair: &Pair, put: &BTreeSet<Vec<u8>>, output: &Output) {
    let mut known = put.clone();
    contents(&pair.path().join("source"), &mut known);
    let known: BTreeSet<String> =
        known.iter().map(|bytes| Digest::of(Algorithm::Blake3, bytes).to_string()).collect();
    let lines = listed(&fs::read(pair.path().join("m")).unwrap());
    let wrong: Vec<_> = lines.iter().filter(|(_, line)| !known.contains(*line)).collect();
    assert!(!lines.is_empty() && wrong.is_empty(), "FERRY_SEED={}: {wrong:?}\n{}", pair.seed, said(output));
}

/// Paths that these lines of a plan, or of events, allow to take from the target.
fn taken_by(lines: &[Value]) -> BTreeSet<Vec<u8>> {
    let actions = lines.iter().filter_map(|line| line.get("action"));
    let takes =
        |action: &&Value| ["replace", "exchange", "delete"].iter().any(|verb| action["verb"] == *verb);
    let path = |action: &Value| action["path"].as_str().unwrap().as_bytes().to_vec();
    actions.filter(takes).map(path).collect()
}

/// A run beside the hostile program.
struct Round {
    pair: Pair,
    /// Trees that no run may change, as they were.
    others: Vec<(&'static str, Snapshot)>,
    /// Paths that the plan, which was made before, takes from the target.
    planned: BTreeSet<Vec<u8>>,
}

impl Round {
    fn new(filesystem: &Filesystem, seed: u64) -> Self {
        let (source, target) = trees();
        let pair = Pair::new(filesystem.path(), seed, &source, &target);
        let place = pair.path();
        fs::create_dir(place.join("kept")).unwrap();
        fs::create_dir(place.join("outside")).unwrap();
        for file in 0..FILES {
            fs::write(place.join("outside").join(file.to_string()), "outside").unwrap();
        }
        let others =
            ["source", "outside"].map(|name| (name, capture::capture(&place.join(name)).unwrap())).into();
        let output = pair.sync(&["--delete", "--plan=plan"]);
        assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
        let plan = fs::read_to_string(place.join("plan")).unwrap();
        let lines: Vec<Value> = plan.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let planned = taken_by(&lines);
        assert!(planned.len() as u64 > FOLDERS * FILES / 2, "{planned:?}");
        Self { pair, others, planned }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.pair.path().join(name)
    }

    /// Runs while the hostile program acts. Returns also the files that it has put into the target.
    fn run(&self) -> (Output, BTreeSet<Vec<u8>>) {
        let (place, seed) = (self.pair.path(), self.pair.seed);
        let mut hostile = Hostile { place, numbers: SplitMix64::new(derive(seed, 6)), put: Vec::new() };
        let ended = AtomicBool::new(false);
        let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    hostile.step();
                }
            });
            let output =
                self.pair.sync(&["--delete", "--manifest=m", "--events=events", "--backend", backend]);
            ended.store(true, Ordering::Relaxed);
            output
        });
        (output, hostile.put.into_iter().collect())
    }

    /// Panics if a run has changed anything outside the target.
    fn assert_nothing_outside_changed(&self, output: &Output) {
        let told = || format!("FERRY_SEED={}: {}", self.pair.seed, said(output));
        for (name, was) in &self.others {
            let found = snapshots(was, &capture::capture(&self.place(name)).unwrap(), &compared());
            assert!(found.is_empty(), "{name}: {found:?}\n{}", told());
        }
        let names: BTreeSet<_> =
            fs::read_dir(self.pair.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let expected = ["source", "target", "outside", "kept", "plan", "events", "m"];
        assert_eq!(names, expected.map(OsString::from).into(), "{}", told());
    }

    fn contents(&self, names: &[&str]) -> BTreeSet<Vec<u8>> {
        let mut found = BTreeSet::new();
        names.iter().for_each(|name| contents(&self.place(name), &mut found));
        found
    }

    /// Returns the trash of the run, if it has one.
    fn trash(&self) -> Option<PathBuf> {
        let found = fs::read_dir(self.place("target/.ferry-trash")).into_iter().flatten();
        let found: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
        assert!(found.len() < 2, "{found:?}");
        found.into_iter().next()
    }

    /// Panics unless each entry of the trash has a path that the plan or an action of the run takes, or is named by a
    /// failure. Returns the entries that are no folders.
    fn assert_taken_as_planned(&self, trash: &Path, output: &Output) -> BTreeMap<Vec<u8>, Facts> {
        let mut allowed = taken_by(&events(&fs::read(self.place("events")).unwrap()));
        allowed.extend(self.planned.iter().cloned());
        let mut taken = capture::capture(trash).unwrap().entries;
        taken.retain(|path, facts| {
            facts.attributes.kind != EntryKind::Directory && path != b".ferry-is-trash"
        });
        let said = said(output);
        // Its name was taken by another entry when it was to get it back.
        let is_told = |path: &Path| {
            said.contains(&format!("cannot give {}, which is in the trash, its name back", quoted(path)))
        };
        let is_allowed = |path: &Vec<u8>| {
            let whole = Path::new(OsStr::from_bytes(path));
            let is_planned = |above: &Path| allowed.contains(above.as_os_str().as_bytes());
            whole.ancestors().any(is_planned) || is_told(&Path::new("target").join(whole))
        };
        let wrong: Vec<_> = taken
            .keys()
            .filter(|path| !is_allowed(path))
            .map(|path| path.escape_ascii().to_string())
            .collect();
        assert!(wrong.is_empty(), "FERRY_SEED={}: not to be taken: {wrong:?}\n{said}", self.pair.seed);
        taken
    }

    /// Undoes the run. Panics unless each entry of the trash is back at its path, and nothing else is lost.
    fn assert_undone(&self, trash: &Path, taken: &BTreeMap<Vec<u8>, Facts>) {
        let mut before = self.contents(&["target", "kept"]);
        // The mark of the trash is the only empty file, and goes with it.
        before.remove(&b""[..]);
        let output = sync(self.pair.path(), &["--undo", trash.to_str().unwrap()]);
        let told = || format!("FERRY_SEED={}: {}", self.pair.seed, said(&output));
        assert!(output.status.success(), "{}", told());
        let found = capture::capture(&self.place("target")).unwrap();
        for (path, was) in taken {
            let Some(is) = found.entries.get(path) else {
                panic!("{} is missing\n{}", path.escape_ascii(), told())
            };
            let is_same = (&is.hash, &is.target, &is.xattrs) == (&was.hash, &was.target, &was.xattrs)
                && (is.attributes.kind, is.attributes.mode, is.attributes.mtime)
                    == (was.attributes.kind, was.attributes.mode, was.attributes.mtime);
            assert!(is_same, "{}: {was:?}, and now {is:?}\n{}", path.escape_ascii(), told());
        }
        assert!(!trash.exists(), "{}", told());
        let after = self.contents(&["target", "kept"]);
        assert_eq!(before.difference(&after).next(), None, "{}", told());
        self.assert_nothing_outside_changed(&output);
    }
}

fn check(filesystem: &Filesystem, count: u64) {
    let mut undone = 0;
    for seed in seeds(count) {
        let round = Round::new(filesystem, seed);
        let mut expected = round.contents(&["target"]);
        let (output, put) = round.run();
        round.assert_nothing_outside_changed(&output);
        expected.extend(put);
        assert_hashes_of(&round.pair, &expected, &output);
        let found = round.contents(&["target", "kept"]);
        let lost: Vec<_> = expected.difference(&found).map(|bytes| String::from_utf8_lossy(bytes)).collect();
        assert!(lost.is_empty(), "FERRY_SEED={seed}: lost {lost:?}\n{}", said(&output));
        if let Some(trash) = round.trash() {
            let taken = round.assert_taken_as_planned(&trash, &output);
            round.assert_undone(&trash, &taken);
            undone += taken.len();
        }
        let again = round.pair.sync(&["--delete", "--manifest=m"]);
        assert!(again.status.success(), "FERRY_SEED={seed}: {}", said(&again));
        round.pair.assert_equal("source", "target", &again);
        assert_listed(&round.pair, "m", &again);
    }
    assert!(undone > 0, "nothing was taken away");
    eprintln!("SEEDS: undone={undone}");
}

#[test]
fn beside_a_hostile_program_nothing_is_lost_and_nothing_outside_is_touched() {
    check(&Filesystem::memory(), 8);
}

#[test]
fn beside_a_hostile_program_on_ext4() {
    filesystem::within("sync::chaos::beside_a_hostile_program_on_ext4", "ext4", |ext4| check(ext4, 4));
}

#[test]
fn beside_a_hostile_program_on_xfs() {
    filesystem::within("sync::chaos::beside_a_hostile_program_on_xfs", "xfs", |xfs| check(xfs, 4));
}

#[test]
fn beside_a_hostile_program_on_btrfs() {
    filesystem::within("sync::chaos::beside_a_hostile_program_on_btrfs", "btrfs", |btrfs| check(btrfs, 4));
}

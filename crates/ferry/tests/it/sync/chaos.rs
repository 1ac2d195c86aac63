//! Runs with deletion beside a hostile program. Nothing outside the target changes, and no bytes of the target are lost.
//!
//! The program puts files of its own in the place of others, takes entries out of the target, and has names of folders
//! lead elsewhere for a moment. It destroys nothing itself: what it takes it keeps. So each file that was ever in the
//! target has to be in the target, in the trash, or with that program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use ferry_copy::{Algorithm, Digest};
use ferry_tree::fill::{SplitMix64, derive};
use ferry_tree::{Node, Tree};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::calls::contents;
use super::{Pair, assert_listed, said, seeds};
use crate::manifest::listed;
use crate::random::filesystem::Filesystem;

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

#[test]
fn beside_a_hostile_program_nothing_is_lost_and_nothing_outside_is_touched() {
    let memory = Filesystem::memory();
    let (source, target) = trees();
    for seed in seeds(8) {
        let pair = Pair::new(memory.path(), seed, &source, &target);
        let place = pair.path();
        fs::create_dir(place.join("kept")).unwrap();
        fs::create_dir(place.join("outside")).unwrap();
        for file in 0..FILES {
            fs::write(place.join("outside").join(file.to_string()), "outside").unwrap();
        }
        let mut expected = BTreeSet::new();
        contents(&place.join("target"), &mut expected);
        let mut hostile = Hostile { place, numbers: SplitMix64::new(derive(seed, 6)), put: Vec::new() };
        let ended = AtomicBool::new(false);
        let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    hostile.step();
                }
            });
            let output = pair.sync(&["--delete", "--manifest=m", "--backend", backend]);
            ended.store(true, Ordering::Relaxed);
            output
        });
        let outside = fs::read_dir(place.join("outside")).unwrap().flatten();
        let outside: Vec<_> = outside.map(|entry| fs::read(entry.path()).unwrap()).collect();
        let is_untouched = outside.iter().all(|bytes| bytes == b"outside");
        assert!(is_untouched && outside.len() as u64 == FILES, "FERRY_SEED={seed}: {}", said(&output));
        expected.extend(hostile.put);
        assert_hashes_of(&pair, &expected, &output);
        let mut found = BTreeSet::new();
        contents(&place.join("target"), &mut found);
        contents(&place.join("kept"), &mut found);
        let lost: Vec<_> = expected.difference(&found).map(|bytes| String::from_utf8_lossy(bytes)).collect();
        assert!(lost.is_empty(), "FERRY_SEED={seed}: lost {lost:?}\n{}", said(&output));
        let again = pair.sync(&["--delete", "--manifest=m"]);
        assert!(again.status.success(), "FERRY_SEED={seed}: {}", said(&again));
        pair.assert_equal("source", "target", &again);
        assert_listed(&pair, "m", &again);
    }
}

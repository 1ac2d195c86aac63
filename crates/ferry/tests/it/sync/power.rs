//! Power loss at any moment of a run: what an earlier run has made durable is there, and the next run ends equal.
//!
//! Another program syncs a file of its own again and again. So the journal holds names, sizes and times long before the kernel
//! writes the bytes of the run by itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ferry_tree::fill::{SplitMix64, derive};
use ferry_tree::{Node, Tree, make};

use super::deletion::trashes;
use super::device::Device;
use super::killed::contents;
use super::{Pair, said, seeds, sync};
use crate::scene::FERRY;

const LARGE: u64 = (96 << 20) + 4321;
const FILES: u64 = 200;
/// Rate of a run, and the time in which its power is lost. Without a trash or `--fsync`, nothing is expected of replaced files.
const RATE: &str = "--bwlimit=80M";
const LASTS_MS: u64 = 1_700;
const WAYS: [&[&str]; 4] = [&["--fsync"], &["--delete"], &["--fsync", "--delete"], &[]];

/// Returns the source, and what an earlier run has copied. Of five files one is new, one is equal, one is to be deleted, and
/// two are replaced.
fn trees() -> (Tree, Tree) {
    let (mut source, mut older) = (Tree::new(), Tree::new());
    // Its folder comes last, so that replaced files have their names before.
    source.insert("z/large".as_bytes(), Node::seeded(LARGE, 1).mtime(2_000, 2));
    for index in 0..FILES {
        let name = format!("{}/{index}", index % 7);
        let size = 1 + index * 7919 % 150_000;
        let old = Node::seeded(size, 1_000 + index).mtime(1_000, 1);
        match index % 5 {
            0 => source.insert(name.as_bytes(), Node::seeded(size, 2_000 + index).mtime(2_000, 2)),
            1 => {
                source.insert(name.as_bytes(), old.clone());
                older.insert(name.as_bytes(), old);
            }
            2 => older.insert(name.as_bytes(), old),
            _ => {
                source.insert(name.as_bytes(), Node::seeded(size, 2_000 + index).mtime(2_000, 2));
                older.insert(name.as_bytes(), old);
            }
        }
    }
    (source, older)
}

type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// The trees of all rounds, and the device with the target.
struct Scene<'a> {
    device: &'a Device,
    pair: Pair,
    source: Contents,
    older: Contents,
}

impl<'a> Scene<'a> {
    fn new(place: &Path, device: &'a Device) -> Self {
        let (source, older) = trees();
        let pair = Pair::new(place, 0, &source, &Tree::new());
        make::make(&older, &pair.path().join("other")).unwrap();
        // The target is on the device.
        fs::remove_dir(pair.path().join("target")).unwrap();
        std::os::unix::fs::symlink(device.path().join("target"), pair.path().join("target")).unwrap();
        let [source, older] = ["source", "other"].map(|name| contents(&pair.path().join(name)));
        Self { device, pair, source, older }
    }

    /// Loses the power during a run. Returns false if it had ended before.
    fn lose_power(&self, words: &[&str], after: Duration) -> bool {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = File::create(self.device.path().join("synced")).unwrap();
                while !is_over.load(Ordering::Relaxed)
                    && file.write_all(b"x").and_then(|()| file.sync_all()).is_ok()
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let mut command = Command::new(FERRY);
            command
                .args(["sync", RATE])
                .args(words)
                .args(["source", "target/"])
                .current_dir(self.pair.path());
            let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(after);
            let has_ended = run.try_wait().unwrap().is_some();
            self.device.cut();
            run.kill().unwrap();
            run.wait().unwrap();
            is_over.store(true, Ordering::Relaxed);
            !has_ended
        })
    }

    /// Panics unless each file that was durable before is where it has to be. Returns the number of replaced files of which
    /// neither version is in place.
    fn assert_nothing_lost(&self, words: &[&str]) -> usize {
        let target = self.pair.path().join("target");
        let found = contents(&target);
        let kept: Vec<Contents> = trashes(&target).iter().map(|trash| contents(trash)).collect();
        let mut empty = 0;
        for (path, old) in &self.older {
            let (here, new) = (found.get(path), self.source.get(path));
            let is_in_place = here == Some(old) || here.is_some() && here == new;
            // The power may be lost just before it goes to the trash; then the next run sees to it.
            let is_kept =
                kept.iter().any(|trash| trash.get(path) == Some(old)) || is_aside(&found, path, old);
            let is_sound = match new {
                Some(new) if new == old => here == Some(old),
                Some(_) if words.contains(&"--fsync") => is_in_place,
                Some(_) if words.contains(&"--delete") => is_in_place || is_kept,
                Some(_) => true,
                None => is_in_place || is_kept,
            };
            let size = here.map(Vec::len);
            assert!(
                is_sound,
                "FERRY_SEED={} {words:?}: {} is lost, size {size:?}",
                self.pair.seed,
                path.display()
            );
            empty += usize::from(new.is_some() && !is_in_place);
        }
        if words.contains(&"--fsync") && found.contains_key(Path::new("z/large")) {
            let is_whole = found.get(Path::new("z/large")) == self.source.get(Path::new("z/large"));
            assert!(is_whole, "FERRY_SEED={}: the large file has its name too early", self.pair.seed);
        }
        empty
    }

    /// Undoes all runs, the last one first. Panics unless all older files are back.
    fn assert_undone(&self) {
        let target = self.pair.path().join("target");
        let mut found = trashes(&target);
        // Their names are times, with a number if there are several of one second.
        found.sort_by_key(|path| fs::metadata(path.join(".ferry-is-trash")).unwrap().modified().unwrap());
        for trash in found.iter().rev() {
            let output = sync(self.pair.path(), &["--undo", trash.to_str().unwrap()]);
            assert!(output.status.success(), "FERRY_SEED={}: {}", self.pair.seed, said(&output));
        }
        let found = contents(&target);
        for (path, old) in &self.older {
            assert!(found.get(path) == Some(old), "FERRY_SEED={}: {}", self.pair.seed, path.display());
        }
    }
}

/// Returns true if a file has the bytes, in the folder of `path` and with the name of an entry that was moved aside.
fn is_aside(found: &Contents, path: &Path, bytes: &[u8]) -> bool {
    let is_named = |other: &Path| {
        let name = other.file_name().unwrap().to_str().unwrap();
        other.parent() == path.parent() && name.starts_with(".ferry-aside-")
    };
    found.iter().any(|(other, content)| is_named(other) && content == bytes)
}

fn check(test: &str, kind: &str, count: u64) {
    Device::within(test, |place, device| {
        let mut scene = Scene::new(place, device);
        let (mut losses, mut empty, mut continued) = (0, 0, 0);
        for seed in seeds(count) {
            scene.pair.seed = seed;
            device.make(kind);
            let target = device.path().join("target");
            let earlier = sync(scene.pair.path(), &["--fsync", "other", target.to_str().unwrap()]);
            assert!(earlier.status.success(), "FERRY_SEED={seed}: {}", said(&earlier));
            let way = usize::try_from(seed % 4).unwrap();
            let mut numbers = SplitMix64::new(derive(seed, 13));
            let after = Duration::from_millis(numbers.below(LASTS_MS));
            losses += u64::from(scene.lose_power(WAYS[way], after));
            device.restore();
            empty += scene.assert_nothing_lost(WAYS[way]);
            let output = sync(scene.pair.path(), &[WAYS[way], &["source", "target/"]].concat());
            assert_eq!(output.status.code(), Some(0), "FERRY_SEED={seed}: {}", said(&output));
            let lines = said(&output);
            let told = lines.lines().filter(|line| line.contains("'target/z/large'")).count();
            assert!(told <= 1, "FERRY_SEED={seed}: {lines}");
            continued += told;
            let end = contents(&scene.pair.path().join("target"));
            for (path, new) in &scene.source {
                assert!(end.get(path) == Some(new), "FERRY_SEED={seed}: {} differs\n{lines}", path.display());
            }
            if WAYS[way].contains(&"--delete") {
                scene.assert_undone();
            }
        }
        assert!(losses > 0, "no run was still running");
        eprintln!("SEEDS: losses={losses} replaced_files_without_content={empty} continued={continued}");
    });
}

#[test]
fn after_a_power_loss_on_ext4() {
    check("sync::power::after_a_power_loss_on_ext4", "ext4", 6);
}

#[test]
fn after_a_power_loss_on_xfs() {
    check("sync::power::after_a_power_loss_on_xfs", "xfs", 6);
}

#[test]
fn after_a_power_loss_on_btrfs() {
    check("sync::power::after_a_power_loss_on_btrfs", "btrfs", 6);
}

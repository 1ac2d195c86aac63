//! A device that is unplugged during a run, on either side: the run ends by itself, and the same command continues when the
//! device is back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ferry_tree::fill::{SplitMix64, derive};
use ferry_tree::{Node, Tree, make};

use super::device::Device;
use super::killed::contents;
use super::{said, seeds, sync};
use crate::scene::FERRY;

const FILES: u64 = 400;
const RATE: &str = "--bwlimit=30M";
const LASTS_MS: u64 = 1_000;
/// Most lines of a run that ends early: the first failure, the end of the run, and where the trash is.
const LINES: usize = 3;

/// Returns the source and an older target. Each fifth file is only in the source, and each tenth only in the target.
fn trees() -> (Tree, Tree) {
    let (mut source, mut target) = (Tree::new(), Tree::new());
    for index in 0..FILES {
        let name = format!("{}/{index}", index % 13);
        let size = 1 + index * 7919 % 150_000;
        if index % 10 != 9 {
            source.insert(name.as_bytes(), Node::seeded(size, 2_000 + index).mtime(2_000, 2));
        }
        if index % 5 != 0 {
            target.insert(name.as_bytes(), Node::seeded(size, 1_000 + index).mtime(1_000, 1));
        }
    }
    (source, target)
}

struct Round<'a> {
    device: &'a Device,
    place: &'a Path,
    source: PathBuf,
    target: PathBuf,
    is_source: bool,
    seed: u64,
}

impl Round<'_> {
    /// Runs until the device is unplugged, and waits for the end of the run. Returns its output.
    fn run(&self, words: &[&str]) -> Output {
        let after = SplitMix64::new(derive(self.seed, 17)).below(LASTS_MS);
        let backend = ["--backend=uring", "--backend=posix"][usize::try_from(self.seed % 2).unwrap()];
        let mut command = Command::new("timeout");
        command
            .args(["--signal=KILL", "60", FERRY])
            .args(words)
            .args([RATE, backend])
            .args([&self.source, &self.target]);
        // Otherwise the kernel may write nothing to the device before the run has ended.
        let is_durable = !self.is_source && self.seed % 4 < 2;
        command.args(is_durable.then_some("--fsync"));
        let run =
            command.current_dir(self.place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(after));
        self.device.cut();
        let output = run.wait_with_output().unwrap();
        let (seed, text) = (self.seed, said(&output));
        // The last line is wrapped. What a copy overwrites is reported as incomplete, as after an interruption.
        let is_begun =
            |line: &&str| !line.starts_with(' ') && !line.contains(" is incomplete; it has the oldest time");
        let lines = text.lines().filter(is_begun).count();
        match output.status.code() {
            // Lost bytes were in the page cache only.
            Some(0) => {}
            // Nothing was begun, or everything was done but the last step of `--fsync`.
            Some(1) if text.contains(": error syncing '") || self.is_refused(&text) => {
                let is_short = text.lines().filter(is_begun).count() <= LINES;
                assert!(is_short, "FERRY_SEED={seed}: {text}");
            }
            Some(1) => {
                let side = if self.is_source { "source" } else { "target" };
                let is_told = ["early: the", "early, because the"]
                    .iter()
                    .any(|start| text.contains(&format!("stopped {start} {side}'s device fails")));
                assert!(is_told && lines <= LINES, "FERRY_SEED={seed}: {text}");
            }
            code => panic!("FERRY_SEED={seed}: {code:?}: {text}"),
        }
        output
    }

    /// Returns true if a root could not be opened or examined.
    fn is_refused(&self, text: &str) -> bool {
        let roots = [&self.source, &self.target].map(|root| format!("'{}': ", root.display()));
        roots
            .iter()
            .any(|root| ["open", "stat"].iter().any(|call| text.contains(&format!("cannot {call} {root}"))))
    }

    /// Panics unless the same command ends equal. Bytes that the device had not taken yet may be lost although size and time are
    /// there. A copy leaves no mark of that, so content is compared after it.
    fn assert_continued(&self, is_copy: bool) {
        self.device.restore();
        let [source, target] = [&self.source, &self.target].map(|path| path.to_str().unwrap());
        let compared = is_copy.then_some("--checksum");
        let words: Vec<&str> = ["--delete"].into_iter().chain(compared).chain([source, target]).collect();
        let output = sync(self.place, &words);
        assert_eq!(output.status.code(), Some(0), "FERRY_SEED={}: {}", self.seed, said(&output));
        let mut found = contents(&self.target);
        found.retain(|path, _| !path.starts_with(".ferry-trash"));
        let wanted = contents(&self.source);
        let differs = |path: &&PathBuf| found.get(*path) != wanted.get(*path);
        let differing: Vec<_> = found
            .keys()
            .chain(wanted.keys())
            .filter(differs)
            .map(|path| (path, found.get(path).map(Vec::len), wanted.get(path).map(Vec::len)))
            .collect();
        assert!(differing.is_empty(), "FERRY_SEED={}: {differing:?}\n{}", self.seed, said(&output));
    }
}

/// Runs rounds with the source or the target on a device that is unplugged.
fn check(test: &str, (kind, words): (&str, &[&str]), count: u64, is_source: bool) {
    Device::within(test, |place, device| {
        let (new, old) = trees();
        let (mut rounds, mut failed) = (0, 0);
        for seed in seeds(count) {
            device.make(kind);
            let here = place.join(seed.to_string());
            fs::create_dir(&here).unwrap();
            let [source, target] = match is_source {
                true => [device.path().join("source"), here.join("target")],
                false => [here.join("source"), device.path().join("target")],
            };
            make::make(&new, &source).unwrap();
            make::make(&old, &target).unwrap();
            Command::new("sync").arg("-f").arg(device.path()).status().unwrap();
            // Nothing of the device is in memory.
            device.restore();
            let (wanted, older) = (contents(&source), contents(&target));
            device.restore();
            let round = Round { device, place: &here, source, target, is_source, seed };
            let output = round.run(words);
            rounds += 1;
            failed += u64::from(output.status.code() == Some(1));
            if is_source && words == SYNC {
                // The target is complete; what SOURCE has is not deleted because it could not be read.
                let found = contents(&round.target);
                for (path, old) in older.iter().filter(|(path, _)| wanted.contains_key(*path)) {
                    let here = found.get(path);
                    let is_whole = here == Some(old) || here == wanted.get(path);
                    assert!(is_whole, "FERRY_SEED={seed}: {}\n{}", path.display(), said(&output));
                }
            }
            round.assert_continued(words == COPY);
            ferry_tree::remove::remove(&here).unwrap();
        }
        assert!(failed > 0, "no run has failed");
        eprintln!("SEEDS: rounds={rounds} ended_early={failed}");
    });
}

const SYNC: &[&str] = &["sync", "--delete"];
const COPY: &[&str] = &["cp", "-aT"];

#[test]
fn a_target_on_ext4_is_unplugged() {
    check("sync::unplugged::a_target_on_ext4_is_unplugged", ("ext4", SYNC), 6, false);
}

#[test]
fn a_target_on_xfs_is_unplugged() {
    check("sync::unplugged::a_target_on_xfs_is_unplugged", ("xfs", SYNC), 6, false);
}

#[test]
fn a_target_on_btrfs_is_unplugged() {
    check("sync::unplugged::a_target_on_btrfs_is_unplugged", ("btrfs", SYNC), 4, false);
}

#[test]
fn a_source_on_ext4_is_unplugged() {
    check("sync::unplugged::a_source_on_ext4_is_unplugged", ("ext4", SYNC), 6, true);
}

#[test]
fn a_source_on_xfs_is_unplugged() {
    check("sync::unplugged::a_source_on_xfs_is_unplugged", ("xfs", SYNC), 6, true);
}

#[test]
fn the_source_of_a_copy_is_unplugged() {
    check("sync::unplugged::the_source_of_a_copy_is_unplugged", ("ext4", COPY), 4, true);
}

#[test]
fn the_target_of_a_copy_is_unplugged() {
    check("sync::unplugged::the_target_of_a_copy_is_unplugged", ("ext4", COPY), 8, false);
}

/// Regression: each of the sources on the device was asked, and reported.
#[test]
fn several_sources_on_one_device_are_unplugged() {
    const TEST: &str = "sync::unplugged::several_sources_on_one_device_are_unplugged";
    Device::within(TEST, |place, device| {
        device.make("ext4");
        let (new, _) = trees();
        let source = device.path().join("source");
        make::make(&new, &source).unwrap();
        make::make(&Tree::new().with("file", Node::seeded(10_000, 1)), &place.join("other")).unwrap();
        device.restore();
        let mut folders: Vec<PathBuf> =
            fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        fs::create_dir(place.join("target")).unwrap();
        let mut command = Command::new("timeout");
        command
            .args(["--signal=KILL", "60", FERRY, "cp", "-r", RATE])
            .args(&folders)
            .args(["other", "target"]);
        let run = command.current_dir(place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        device.cut();
        let output = run.wait_with_output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(contents(&place.join("other")), contents(&place.join("target/other")), "{text}");
        assert!(text.contains("not every source was copied to its end"), "{text}");
        let lines = text.lines().filter(|line| line.starts_with("ferry cp: ")).count();
        assert!(lines <= LINES, "{text}");
    });
}

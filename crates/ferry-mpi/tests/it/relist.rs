//! Jobs that are killed while a folder is being listed, and that list it again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ferry_cluster::{Key, Line, Outcome, Record, State};

use crate::job::{copy, end_within, expect_equal, files, job, names, ranks, signal, turn};

/// Empty files in the folder: more than are listed before the first report.
const SMALL: usize = 8_000;
/// Files that are copied in ranges.
const LARGE: usize = 8;
/// Size of each of them.
const SIZE: usize = 1 << 20;
/// Kills after which none was at the right moment.
const ATTEMPTS: u32 = 20;

const OPTIONS: &[&str] = &["--range", "64K", "--lease", "16"];

fn make(source: &Path) {
    fs::create_dir(source).unwrap();
    for number in 0..SMALL {
        fs::write(source.join(format!("small{number}")), "").unwrap();
        if number % (SMALL / LARGE) == 0 {
            write(&source.join(format!("large{number}")), 1);
        }
    }
}

fn write(file: &Path, byte: u8) {
    fs::write(file, vec![byte; SIZE]).unwrap();
}

/// Returns true if a journal has an open listing, and a large file that has no name yet, but ranges that are done.
fn is_at_work(journal: &Path) -> bool {
    let journal = fs::read(journal).unwrap_or_default();
    let lines = journal.split_inclusive(|&byte| byte == b'\n').skip(1);
    let (mut is_listing, mut ranges) = (false, BTreeMap::new());
    for line in lines.map_while(|line| ferry_cluster::parse_line(line).ok()) {
        let Line::Record(record) = line else { continue };
        let Record { keys, report } = *record;
        assert!(report.folders.iter().all(|folder| folder.state != State::Listing), "there is one folder");
        for (key, outcome) in keys.into_iter().zip(report.outcomes) {
            match key {
                Key::Folder(_) => is_listing = outcome == Outcome::Listing,
                Key::Range(file, _) if outcome == Outcome::Done => *ranges.entry(file).or_insert(0) += 1,
                Key::Close(file) => {
                    ranges.remove(&file);
                }
                Key::Range(..)
                | Key::Files(_)
                | Key::Owner(_)
                | Key::Discard(_)
                | Key::Link(_)
                | Key::Finish(_) => {}
            }
        }
    }
    is_listing && ranges.values().any(|&ranges| ranges > 1)
}

/// Kills a copy while it lists the folder, and has copied some ranges.
fn kill_at_work(place: &Path) {
    let (source, target, journal) =
        (place.join("source"), place.join("target"), place.join(".target.ferry-mpi"));
    for _ in 0..ATTEMPTS {
        let options = [OPTIONS, &["--bwlimit", "8M"]].concat();
        let mut child = job(2, &options, &source, &target).spawn().unwrap();
        let since = Instant::now();
        while !is_at_work(&journal) && child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < Duration::from_secs(60), "nothing is copied");
            std::thread::sleep(Duration::from_millis(1));
        }
        for process in ranks(child.id()) {
            signal(process, "KILL");
        }
        end_within(child, Duration::from_secs(30));
        if is_at_work(&journal) {
            return;
        }
        fs::remove_file(&journal).ok();
        ferry_tree::remove::remove(&target).unwrap();
    }
    panic!("no kill was at the right moment");
}

fn parts(target: &Path) -> Vec<PathBuf> {
    let is_part = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().starts_with(".ferry-mpi-");
    files(target).into_iter().filter(is_part).collect()
}

/// Kills a copy, changes something, and runs the same command again.
fn expect_equal_after(change: impl Fn(&Path), may_leave: bool) {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make(&path("source"));
    kill_at_work(place.path());
    assert!(!parts(&path("target")).is_empty());
    change(place.path());
    copy(2, OPTIONS, &path("source"), &path("target"));
    for part in parts(&path("target")) {
        // It was not reported, so no range was copied to it, and the source's version gives it its name.
        assert!(may_leave && fs::metadata(&part).unwrap().len() == 0, "{part:?} is left");
        fs::remove_file(&part).unwrap();
    }
    expect_equal(&path("source"), &path("target"), "after the kill");
    assert_eq!(names(place.path()), ["source", "target"]);
}

#[test]
fn a_file_whose_part_is_missing_when_its_folder_is_listed_again_is_copied_from_its_beginning() {
    let remove = |part: &PathBuf| fs::remove_file(part).unwrap();
    expect_equal_after(|place| parts(&place.join("target")).iter().for_each(remove), false);
}

#[test]
fn a_file_that_was_changed_before_its_folder_is_listed_again_is_copied_from_its_beginning() {
    let change = |place: &Path| {
        for name in names(&place.join("source")).iter().filter(|name| name.starts_with("large")) {
            write(&place.join("source").join(name), 2);
        }
    };
    expect_equal_after(change, true);
}

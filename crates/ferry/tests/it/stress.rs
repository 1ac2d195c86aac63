//! Trees that are large in one direction, copied with few descriptors and little memory.
//!
//! `FERRY_STRESS=full` makes them as large as they were promised for: a million files, 300,000 folders, 5,000 levels.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ferry_tree::compare::{self, Options, Progress};
use ferry_tree::workload::{self, Workload};
use serde_json::Value;

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, text};

const DESCRIPTORS: u32 = 64;
const MEMORY_BYTES: u64 = 64 << 20;

/// A number, or the one that was promised.
fn size(usual: u64, full: u64) -> u64 {
    if std::env::var("FERRY_STRESS").is_ok_and(|value| value == "full") { full } else { usual }
}

/// Copies a tree with each backend and with many workers, and compares each copy.
fn check(what: &str, shape: &Workload, memory_bytes: u64) {
    let place = Filesystem::memory();
    let source = place.path().join("source");
    workload::make(shape, &source, 2).unwrap();
    for options in [&["--backend=uring"][..], &["--backend=posix"], &["--workers=16"]] {
        let target = place.path().join("target");
        let start = Instant::now();
        let statistics = copy(place.path(), options);
        let seconds = start.elapsed().as_secs_f64();
        let peak = statistics["peak_memory_bytes"].as_u64().unwrap();
        println!("{what}, {}: {seconds:.2} s, {:.1} MiB", options.join(" "), mebibytes(peak));
        assert!(peak < memory_bytes, "{what}, {options:?}: {:.1} MiB", mebibytes(peak));
        assert_same(&source, &target);
        ferry_tree::remove::remove(&target).unwrap();
    }
    ferry_tree::remove::remove(&source).unwrap();
}

fn mebibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap()) / 1024.0
}

/// Copies `source` to `target` with few descriptors; gives the statistics.
fn copy(place: &Path, options: &[&str]) -> Value {
    let script = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, FERRY, "cp", "-a", "--stats=json"]).args(options).args(["source", "target"]);
    let output = command.current_dir(place).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{options:?}: {}", said.lines().take(20).collect::<Vec<_>>().join("\n"));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_same(source: &Path, target: &Path) {
    let report = |difference| panic!("{difference}");
    let summary = compare::trees(source, target, &Options::all(), &Progress::new(), &report).unwrap();
    assert_eq!(summary.differences, 0);
}

/// So many empty files in so many folders.
fn files(folders: u64, each: u64) -> Workload {
    Workload { leaves_only: true, ..Workload::plain(folders, 1, each, 0, 1) }
}

#[test]
fn many_files_in_many_folders() {
    check("files in 1,000 folders", &files(size(100, 1000), size(100, 1000)), MEMORY_BYTES);
}

#[test]
fn many_files_in_one_folder() {
    check("files in one folder", &files(1, size(20_000, 1_000_000)), MEMORY_BYTES);
}

#[test]
fn many_folders_in_one() {
    check("folders in one", &Workload::plain(size(5_000, 300_000), 1, 0, 0, 1), MEMORY_BYTES);
}

#[test]
fn many_levels() {
    // Far more than a path may be long, and deep enough to overflow a stack if anything recursed.
    check("levels", &Workload::plain(1, size(2_500, 5_000), 1, 10, 1), MEMORY_BYTES);
}

#[test]
fn many_levels_of_many_folders() {
    check("a full tree", &Workload::plain(6, size(4, 7), 2, 100, 1), MEMORY_BYTES);
}

#[test]
fn many_hard_links() {
    // Each of them is remembered until the end.
    let shape = Workload { hard_link_percent: 70, ..files(size(50, 500), size(100, 600)) };
    check("hard links", &shape, size(MEMORY_BYTES, 4 * MEMORY_BYTES));
}

#[test]
fn more_names_than_a_file_may_have_where_it_goes() {
    /// What ext4 allows.
    const LINKS: u64 = 65_000;
    if size(0, 1) == 0 {
        // The same in a simulated world: `files_with_too_many_names_are_copied_again`.
        return;
    }
    within("stress::more_names_than_a_file_may_have_where_it_goes", "ext4", |ext4| {
        let source = ext4.path().parent().unwrap().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("0"), "text").unwrap();
        for index in 1..LINKS + 10 {
            std::fs::hard_link(source.join("0"), source.join(index.to_string())).unwrap();
        }
        let output =
            Command::new(FERRY).args(["cp", "-a"]).args([&source, &ext4.path().join("target")]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let options = Options { links: false, ..Options::all() };
        let report = |difference| panic!("{difference}");
        let target = ext4.path().join("target");
        compare::trees(&source, &target, &options, &Progress::new(), &report).unwrap();
    });
}

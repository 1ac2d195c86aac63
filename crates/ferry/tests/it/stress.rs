//! Large trees copied with few descriptors and little memory.
//!
//! Memory must not grow with the number of entries: a tree and one four times as large must have the same
//! peak memory except for noise. `FERRY_STRESS=full` copies one tree of the promised size instead: a million
//! files, 300,000 directories. Each copy is compared with its source.

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
/// Largest difference between equal runs: threads and blocks vary.
const NOISE_BYTES: u64 = 3 << 19;

const MOST_TRIES: usize = 3;

/// Every backend, with few and with many workers.
const RUNS: [&[&str]; 4] = [
    &["--backend=uring"],
    &["--backend=posix"],
    &["--backend=uring", "--workers=16"],
    &["--backend=posix", "--workers=16"],
];

fn is_full() -> bool {
    std::env::var("FERRY_STRESS").is_ok_and(|value| value == "full")
}

/// Copies a tree and one about four times as large, or one of full size.
fn check(what: &str, [small, large, full]: [Workload; 3]) {
    if is_full() {
        for peak in peaks(what, &full) {
            assert!(peak < MEMORY_BYTES, "{what}: {:.1} MiB", mebibytes(peak));
        }
        return;
    }
    let of_small = peaks(what, &small);
    let mut of_large = peaks(what, &large);
    // The number of threads that happen to start differs between runs: each set of options may have a quiet run.
    for _ in 1..MOST_TRIES {
        if of_small.iter().zip(&of_large).all(|(small, large)| is_same(*small, *large)) {
            break;
        }
        lower(&mut of_large, &peaks(what, &large));
    }
    for ((small, large), options) in of_small.into_iter().zip(of_large).zip(RUNS) {
        assert!(
            is_same(small, large),
            "{what}, {options:?}: {:.1} MiB, for four times as many {:.1} in the best of {MOST_TRIES} runs",
            mebibytes(small),
            mebibytes(large)
        );
    }
}

fn is_same(small: u64, large: u64) -> bool {
    large < small + NOISE_BYTES
}

/// Replaces each peak by a later one that is lower.
fn lower(peaks: &mut [u64], later: &[u64]) {
    for (peak, later) in peaks.iter_mut().zip(later) {
        *peak = (*peak).min(*later);
    }
}

/// Copies a tree with each set of options and compares; returns the peak memory in bytes.
fn peaks(what: &str, shape: &Workload) -> Vec<u64> {
    let place = Filesystem::memory();
    let source = place.path().join("source");
    workload::make(shape, &source, 2).unwrap();
    let entries = shape.folder_count() + shape.file_count();
    let run = |options: &&[&str]| {
        let start = Instant::now();
        let statistics = copy(place.path(), options);
        let seconds = start.elapsed().as_secs_f64();
        let peak = statistics["peak_memory_bytes"].as_u64().unwrap();
        println!(
            "{what}, {entries} entries, {}: {seconds:.2} s, {:.1} MiB",
            options.join(" "),
            mebibytes(peak)
        );
        let target = place.path().join("target");
        assert_same(&source, &target);
        ferry_tree::remove::remove(&target).unwrap();
        peak
    };
    let peaks = RUNS.iter().map(run).collect();
    ferry_tree::remove::remove(&source).unwrap();
    peaks
}

fn mebibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap()) / 1024.0
}

/// Copies `source` to `target` with few descriptors; returns the statistics.
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

fn files(folders: u64, each: u64) -> Workload {
    Workload { leaves_only: true, ..Workload::plain(folders, 1, each, 0, 1) }
}

#[test]
fn many_files_in_many_folders() {
    check("files in folders", [files(100, 100), files(400, 100), files(1000, 1000)]);
}

#[test]
fn many_files_in_one_folder() {
    check("files in one folder", [10_000, 40_000, 1_000_000].map(|count| files(1, count)));
}

#[test]
fn a_million_subfolders_are_not_a_million_jobs() {
    check("folders in one", [5_000, 20_000, 300_000].map(|count| Workload::plain(count, 1, 0, 0, 1)));
}

#[test]
fn many_levels() {
    // Longer than a path may be, and deep enough to overflow a stack by recursion. Each level is kept until
    // those below are done, so memory grows.
    for peak in peaks("levels", &Workload::plain(1, 5_000, 1, 10, 1)) {
        assert!(peak < MEMORY_BYTES, "{:.1} MiB", mebibytes(peak));
    }
}

#[test]
fn many_levels_of_many_folders() {
    check("a full tree", [4, 5, 7].map(|levels| Workload::plain(5, levels, 2, 100, 1)));
}

#[test]
fn many_hard_links() {
    // Files with several names are kept until the end.
    const BYTES_EACH: u64 = 512;
    let shape = |folders| Workload { hard_link_percent: 50, ..files(folders, 100) };
    let (few, many) = if is_full() { (1000, 4000) } else { (100, 400) };
    let linked = |folders: u64| folders * 100 / 4;
    let (small, large) = (peaks("hard links", &shape(few)), peaks("hard links", &shape(many)));
    for (small, large) in small.into_iter().zip(large) {
        let each = large.saturating_sub(small) / (linked(many) - linked(few));
        println!("hard links: {each} bytes for each file with several names");
        assert!(each < BYTES_EACH, "{each} bytes for each file with several names");
    }
}

#[test]
fn more_names_than_a_file_may_have_where_it_goes() {
    /// Maximum number of links on ext4.
    const LINKS: u64 = 65_000;
    within("stress::more_names_than_a_file_may_have_where_it_goes", "ext4", |ext4| {
        let (source, target) = (ext4.beside().join("source"), ext4.path().join("target"));
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("0"), "text").unwrap();
        for index in 1..LINKS + 10 {
            std::fs::hard_link(source.join("0"), source.join(index.to_string())).unwrap();
        }
        // The second pass copies onto existing targets.
        for _ in 0..2 {
            let mut command = Command::new(FERRY);
            let output = command.args(["cp", "-a", "-T"]).args([&source, &target]).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            let options = Options { links: false, ..Options::all() };
            let report = |difference| panic!("{difference}");
            compare::trees(&source, &target, &options, &Progress::new(), &report).unwrap();
        }
    });
}

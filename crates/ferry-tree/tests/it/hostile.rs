//! Comparisons survive entries that are unreadable, vanish, or change their type.

use crate::support::{Place, again_as_nobody, is_again, verify};
use ferry_tree::compare::{self, Options, Progress};
use ferry_tree::workload::{self, Workload};
use ferry_tree::{Node, Tree, make};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[test]
fn unreadable_paths_are_differences() {
    if !is_again() && rustix::process::geteuid().is_root() {
        return again_as_nobody("hostile::unreadable_paths_are_differences");
    }
    let place = Place::new();
    let tree =
        Tree::new().with("a/f", Node::file("x")).with("b/f", Node::file("x")).with("c", Node::file("y"));
    let locked = tree.clone().with("a", Node::directory().mode(0)).with("b/f", Node::file("x").mode(0));
    make::make(&tree, &place.join("source")).unwrap();
    make::make(&locked, &place.join("target")).unwrap();
    let (lines, summary) = verify(&place.join("source"), &place.join("target"), &Options::plain());
    let expect = [
        "'a': cannot open it in the target: Permission denied (os error 13)",
        "'b/f': cannot open it in the target: Permission denied (os error 13)",
    ];
    assert_eq!(lines, expect);
    assert_eq!((summary.entries, summary.differences), (5, 2));
}

#[test]
fn links_are_not_followed() {
    let place = Place::new();
    let outside = Tree::new().with("secret", Node::file("x"));
    make::make(&outside, &place.join("outside")).unwrap();
    make::make(&Tree::new().with("l", Node::symlink("../outside")), &place.join("source")).unwrap();
    make::make(&Tree::new().with("l", Node::symlink("../outside")), &place.join("target")).unwrap();
    fs::remove_dir_all(place.join("outside")).unwrap();
    let (lines, summary) = verify(&place.join("source"), &place.join("target"), &Options::plain());
    assert_eq!((lines, summary.entries), (Vec::new(), 2));
}

#[test]
fn a_root_that_is_not_there_is_an_error() {
    let place = Place::new();
    let progress = Progress::new();
    let outcome = compare::trees(place.path(), &place.join("none"), &Options::plain(), &progress, &|_| {});
    assert!(outcome.unwrap_err().to_string().ends_with("none': No such file or directory (os error 2)"));
}

#[test]
fn what_the_kernel_makes_up_is_read_to_its_end() {
    let place = Place::new();
    let (one, other) = (Path::new("/proc/version"), Path::new("/proc/filesystems"));
    let options = Options { mtime: false, ..Options::plain() };
    assert_eq!(verify(one, one, &options).0, Vec::<String>::new());
    let (lines, summary) = verify(one, other, &options);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("'.': content differs from byte 0 on"), "{lines:?}");
    assert_eq!(summary.files, 1);
    fs::write(place.join("empty"), "").unwrap();
    assert_eq!(verify(one, &place.join("empty"), &options).0, ["'.': content differs from byte 0 on"]);
    let [one, other] = [one, other].map(|path| ferry_tree::capture::capture(path).unwrap());
    assert_eq!(compare::snapshots(&one, &other, &options).len(), 1);
}

#[test]
fn a_terabyte_of_hole_takes_no_time() {
    let place = Place::new();
    let tree = Tree::new().with("f", Node::sparse(1 << 41, 1, [(0, 1 << 16), (1 << 40, 1 << 16)]));
    make::make(&tree, &place.join("source")).unwrap();
    make::make(&tree, &place.join("target")).unwrap();
    let start = Instant::now();
    let (lines, summary) = verify(&place.join("source"), &place.join("target"), &Options::plain());
    assert_eq!((lines, summary.bytes), (Vec::new(), 1 << 17));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn large_folders_are_shared_among_threads() {
    let place = Place::fast();
    let shape = Workload { hard_link_percent: 10, ..Workload::plain(3, 1, 3000, 10, 1) };
    workload::make(&shape, &place.join("source"), 4).unwrap();
    workload::make(&shape, &place.join("target"), 2).unwrap();
    let links = |index: &u32| fs::metadata(place.join(&format!("target/d1/f{index}"))).unwrap().nlink();
    let changed = (2001..).find(|index| links(index) == 1).unwrap();
    fs::write(place.join(&format!("target/d1/f{changed}")), "something").unwrap();
    fs::remove_file(place.join("target/d2/f2999")).unwrap();
    for threads in [0, 1, 7] {
        let options = Options { mtime: false, threads, ..Options::all() };
        let (lines, summary) = verify(&place.join("source"), &place.join("target"), &options);
        let expect = [
            &*format!("'d1/f{changed}': size is 10 bytes in the source, 9 in the target"),
            "'d2/f2999': missing in the target (regular file)",
        ];
        assert_eq!(lines, expect);
        assert_eq!(summary.entries, 4 + 4 * 3000 - 1);
    }
}

#[test]
fn entries_may_come_and_go() {
    let place = Place::fast();
    let shape = Workload::plain(4, 3, 4, 100, 1);
    workload::make(&shape, &place.join("source"), 2).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                workload::make(&shape, &place.join("target"), 1).unwrap();
                ferry_tree::remove::remove(&place.join("target")).unwrap();
            }
        });
        let mut runs = 0;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) {
            let progress = Progress::new();
            let options = Options { threads: 2, ..Options::all() };
            let target = place.join("target");
            // The whole target may be missing at this moment.
            let run = compare::trees(&place.join("source"), &target, &options, &progress, &|difference| {
                assert!(!difference.to_string().contains('\n'));
            });
            runs += u32::from(run.is_ok());
        }
        ended.store(true, Relaxed);
        assert!(runs > 0);
    });
}

#[test]
fn a_comparison_can_be_stopped() {
    let place = Place::fast();
    let shape = Workload::plain(4, 3, 4, 100, 1);
    workload::make(&shape, &place.join("source"), 2).unwrap();
    workload::make(&Workload { seed: 2, ..shape.clone() }, &place.join("target"), 2).unwrap();
    let (progress, told) = (Progress::new(), AtomicU64::new(0));
    let options = Options { threads: 2, ..Options::plain() };
    let summary = compare::trees(&place.join("source"), &place.join("target"), &options, &progress, &|_| {
        told.fetch_add(1, Relaxed);
        progress.stop();
    });
    let summary = summary.unwrap();
    assert!(summary.stopped && summary.differences < 10, "{summary:?}");
    assert_eq!(summary.differences, told.load(Relaxed));
}

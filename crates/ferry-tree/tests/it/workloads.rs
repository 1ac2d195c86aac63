//! Workloads have the promised shape and are reproducible.

use crate::support::{Place, verify};
use ferry_tree::attributes::EntryKind;
use ferry_tree::compare::Options;
use ferry_tree::workload::{self, Preset, Sizes, Workload};
use ferry_tree::{Snapshot, capture};
use std::collections::HashSet;

fn count(snapshot: &Snapshot, kind: EntryKind) -> usize {
    snapshot.entries.values().filter(|facts| facts.attributes.kind == kind).count()
}

#[test]
fn small_has_files_of_their_own_bytes() {
    let place = Place::fast();
    let made = workload::make(&Preset::Small.workload(1), &place.join("small"), 3).unwrap();
    assert_eq!((made.folders, made.files, made.bytes), (781, 3905, 3905 * 4096));
    let found = capture::capture(&place.join("small")).unwrap();
    assert_eq!((count(&found, EntryKind::Directory), count(&found, EntryKind::File)), (781, 3905));
    let hashes: HashSet<_> = found.entries.values().filter_map(|facts| facts.hash).collect();
    assert_eq!(hashes.len(), 3905);
}

#[test]
fn threads_do_not_change_a_tree() {
    let place = Place::fast();
    let shape = Workload { depth: 2, ..Preset::Mixed.workload(9) };
    let shape =
        Workload { sizes: Sizes::LogNormal { median: 4096, deviation_percent: 200, most: 1 << 20 }, ..shape };
    let one = workload::make(&shape, &place.join("one"), 1).unwrap();
    let many = workload::make(&shape, &place.join("many"), 8).unwrap();
    assert_eq!(one, many);
    assert!(one.symlinks > 0 && one.hard_links > 0);
    assert_eq!(one.files + one.symlinks + one.hard_links, shape.file_count());
    let options = Options { mtime: false, ..Options::all() };
    assert_eq!(verify(&place.join("one"), &place.join("many"), &options).0, Vec::<String>::new());
    let other = Workload { seed: 10, ..shape };
    workload::make(&other, &place.join("other"), 2).unwrap();
    assert!(!verify(&place.join("one"), &place.join("other"), &options).0.is_empty());
}

#[test]
fn empty_files_are_spread_over_folders() {
    let place = Place::new();
    let made = workload::make(&Preset::Empty { files: 10, folders: 3 }.workload(1), &place.join("empty"), 2);
    let made = made.unwrap();
    assert_eq!((made.folders, made.files, made.bytes), (4, 10, 0));
    let held = |name: &str| std::fs::read_dir(place.join("empty").join(name)).unwrap().count();
    assert_eq!((held("d0"), held("d1"), held("d2")), (4, 3, 3));
}

#[test]
fn failure_names_its_path() {
    let place = Place::new();
    std::fs::create_dir(place.join("there")).unwrap();
    let error = workload::make(&Preset::Small.workload(1), &place.join("there"), 2).unwrap_err();
    assert!(error.to_string().ends_with("there': File exists (os error 17)"), "{error}");
}

#[test]
fn making_ends_when_it_is_told_to() {
    let place = Place::new();
    let asked = std::sync::atomic::AtomicU64::new(0);
    let go_on = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 20;
    let error =
        workload::make_while(&Preset::Small.workload(1), &place.join("small"), 2, &go_on).unwrap_err();
    assert_eq!(error.errno, rustix::io::Errno::INTR);
    assert!(asked.into_inner() < 30);
}

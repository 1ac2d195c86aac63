//! A copy by GNU `cp -a` has no differences, on every kind of tree. Otherwise the judge is wrong, not the copier.

use crate::support::{self, Place, verify};
use ferry_tree::compare::{Options, snapshots};
use ferry_tree::random::{self, Knobs};
use ferry_tree::{capture, make, remove, workload};
use std::path::{Path, PathBuf};
use std::process::Command;

/// GNU cp as built by `cargo xtask gnu-cp`.
fn gnu() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("gnu-cp").join("cp");
    if !built.exists() {
        println!("SKIP: GNU cp is not at '{}': build it with `cargo xtask gnu-cp`", built.display());
        return None;
    }
    Some(built)
}

fn cp(gnu: &Path, source: &Path, target: &Path) {
    let output = Command::new(gnu).arg("-a").arg("--").arg(source).arg(target).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn check(source_place: &Place, target_place: &Place) {
    let Some(gnu) = gnu() else { return };
    let (here, there) = (support::knobs(source_place), support::knobs(target_place));
    let knobs = Knobs {
        user_xattrs: here.user_xattrs && there.user_xattrs,
        trusted_xattrs: here.trusted_xattrs && there.trusted_xattrs,
        acls: here.acls && there.acls,
        far_times: here.far_times && there.far_times,
        holes: here.holes && there.holes,
        ..here
    };
    let (source, target) = (source_place.join("source"), target_place.join("target"));
    for seed in 0..50 {
        println!("seed {seed}, {} to {}", source.display(), target.display());
        let tree = random::tree(seed, &knobs);
        make::make(&tree, &source).unwrap();
        cp(&gnu, &source, &target);
        let (lines, summary) = verify(&source, &target, &Options::all());
        assert_eq!(lines, Vec::<String>::new());
        assert_eq!(usize::try_from(summary.entries).unwrap(), tree.count());
        let (before, after) = (capture::capture(&source).unwrap(), capture::capture(&target).unwrap());
        assert_eq!(snapshots(&before, &after, &Options::all()), []);
        remove::remove(&source).unwrap();
        remove::remove(&target).unwrap();
    }
}

#[test]
fn random_trees_are_equal_on_one_filesystem() {
    Place::everywhere().iter().for_each(|place| check(place, place));
}

#[test]
fn random_trees_are_equal_across_filesystems() {
    let places = Place::everywhere();
    if let [one, other] = places.as_slice() {
        check(one, other);
        check(other, one);
    } else {
        println!("SKIP: there is only one filesystem");
    }
}

#[test]
fn workloads_are_equal() {
    let Some(gnu) = gnu() else { return };
    let place = Place::new();
    let shape = workload::Workload { seed: 3, ..workload::Preset::Mixed.workload(0) };
    let shape = workload::Workload { depth: 3, ..shape };
    workload::make(&shape, &place.join("source"), 4).unwrap();
    cp(&gnu, &place.join("source"), &place.join("target"));
    let (lines, summary) = verify(&place.join("source"), &place.join("target"), &Options::all());
    assert_eq!(lines, Vec::<String>::new());
    assert_eq!(summary.entries, shape.folder_count() + shape.file_count());
}

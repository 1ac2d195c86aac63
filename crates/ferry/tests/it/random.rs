//! Random trees copied by ferry and by GNU cp: same copies, messages and exit codes, on every filesystem,
//! with both backends, as root, as nobody and in a user namespace.
//!
//! `FERRY_SEEDS` multiplies the number of seeds. `FERRY_SEED` runs a single seed, as printed on failure.

mod copies;
pub(crate) mod filesystem;
mod overlay;

use ferry_tree::compare::{Holes, Options};
use ferry_tree::random::{Knobs, tree};

use self::copies::{Copies, Variant, Whom};
use self::filesystem::Filesystem;
use crate::scene::{gnu, is_root, scaled, skip};

/// Usual sets of options, and the attributes to compare.
fn variants() -> Vec<Variant> {
    let kept = Options { threads: 1, holes: Holes::Same, ..Options::all() };
    let made = Options { mtime: false, ..kept.clone() };
    vec![
        Variant { options: "-a", compared: kept.clone(), keeps_all: true },
        Variant { options: "-r", compared: made.clone(), keeps_all: false },
        Variant { options: "-rp", compared: kept.clone(), keeps_all: false },
        Variant { options: "-rL", compared: made.clone(), keeps_all: false },
        Variant { options: "-al", compared: kept.clone(), keeps_all: true },
        Variant {
            options: "-a --sparse=always --reflink=never",
            compared: holes_ignored(kept),
            keeps_all: true,
        },
        Variant { options: "-r --no-preserve=mode --preserve=links", compared: made, keeps_all: false },
    ]
}

fn holes_ignored(options: Options) -> Options {
    Options { holes: Holes::Ignore, ..options }
}

fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("FERRY_SEED") {
        Some(seed) => vec![seed],
        None => (0..scaled(count)).collect(),
    }
}

/// Features that a filesystem supports; prints SKIP for the others.
fn possible_in(filesystem: &Filesystem) -> Knobs {
    let knobs = Knobs::possible_in(filesystem.path());
    for lacking in knobs.without() {
        skip::<()>(&format!("no {lacking} on {}", filesystem.kind()));
    }
    knobs
}

/// Copies random trees on one filesystem with each variant.
fn check(filesystem: &Filesystem, whom: Whom, count: u64) {
    let Some(gnu) = gnu() else { return };
    let all = Knobs { entries: 40, ..possible_in(filesystem) };
    for seed in seeds(count) {
        let knobs = whom.knobs(seed, &all);
        let copies = Copies::new(filesystem, &gnu, whom, seed);
        copies.make_source(&tree(seed, &knobs));
        for variant in variants() {
            copies.compare(&variant, None);
        }
    }
}

/// Copies random trees onto others on one filesystem.
fn check_over(filesystem: &Filesystem, count: u64) {
    let Some(gnu) = gnu() else { return };
    let knobs = Knobs { entries: 30, ..possible_in(filesystem) };
    let options = [
        "-a",
        "-r",
        "-rf",
        "-rn",
        "-ru",
        "-au",
        "-a --remove-destination",
        "-al",
        "-alf",
        "-aln",
        "-d",
        "-rL",
        "-rp --preserve=links",
    ];
    for seed in seeds(count) {
        let copies = Copies::new(filesystem, &gnu, Whom::Root, seed);
        let source = tree(seed, &knobs);
        let existing = overlay::over(&source, seed);
        copies.make_source(&source);
        for options in options {
            let compared = Options { mtime: false, threads: 1, holes: Holes::Same, ..Options::all() };
            copies.compare(&Variant { options, compared, keeps_all: false }, Some(&existing));
        }
    }
}

#[test]
fn on_tmpfs() {
    if is_root() {
        filesystem::within("random::on_tmpfs", "tmpfs", |tmpfs| check(tmpfs, Whom::Root, 6));
    } else {
        check(&Filesystem::memory(), Whom::Myself, 6);
    }
}

#[test]
fn on_ext4() {
    filesystem::within("random::on_ext4", "ext4", |ext4| check(ext4, Whom::Root, 6));
}

#[test]
fn on_xfs() {
    filesystem::within("random::on_xfs", "xfs", |xfs| check(xfs, Whom::Root, 5));
}

#[test]
fn on_btrfs() {
    filesystem::within("random::on_btrfs", "btrfs", |btrfs| check(btrfs, Whom::Root, 5));
}

#[test]
fn as_nobody() {
    if is_root() || skip::<()>("becoming nobody needs root").is_some() {
        check(&Filesystem::memory(), Whom::Nobody, 5);
    }
}

#[test]
fn as_nobody_on_ext4() {
    filesystem::within("random::as_nobody_on_ext4", "ext4", |ext4| check(ext4, Whom::Nobody, 3));
}

#[test]
fn as_nobody_on_xfs() {
    filesystem::within("random::as_nobody_on_xfs", "xfs", |xfs| check(xfs, Whom::Nobody, 3));
}

#[test]
fn as_nobody_on_btrfs() {
    filesystem::within("random::as_nobody_on_btrfs", "btrfs", |btrfs| check(btrfs, Whom::Nobody, 3));
}

/// Runs [`check`] in a user namespace.
fn check_in_a_namespace(filesystem: &Filesystem, count: u64) {
    if Whom::Namespace.is_possible() || skip::<()>("user namespaces are not allowed").is_some() {
        check(filesystem, Whom::Namespace, count);
    }
}

#[test]
fn in_a_user_namespace() {
    check_in_a_namespace(&Filesystem::memory(), 5);
}

#[test]
fn in_a_user_namespace_on_ext4() {
    let test = "random::in_a_user_namespace_on_ext4";
    filesystem::within(test, "ext4", |ext4| check_in_a_namespace(ext4, 3));
}

#[test]
fn in_a_user_namespace_on_xfs() {
    let test = "random::in_a_user_namespace_on_xfs";
    filesystem::within(test, "xfs", |xfs| check_in_a_namespace(xfs, 3));
}

#[test]
fn in_a_user_namespace_on_btrfs() {
    let test = "random::in_a_user_namespace_on_btrfs";
    filesystem::within(test, "btrfs", |btrfs| check_in_a_namespace(btrfs, 3));
}

#[test]
fn over_other_trees() {
    if is_root() || skip::<()>("trees of all kinds need root").is_some() {
        check_over(&Filesystem::memory(), 6);
    }
}

#[test]
fn over_other_trees_on_ext4() {
    filesystem::within("random::over_other_trees_on_ext4", "ext4", |ext4| check_over(ext4, 3));
}

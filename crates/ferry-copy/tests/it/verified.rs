//! `--verify`: small files share flushes of their filesystem, and each is named whose bytes do not reach it.

use std::cell::Cell;

use ferry_copy::{Failure, FailureKind, Options, Reflink, Verb};
use ferry_io::sim::{Fault, Settings, World, differences};
use ferry_io::{Errno, Operation};

use crate::simulation::{EXT4, world};
use crate::told::{Outcome, archive, copy, for_seeds, is_one_seed};

/// Small files of a run.
const SMALL: usize = 200;
/// Bytes of a block that holds any of them.
const LARGE: usize = 16 << 10;

/// Copies small files, and reads them back past the page cache.
fn verified(seed: u64, block_size: usize, change: impl FnOnce(&mut Settings)) -> (World, Outcome) {
    let (world, mut io) = world(seed);
    (io.block_size, io.blocks) = (block_size, 64);
    world.folder("source");
    for folder in 0..10 {
        world.folder(format!("source/{folder}"));
    }
    for number in 0..SMALL {
        world.file(format!("source/{}/{number}", number % 10), &[7; 16 << 10][..1 + number * 80]);
    }
    world.change(|settings| {
        (settings.opens_direct, settings.magic, settings.descriptors) = (true, Some(EXT4), 4000);
        settings.keeps_history = true;
        change(settings);
    });
    let verified = Options { verify: true, atomic: true, reflink: Reflink::Never, ..archive() };
    let outcome = copy(&world, &verified, &io);
    (world, outcome)
}

#[test]
fn small_files_share_flushes() {
    let (files, flushes) = (Cell::new(0), Cell::new(0));
    for_seeds(30, |seed| {
        let (world, outcome) = verified(seed, LARGE, |_| {});
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(differences(&world.model("source"), &world.model("target")), Vec::<String>::new());
        let syncs = world.history().iter().filter(|call| call.contains(" sync ")).count();
        assert!((1..SMALL).contains(&syncs), "{syncs} flushes for {SMALL} files");
        files.set(files.get() + SMALL);
        flushes.set(flushes.get() + syncs);
    });
    assert!(is_one_seed() || flushes.get() < files.get() / 3, "{flushes:?} flushes for {files:?} files");
}

#[test]
fn reads_of_less_than_a_unit_are_repeated() {
    // Most files have several blocks, and the world cuts transfers short anywhere.
    for_seeds(30, |seed| {
        let (world, outcome) = verified(seed, 4096, |_| {});
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(differences(&world.model("source"), &world.model("target")), Vec::<String>::new());
    });
}

/// Each read of a block of one unit is cut short, most of them to less than the unit.
#[test]
fn a_file_of_which_no_unit_can_be_read_is_given_up() {
    for_seeds(10, |seed| {
        let (world, outcome) = verified(seed, 4096, |settings| settings.short_transfers = 1_000_000);
        let is_unverified = |failure: &Failure| matches!(failure.kind, FailureKind::Unverified);
        assert!(outcome.failures.iter().all(is_unverified), "{:?}", outcome.failures);
        let failed = outcome.failures.len();
        assert!(failed > 0, "ten reads in a row never failed");
        assert_eq!(world.model("target").len(), 11 + SMALL - failed, "a file that differs got its name");
    });
}

#[test]
fn after_a_flush_has_failed_each_file_of_it_is_synced_by_itself() {
    for_seeds(30, |seed| {
        let fails = |settings: &mut Settings| settings.faults.push(Fault::nth(Operation::Sync, 1, Errno::IO));
        let (world, outcome) = verified(seed, LARGE, fails);
        assert_eq!(world.struck().len(), 1, "no flush failed");
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(differences(&world.model("source"), &world.model("target")), Vec::<String>::new());
    });
}

#[test]
fn each_file_that_can_not_be_flushed_is_named() {
    for_seeds(30, |seed| {
        let fails = |settings: &mut Settings| settings.faults.push(Fault::always(Operation::Sync, Errno::IO));
        let (world, outcome) = verified(seed, LARGE, fails);
        let is_sync = |failure: &Failure| matches!(failure.kind, FailureKind::Io { verb: Verb::Sync, .. });
        assert!(outcome.failures.iter().all(is_sync));
        // While fewer than four files are verified, they share no flush.
        let failed = outcome.failures.len();
        assert!(failed > SMALL / 2, "{failed}");
        assert_eq!(
            world.model("target").len(),
            11 + SMALL - failed,
            "a file that was not verified got its name"
        );
    });
}

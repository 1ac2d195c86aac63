//! Whole jobs.

use std::collections::BTreeSet;

use ferry_cluster::{Coordinator, Settings, Stop, ToCoordinator, ToRank};
use ferry_tree::fill::SplitMix64;

use crate::job::{Ended, run};
use crate::model::{Copied, Model};

/// Size of the smallest range.
const RANGE: u64 = 100;

fn settings(seed: u64) -> Settings {
    let mut random = SplitMix64::new(seed ^ 0x5e77);
    Settings {
        lease_entries: 1 + random.below(30),
        lease_bytes: 1 + random.below(20 * RANGE),
        range_least: RANGE,
        range_most: RANGE + random.below(3 * RANGE),
        stripe: 1 + random.below(64),
        ..Settings::new(4)
    }
}

fn model(seed: u64) -> Model {
    Model::random(seed, 2 * RANGE)
}

#[test]
fn every_entry_is_copied_once_whatever_the_order_of_messages() {
    for seed in 0..400 {
        let (model, mut copied) = (model(seed), Copied::default());
        let ranks = 1 + u32::try_from(seed % 7).unwrap();
        let ended =
            run(&model, &mut copied, &mut Vec::new(), settings(seed), (ranks, seed, 0), (false, None));
        let Ended::Complete(totals) = ended else { panic!("seed {seed} was not killed") };
        copied.check(&model);
        assert!(copied.files.values().all(|&copies| copies == 1), "seed {seed}: a file was copied twice");
        assert!(
            copied.range_copies.values().all(|&copies| copies == 1),
            "seed {seed}: a range was copied twice"
        );
        assert!(copied.listed.values().all(|&times| times == 1), "seed {seed}: a folder was listed twice");
        assert_eq!(totals.files, copied.files.len() as u64, "seed {seed}");
    }
}

/// Kills a job again and again, and resumes it. Only what leases had done that were being performed is done twice.
#[test]
fn a_killed_job_repeats_only_leases_that_were_being_performed() {
    for seed in 0..300 {
        let (model, mut copied, mut journal) = (model(seed), Copied::default(), Vec::new());
        let mut random = SplitMix64::new(seed);
        let mut lost = BTreeSet::new();
        let mut kills = 0;
        loop {
            let ranks = 1 + u32::try_from(random.below(6)).unwrap();
            let after = (kills < 6).then(|| random.below(900));
            let parameters = (ranks, random.next_u64(), 0);
            match run(&model, &mut copied, &mut journal, settings(seed), parameters, (kills > 0, after)) {
                Ended::Complete(_) => break,
                Ended::Killed(unreported) => lost.extend(unreported),
            }
            kills += 1;
        }
        copied.check(&model);
        for (path, copies) in &copied.files {
            assert_eq!(*copies, 1, "seed {seed}: {path:?} was copied again although it was complete");
        }
        for ((path, start), copies) in &copied.range_copies {
            let is_repeated = *copies > 1;
            assert!(!is_repeated || lost.contains(path), "seed {seed}: {path:?} at {start} was reported");
        }
    }
}

#[test]
fn a_range_that_fails_ends_its_file_and_nothing_else() {
    for seed in 0..200 {
        let (model, mut copied) = (model(seed), Copied::default());
        let ended = run(&model, &mut copied, &mut Vec::new(), settings(seed), (3, seed, 40), (false, None));
        assert!(matches!(ended, Ended::Complete(_)), "seed {seed}");
        copied.check(&model);
    }
}

#[test]
fn a_full_filesystem_on_one_rank_stops_them_all_and_nothing_is_granted_after() {
    let mut coordinator = Coordinator::new(Settings::new(3), 3);
    coordinator.begin();
    for rank in 0..3 {
        coordinator.take(rank, ToCoordinator::Want).unwrap();
    }
    assert!(matches!(coordinator.sends()[..], [(0, ToRank::Grant(_)), (0, ToRank::Split(1))]));
    coordinator.take(1, ToCoordinator::Stopped(Stop::NoSpace, Vec::new())).unwrap();
    let told: Vec<_> = (0..3).map(|rank| (rank, ToRank::Stop(Stop::NoSpace))).collect();
    assert_eq!(coordinator.sends(), told);
    coordinator.take(2, ToCoordinator::Want).unwrap();
    assert_eq!(coordinator.sends(), []);
    for rank in [0, 2] {
        assert!(!coordinator.is_over());
        coordinator.take(rank, ToCoordinator::Stopped(Stop::NoSpace, Vec::new())).unwrap();
    }
    assert!(coordinator.is_over() && !coordinator.is_complete());
}

#[test]
fn a_report_on_a_lease_of_another_rank_is_refused() {
    let mut coordinator = Coordinator::new(Settings::new(2), 2);
    coordinator.begin();
    coordinator.take(0, ToCoordinator::Want).unwrap();
    let sent = coordinator.sends();
    let [(0, ToRank::Grant(grant))] = &sent[..] else { panic!("{sent:?}") };
    let mut walk = ferry_cluster::Walk::new(grant.clone(), &Settings::new(2));
    let report = walk.report(ferry_cluster::Totals::default(), Vec::new());
    assert!(coordinator.take(1, ToCoordinator::Report(Box::new(report))).is_err());
}

#[test]
fn up_to_eight_ranks_have_larger_leases() {
    let sizes = [1, 3, 8, 9, 1000].map(|ranks| {
        let settings = Settings::new(ranks);
        (settings.lease_entries, settings.lease_bytes >> 20)
    });
    assert_eq!(sizes, [(32_768, 4_096), (10_240, 1_280), (4_096, 512), (2_048, 256), (2_048, 256)]);
}

#[test]
fn ranges_are_whole_stripes_and_as_large_as_the_bounds_allow() {
    let settings = Settings { stripe: 7 << 20, ..Settings::new(1000) };
    assert_eq!(settings.range(1 << 30), 70 << 20, "the smallest whole number of stripes from 64 MiB on");
    assert_eq!(settings.range(1 << 50), 259 << 20, "no more than a stripe above 256 MiB");
    let few = Settings { stripe: 1, ..Settings::new(2) };
    assert_eq!(few.range(1 << 30), 128 << 20, "four for each rank");
}

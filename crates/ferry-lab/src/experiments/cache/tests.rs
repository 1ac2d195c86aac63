use super::access::{Access, Plan, RANDOM, Step};
use super::ways::{Method, options, processor_time, take};
use super::{Cache, cells, lru, plans};
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::load::lay_out;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Run, Scale};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)], scale: Scale) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Cache.spec().parameters, &given, scale).unwrap()
}

fn all_cells(settings: &Settings) -> Vec<Cell> {
    let cells = plans(settings, 1).iter().flat_map(|plan| cells(plan, settings)).collect::<Vec<_>>();
    cells.into_iter().map(|(cell, _)| cell).collect()
}

#[test]
fn every_access_has_every_way() {
    let settings = settings(&[("access", "overwrite,zipf"), ("cache-sizes", "1M,2M")], Scale::Quick);
    let cells = all_cells(&settings);
    let with_base = |cell: &Cell| format!("{} by {}", cell.name, cell.base.clone().unwrap_or_default());
    assert_eq!(
        cells.iter().map(with_base).collect::<Vec<_>>(),
        [
            "overwrite/device by ",
            "overwrite/page-cache by overwrite/device",
            "overwrite/one-at-a-time by overwrite/device",
            "overwrite/own-cache/1M by overwrite/device",
            "overwrite/own-cache/2M by overwrite/device",
            "zipf/one-at-a-time by ",
            "zipf/page-cache by zipf/one-at-a-time",
            "zipf/own-cache/1M by zipf/one-at-a-time",
            "zipf/own-cache/2M by zipf/one-at-a-time",
            "zipf/lru/1M by ",
            "zipf/lru/2M by ",
        ]
    );
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let needs = Cache.needs(&settings(&[], Scale::Default)).unwrap();
    assert_eq!(needs, [Need::Space { bytes: 512 << 20, entries: 1 }, Need::DirectIo]);
    let refused =
        |given: &[(&str, &str)]| Cache.needs(&settings(given, Scale::Default)).unwrap_err().to_string();
    let odd = "'--file-size' and '--cache-sizes' must be in multiples of 16K";
    assert_eq!(refused(&[("file-size", "1050000")]), odd);
    assert_eq!(refused(&[("cache-sizes", "1M,500000")]), odd);
    let odd = "'--file-size' must be in multiples of '--block-size', and that of 4K";
    assert_eq!(refused(&[("block-size", "5000")]), odd);
    assert_eq!(refused(&[("file-size", "1M"), ("block-size", "2M")]), odd);
}

#[test]
fn requests_are_the_same_for_the_same_round() {
    for (name, access) in Access::ALL {
        let plan = Plan::new(access, 4 << 20, 1 << 20, 1000, 7);
        let of = |round| plan.steps(round).collect::<Vec<Step>>();
        assert_eq!((Access::named(name), of(1) == of(1)), (Some(access), true));
        assert_eq!(of(1) == of(2), access.is_sequential(), "{name}");
        let count = if access.is_sequential() { 4 } else { 1000 };
        assert_eq!(of(1).len(), count);
        assert!(of(1).iter().all(|step| step.at + plan.size <= 4 << 20 && step.at % plan.size == 0));
        let writes = of(1).iter().filter(|step| step.writes).count();
        match access {
            Access::Overwrite => assert_eq!(writes, count),
            Access::Mixed => assert!((250..350).contains(&writes), "{writes}"),
            Access::Sequential | Access::Random | Access::Zipf => assert_eq!(writes, 0),
        }
    }
}

#[test]
fn the_most_wanted_place_is_wanted_twice_as_often_as_the_next() {
    let plan = Plan::new(Access::Zipf, 4 << 20, 1 << 20, 100_000, 7);
    let mut counts = std::collections::HashMap::new();
    plan.steps(0).for_each(|step| *counts.entry(step.at).or_insert(0) += 1);
    let mut counts: Vec<i32> = counts.into_values().collect();
    counts.sort_unstable_by_key(|count| -count);
    // Of 1,024 places, whose inverses add up to 7.51.
    assert!((12_900..13_700).contains(&counts[0]), "{counts:?}");
    assert!((6_300..7_000).contains(&counts[1]), "{counts:?}");
}

#[test]
fn lru_finds_what_was_used_of_late() {
    let ratio = |places, at: &[(u64, bool)]| {
        let steps = at.iter().map(|&(at, writes)| Step { at, writes });
        lru::hit_ratio(places, steps)
    };
    let reads: Vec<_> = [1, 2, 3, 1, 2, 3].map(|at| (at, false)).to_vec();
    assert_eq!((ratio(3, &reads), ratio(2, &reads)), (0.5, 0.0));
    let again: Vec<_> = [1, 2, 1, 3, 1, 2].map(|at| (at, false)).to_vec();
    assert_eq!(ratio(2, &again), 2.0 / 6.0, "2 has left");
    assert_eq!(ratio(2, &[(1, true), (1, false)]), 1.0, "what is written is there");
    assert_eq!(ratio(2, &[]), 0.0);
}

#[test]
fn options_are_within_their_limits() {
    for (_, access) in Access::ALL {
        for bytes in [1 << 18, 8 << 20, 4 << 30] {
            let options = options(access, bytes);
            assert_eq!((options.blocks * options.block_bytes) as u64, bytes);
            assert!(options.blocks <= 1 << 20 && (1..=128).contains(&options.request_blocks));
            assert!(options.request_blocks.max(options.ahead_blocks) <= options.blocks / 4);
        }
    }
}

#[test]
fn each_way_makes_its_requests() {
    let place = tempfile::tempdir_in(".").unwrap();
    let (file, stop) = (place.path().join("file"), Stop::on_signals().unwrap());
    if !crate::needs::has_direct_io(place.path()) {
        eprintln!("SKIP: no direct I/O here");
        return;
    }
    let size = 2 << 20;
    lay_out(&file, size, 1, &stop).unwrap();
    let before = std::fs::read(&file).unwrap();
    let mut written = vec![0; 1 << 18];
    ferry_tree::fill::fill(9, 0, &mut written);
    for (_, access) in Access::ALL {
        let plan = Plan::new(access, size, 1 << 18, 300, 3);
        for way in [Method::PageCache, Method::OneAtATime, Method::OwnCache(1 << 20), Method::Device(4)] {
            // The device's own speed is measured for sequential access only.
            if matches!(way, Method::Device(_)) && !access.is_sequential() {
                continue;
            }
            std::fs::write(&file, &before).unwrap();
            let found = take(way, &plan, &file, 9, &stop).unwrap();
            let is = |name: &str| found.get(name).copied().unwrap_or(-1.0);
            assert!(is("throughput_b_s") > 0.0 && is("latency_ns_p99") > 0.0 && is("processor_s") > 0.0);
            let has_cache = matches!(way, Method::PageCache | Method::OwnCache(_));
            let has_ratio = has_cache && access != Access::Overwrite;
            assert_eq!((0.0..=1.0).contains(&is("hit_ratio")), has_ratio, "{way:?} {access:?}: {found:?}");
            if way != Method::PageCache {
                assert!(is("page_cache_b") <= 0.0, "{way:?} {access:?}: {found:?}");
            }
            let mut expected = before.clone();
            for step in plan.steps(9).filter(|step| step.writes) {
                let (at, size) = (usize::try_from(step.at).unwrap(), usize::try_from(plan.size).unwrap());
                expected[at..at + size].copy_from_slice(&written[..size]);
            }
            assert!(std::fs::read(&file).unwrap() == expected, "{way:?} {access:?}");
        }
    }
    // The cache holds half of the file.
    let plan = Plan::new(Access::Zipf, size, 1 << 18, 3000, 3);
    let own = take(Method::OwnCache(1 << 20), &plan, &file, 0, &stop).unwrap()["hit_ratio"];
    let lru = lru::hit_ratio((1 << 20) / usize::try_from(RANDOM).unwrap(), plan.steps(0));
    assert!(own >= lru * 0.98 && own < 1.0, "{own} and LRU {lru}");
}

/// It filled a block for each request in flight while the clock ran: half of what it took, with few requests.
#[test]
fn memory_for_the_queue_is_made_before_the_clock_runs() {
    let place = tempfile::tempdir_in(".").unwrap();
    let (file, stop) = (place.path().join("file"), Stop::on_signals().unwrap());
    if !crate::needs::has_direct_io(place.path()) {
        eprintln!("SKIP: no direct I/O here");
        return;
    }
    lay_out(&file, 64 << 20, 1, &stop).unwrap();
    let mut memory = vec![0; 64 << 20];
    let before = processor_time();
    ferry_tree::fill::fill(1, 0, &mut memory);
    let fill = (processor_time() - before).as_secs_f64();
    for access in [Access::Sequential, Access::Overwrite] {
        let plan = Plan::new(access, 64 << 20, 1 << 20, 0, 1);
        let processor = take(Method::Device(64), &plan, &file, 1, &stop).unwrap()["processor_s"];
        assert!(processor < fill / 2.0, "{access:?}: {processor} s, and {fill} s fill the memory");
    }
}

/// A record with these throughputs and hit ratios.
fn taken(given: &[(&str, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    let settings = settings(&[("cache-sizes", "8M")], Scale::Default);
    record.measures = Cache.measures();
    record.parameters = settings.values().clone();
    record.cells = all_cells(&settings);
    for (name, figure) in given {
        let cell = record.cells.iter_mut().find(|cell| cell.name == *name).unwrap();
        for round in 0..5 {
            let figures = Figures::from([
                ("throughput_b_s".to_owned(), *figure),
                ("hit_ratio".to_owned(), figure / 1e9),
            ]);
            cell.runs.push(Run { round, figures, ..run.clone() });
        }
    }
    record
}

#[test]
fn goals_are_judged_by_the_device_and_by_lru() {
    let record = taken(&[
        ("sequential/device", 1e9),
        ("sequential/page-cache", 0.9e9),
        ("sequential/one-at-a-time", 0.5e9),
        ("sequential/own-cache/8M", 0.96e9),
        ("zipf/one-at-a-time", 0.1e9),
        ("zipf/own-cache/8M", 0.4e9),
        ("zipf/lru/8M", 0.5e9),
    ]);
    let verdicts = Cache.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("a cache of 8M, sequential reaches at least 0.95"), Outcome::Held);
    assert_eq!(outcome("is slower than the page cache (sequential)"), Outcome::Held);
    assert_eq!(outcome("at least the hit ratio of LRU"), Outcome::DidNotHold);
    assert_eq!(outcome("zipf is faster than O_DIRECT"), Outcome::Held);
    assert_eq!(outcome("mixed is faster than O_DIRECT"), Outcome::NotMeasured);
    let tables = Cache.tables(&record);
    let beside = tables.last().unwrap();
    assert_eq!(beside.rows, [["zipf/own-cache/8M", "0.40", "0.50", "0.80 (0.80-0.80)"]]);
    let titles: Vec<String> = Cache.plots(&record).into_iter().map(|plot| plot.title).collect();
    assert_eq!(titles, ["sequential: bytes", "zipf: bytes", "zipf: hit ratio"]);
}

#[test]
fn a_slow_queue_is_not_what_the_goal_is_held_against() {
    let judged = |own| {
        let given =
            [("sequential/device", 1e9), ("sequential/one-at-a-time", 2e9), ("sequential/own-cache/8M", own)];
        let verdicts = Cache.verdicts(&taken(&given));
        verdicts.iter().find(|verdict| verdict.finding.contains("reaches at least 0.95")).unwrap().outcome
    };
    assert_eq!((judged(1.5e9), judged(1.95e9)), (Outcome::DidNotHold, Outcome::Held));
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let settings = settings(&[], Scale::Default);
    every_verdict_goes_every_way(&Cache, all_cells(&settings), settings.values());
}

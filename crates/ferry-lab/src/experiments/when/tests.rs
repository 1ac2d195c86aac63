use std::path::Path;

use super::When;
use super::fixtures::{Group, Version, groups_in, within};
use super::held::Held;
use super::reader::{Reader, figures};
use crate::cache::State;
use crate::command::Stranger;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Run, Scale};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::verdict::Outcome;

#[test]
fn what_is_held_is_undone_however_it_ends() {
    let place = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        Held::make("a folder", "mkdir \"$1\"", "rmdir \"$1\"", &[place.path().join(name)]).unwrap()
    };
    let (dropped, undone) = (make("dropped"), make("undone"));
    assert!(place.path().join("dropped").is_dir() && place.path().join("undone").is_dir());
    drop(dropped);
    undone.undo().unwrap();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_made_or_undone_is_told() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("no/folder");
    let refused = Held::make("a folder", "mkdir \"$1\"", "rmdir \"$1\"", &[&folder]).unwrap_err().to_string();
    assert!(refused.starts_with("cannot make a folder: mkdir: "), "{refused}");
    let kept = Held::make("a folder", "true", "echo no >&2; false", &[&folder]).unwrap();
    assert_eq!(kept.undo().unwrap_err().to_string(), "a folder can't be removed: no");
}

#[test]
fn places_for_a_cgroup_are_found_in_both_versions() {
    let first = "30 20 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                 31 20 0:28 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n";
    let group = |path: &str, version| Group { folder: Path::new(path).to_owned(), version };
    let found = groups_in(first, "4:memory:/a/b\n7:blkio:/\n0::/\n", "memory");
    let memory = "/sys/fs/cgroup/memory";
    assert_eq!(found, [group(&format!("{memory}/a/b"), Version::First), group(memory, Version::First)]);
    let found = groups_in(first, "4:memory:/a/b\n7:blkio:/\n0::/\n", "blkio");
    assert_eq!(found, [group("/sys/fs/cgroup/blkio", Version::First)]);
    let second = "30 20 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    let found = groups_in(second, "0::/user.slice\n", "memory");
    let version = Version::Second;
    assert_eq!(found, [group("/sys/fs/cgroup/user.slice", version), group("/sys/fs/cgroup", version)]);
    assert_eq!(groups_in("", "", "memory"), []);
}

#[test]
fn a_group_of_version_2_hands_down_what_is_enabled() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("cgroup.subtree_control"), "cpu io\n").unwrap();
    let group = |version| Group { folder: place.path().to_owned(), version };
    assert!(group(Version::Second).hands_down("io") && !group(Version::Second).hands_down("memory"));
    assert!(group(Version::First).hands_down("memory"));
    let gone = Group { folder: place.path().join("none"), version: Version::First };
    assert!(!gone.hands_down("memory"));
}

#[test]
fn a_command_enters_its_cgroup_first() {
    let place = tempfile::tempdir().unwrap();
    let processes = place.path().join("cgroup.procs");
    std::fs::write(&processes, "").unwrap();
    let stop = Stop::on_signals().unwrap();
    let command = within(&processes, &Stranger::new("echo".as_ref(), &["{source}", "a b"]));
    let returned = command.run("/one".as_ref(), "/two".as_ref(), &stop).unwrap();
    assert_eq!(returned.printed, "/one a b\n");
    assert_eq!(std::fs::read_to_string(&processes).unwrap(), "0\n");
}

#[test]
fn a_reader_tells_what_each_read_took() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    std::fs::write(&path, vec![1; 1 << 16]).unwrap();
    let reader = match Reader::open(&path, 1) {
        Ok(reader) => reader,
        Err(why) => {
            assert!(why.starts_with("the reader can't read past the cache here: "), "{why}");
            eprintln!("SKIP: {why}");
            return;
        }
    };
    let work = || std::thread::sleep(std::time::Duration::from_millis(50));
    let ((), latencies) = reader.read_during(work).unwrap();
    // One a millisecond, those that came late as well.
    assert!(latencies.len() >= 50, "{latencies:?}");
    let figures = figures(latencies);
    assert!(figures["reads"] >= 50.0, "{figures:?}");
    assert!(figures["read_p50_s"] > 0.0 && figures["read_p50_s"] <= figures["read_p99_s"], "{figures:?}");
    assert!(Reader::open(place.path(), 1).is_err());
}

/// A record in which each route of a case took so long, twice.
fn taken(times: &[(&str, &str, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.measures = When.measures();
    record.cells.clear();
    for (case, route, seconds) in times {
        let mut cell = Cell::new(&[("case", (*case).into()), ("route", (*route).into())], State::Warm);
        for round in 0..6 {
            let names = ["returned_s", "durable_s", "read_p99_s", "tick_p99_s"];
            let mut figures: Figures = names.iter().map(|name| ((*name).to_owned(), *seconds)).collect();
            figures.insert("reads".to_owned(), 1000.0 + *seconds);
            cell.runs.push(Run { round, figures, ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn the_list_is_judged_by_the_figures() {
    let record = taken(&[
        ("buffered", "inline", 1.0),
        ("buffered", "ring", 1.5),
        ("buffered", "auto", 1.0),
        ("latency", "inline", 1.0),
        ("latency", "ring", 0.5),
        ("latency", "pool", 0.7),
        ("latency", "auto", 0.9),
        ("durable", "inline", 1.0),
        ("durable", "ring", 2.0),
    ]);
    let verdicts = When.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("no faster than the kernel"), Outcome::Held);
    assert_eq!(outcome("lowers latency"), Outcome::Held);
    assert_eq!(outcome("must be durable"), Outcome::DidNotHold);
    assert_eq!(outcome("between two disks"), Outcome::NotMeasured);
    assert_eq!(outcome("best route (buffered)"), Outcome::Held);
    assert_eq!(outcome("best route (latency)"), Outcome::DidNotHold);
    assert_eq!(When.tables(&record).len(), 3);
    assert_eq!(When.plots(&record).len(), 3);
}

/// Verdicts on the latency case with these 99th percentiles: without a copy, with plain calls, and on the ring.
fn latency(alone: f64, inline: f64, ring: f64) -> [(Outcome, String); 2] {
    let record = taken(&[
        ("latency", "inline", inline),
        ("latency", "ring", ring),
        ("latency", "pool", 0.7),
        ("latency", "alone", alone),
    ]);
    let verdicts = When.verdicts(&record);
    ["delays a reader", "lowers latency"].map(|part| {
        let found = verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap();
        (found.outcome, found.words.clone())
    })
}

#[test]
fn a_reader_is_compared_with_itself_alone() {
    let [blocked, helped] = latency(0.25, 1.0, 0.5);
    assert_eq!((blocked.0, helped.0), (Outcome::Held, Outcome::Held));
    assert_eq!(
        blocked.1,
        "the 99th percentile was 4.00 (4.00-4.00) times that without a copy (250 ms), with at least 1,000 reads a run"
    );
    assert_eq!(
        helped.1,
        "a reader's 99th percentile beside the copy on the ring was 0.50 (0.50-0.50) times that of plain calls, on \
         the pool 0.70 (0.70-0.70); it was 2.00 (2.00-2.00) times that without a copy"
    );
    let [blocked, helped] = latency(1.0, 1.0, 0.5);
    assert_eq!((blocked.0, helped.0), (Outcome::Unclear, Outcome::Unclear));
    assert!(helped.1.ends_with("; inline calls may not have blocked the reader at all"), "{}", helped.1);
    let [blocked, helped] = latency(2.0, 1.0, 1.5);
    assert_eq!((blocked.0, helped.0), (Outcome::DidNotHold, Outcome::DidNotHold));
}

#[test]
fn a_tick_is_compared_with_itself_alone() {
    let record = taken(&[
        ("beside-sync", "inline", 0.02),
        ("beside-sync", "ring", 0.001),
        ("beside-sync", "pool", 0.002),
        ("beside-sync", "alone", 0.0001),
        ("beside-read", "inline", 0.0001),
        ("beside-read", "ring", 0.00005),
        ("beside-read", "alone", 0.0001),
    ]);
    let verdicts = When.verdicts(&record);
    let find = |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap();
    let delayed = find("An fsync(2) by a plain call");
    assert_eq!(
        (delayed.outcome, delayed.words.as_str()),
        (
            Outcome::Held,
            "the 99th percentile of a tick's delay was 200.00 (200.00-200.00) times that alone (20.0 ms, alone 100 µs)"
        )
    );
    let helped = find("An fsync(2) on the ring");
    assert_eq!(
        (helped.outcome, helped.words.as_str()),
        (
            Outcome::Held,
            "the 99th percentile of a tick's delay on the ring was 0.050 (0.050-0.050) times that of plain calls, on \
             the pool 0.10 (0.10-0.10); it was 10.00 (10.00-10.00) times that alone"
        )
    );
    // Nothing was delayed, so nothing is known.
    assert_eq!(find("A long cold read by a plain call").outcome, Outcome::Unclear);
    let helped = find("A long cold read on the ring");
    assert_eq!(helped.outcome, Outcome::Unclear);
    assert!(helped.words.ends_with("; plain calls may not have delayed them at all"), "{}", helped.words);
}

#[test]
fn room_for_images_and_copies_is_needed() {
    let settings = Settings::new(When.spec().parameters, &[], Scale::Quick).unwrap();
    let needs = When.needs(&settings).unwrap();
    assert!(needs.iter().any(|need| matches!(need, Need::Space { bytes, .. } if *bytes > 256 << 20)));
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let alone = ["latency", "beside-read", "beside-sync"].map(|case| (case, "alone", 1.0));
    let mut cells = taken(&alone).cells;
    for case in super::CASES {
        cells.extend(taken(&super::ROUTES.map(|route| (*case, route, 1.0))).cells);
    }
    every_verdict_goes_every_way(&When, cells, &taken(&[]).parameters);
}

use std::time::Duration;

use super::{Disk, cell, loads};
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::load::{Load, RequestKind, lay_out};
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Figures, Record, Scale};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)], scale: Scale) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Disk.spec().parameters, &given, scale).unwrap()
}

#[test]
fn the_published_table_has_a_cell_for_each_figure() {
    for scale in [Scale::Default, Scale::Quick, Scale::AsPublished] {
        let cells: Vec<String> =
            loads(&settings(&[], scale), true).iter().map(|load| cell(load).name).collect();
        assert_eq!(
            cells,
            [
                "sequential/1M/1/read",
                "sequential/1M/1/write",
                "sequential/1M/1/mixed",
                "random/4K/1/read",
                "random/4K/1/write",
                "random/4K/1/mixed",
                "random/4K/64/read",
                "random/4K/64/write",
                "random/4K/64/mixed",
            ]
        );
    }
    let routes =
        |ring| loads(&settings(&[], Scale::Quick), ring).iter().map(Load::route_name).collect::<Vec<_>>();
    assert_eq!(routes(true)[5..7], ["inline", "ring"]);
    assert_eq!(routes(false)[5..7], ["inline", "pool"]);
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let needs = Disk.needs(&settings(&[], Scale::Default)).unwrap();
    assert_eq!(needs, [Need::Space { bytes: 1 << 30, entries: 1 }, Need::DirectIo]);
    let refused =
        |given: &[(&str, &str)]| Disk.needs(&settings(given, Scale::Default)).unwrap_err().to_string();
    assert_eq!(
        refused(&[("block-size", "5000")]),
        "'--block-size' must be a multiple of 4K, because direct I/O requires it"
    );
    assert_eq!(
        refused(&[("size", "1M"), ("block-size", "2M")]),
        "'--size' must be at least one '--block-size'"
    );
}

#[test]
fn requests_are_made_counted_and_timed() {
    let place = tempfile::tempdir().unwrap();
    let (file, stop) = (place.path().join("file"), Stop::on_signals().unwrap());
    lay_out(&file, 2 << 20, 1, &stop).unwrap();
    let before = std::fs::read(&file).unwrap();
    for (kind, depth, with_ring) in [
        (RequestKind::Read, 1, true),
        (RequestKind::Read, 8, true),
        (RequestKind::Mixed, 8, false),
        (RequestKind::Write, 1, true),
    ] {
        let load = Load {
            kind,
            is_random: depth > 1,
            block_bytes: 4096,
            depth,
            file_bytes: 2 << 20,
            lasts: Duration::from_millis(50),
            with_ring,
        };
        let found = match load.run(&file, 1, &stop) {
            Ok(found) => found,
            Err(why) => {
                eprintln!("SKIP {}: {why}", load.route_name());
                continue;
            }
        };
        assert!(found.requests_per_second > 0.0 && found.latency_ns_p99 >= found.latency_ns_p50);
        assert!((found.bytes_per_second / found.requests_per_second - 4096.0).abs() < 1e-6);
        assert_eq!(found.flush_seconds.is_some(), kind != RequestKind::Read);
        let after = std::fs::read(&file).unwrap();
        assert_eq!(after.len(), before.len());
        assert_eq!(after == before, kind == RequestKind::Read, "{kind:?}");
    }
}

/// A record with these throughputs, in the order of the published table.
fn taken(rates: [f64; 9]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.measures = Disk.measures();
    record.cells.clear();
    for (load, rate) in loads(&settings(&[], Scale::Default), true).iter().zip(rates) {
        let mut cell = cell(load);
        for round in 0..5 {
            let figures = Figures::from([("throughput_b_s".to_owned(), rate)]);
            cell.runs.push(crate::record::Run { round, figures, ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn the_published_figures_stand_beside() {
    let record = taken([782e6, 519e6, 585e6, 58.2e6, 107e6, 42.8e6, 479e6, 463e6, 850e6]);
    let table = &Disk.tables(&record)[1];
    assert_eq!(table.rows.len(), 9);
    assert_eq!(table.rows[3], ["random 4 KiB, depth 1, read", "58.2 MB/s", "", "29.1 MB/s", "2.00"]);
    let verdicts = Disk.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("less than half the throughput of sequential ones (read)"), Outcome::Held);
    assert_eq!(outcome("than sequential ones at depth 1 (read)"), Outcome::Held);
    assert_eq!(outcome("than sequential ones at depth 1 (mixed)"), Outcome::DidNotHold);
    assert_eq!(outcome("random writes of 4 KiB are faster"), Outcome::Held);
    assert_eq!(Disk.plots(&record).len(), 2);
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let settings = settings(&[], Scale::Default);
    let cells = loads(&settings, true).iter().map(cell).collect();
    every_verdict_goes_every_way(&Disk, cells, settings.values());
}

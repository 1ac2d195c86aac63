use super::{Syscalls, counts};
use crate::cache::State;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Run, Scale, Value};
use crate::settings::Settings;
use crate::table::not_measured;
use crate::verdict::Outcome;

/// A cell's mode, block and figures.
type Known<'a> = (&'a str, &'a str, &'a [(&'a str, f64)]);

/// A record of cells with the figures given, twice each.
fn taken(cells: &[Known<'_>]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.measures = Syscalls.measures();
    record.cells.clear();
    for (mode, block, figures) in cells {
        let parameters = [("mode", (*mode).into()), ("block", (*block).into())];
        let mut cell = Cell::new(&parameters, State::Warm).with("block_bytes", 4096_u64.into());
        for (name, number) in [("levels", 4), ("files", 3905), ("file_bytes", 1 << 20)] {
            cell = cell.with(name, Value::Number(number));
        }
        let figures: Figures = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        for round in 0..6 {
            cell.runs.push(Run { round, figures: figures.clone(), ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

fn outcome(record: &Record, part: &str) -> Outcome {
    let verdicts = Syscalls.verdicts(record);
    verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome
}

#[test]
fn figures_are_judged_as_the_document_says() {
    let one = [("ring_enters", 4104.0), ("traced_enters", 4104.0), ("enters_per_block", 2.004)];
    let record = taken(&[
        ("one", "4K", &one),
        ("one", "1M", &[("ring_enters", 52.0), ("traced_enters", 52.0)]),
        ("one-sqpoll", "4K", &[("ring_enters", 3900.0), ("traced_enters", 3900.0)]),
        ("many", "4K", &[("enters_per_block", 0.05)]),
        ("dfs", "4K", &[("enters_per_block", 0.1)]),
    ]);
    assert_eq!(outcome(&record, "need far fewer"), Outcome::Held);
    assert_eq!(outcome(&record, "two submissions"), Outcome::Held);
    assert_eq!(outcome(&record, "Fibers share submissions"), Outcome::Held);
    assert_eq!(outcome(&record, "about 80,000"), Outcome::Held);
    assert_eq!(outcome(&record, "number of system calls roughly the same (one"), Outcome::Held);
    assert_eq!(outcome(&record, "number of system calls roughly the same (many"), Outcome::NotMeasured);
    assert_eq!(outcome(&record, "counters equal"), Outcome::Held);
    let verdicts = Syscalls.verdicts(&record);
    let number = verdicts.iter().find(|verdict| verdict.finding.contains("about 80,000")).unwrap();
    assert_eq!(
        number.words,
        "dfs, two fibers a folder, takes 99,968 (99,968-99,968): 20.0 of 1,999,360 reads and writes share a call, 25.0 as \
         published; ferry cp with up to 64 requests in flight takes 49,984"
    );
}

#[test]
fn calls_of_dfs_are_scaled_from_a_tree_with_as_many_fibers_and_blocks_a_file_only() {
    let mut record = taken(&[("dfs", "4K", &[("enters_per_block", 0.5), ("ring_enters", 7810.0)])]);
    assert_eq!(outcome(&record, "about 80,000"), Outcome::DidNotHold);
    let row = |record: &Record| {
        let mut tables = Syscalls.tables(record).into_iter();
        tables.find(|table| table.title.starts_with("dfs, two fibers a folder")).unwrap().rows[0].clone()
    };
    assert_eq!(row(&record), ["4K", "7,810", "2", "-", "499,840"]);
    for (parameter, other, published) in [("levels", 2_u64, 4_u64), ("file_bytes", 65_536, 1 << 20)] {
        record.cells[0] = record.cells[0].clone().with(parameter, other.into());
        assert_eq!(outcome(&record, "about 80,000"), Outcome::NotMeasured, "{parameter}");
        assert_eq!(row(&record).last().unwrap(), "-", "{parameter}");
        record.cells[0] = record.cells[0].clone().with(parameter, published.into());
    }
}

#[test]
fn dfs_copies_the_published_tree_by_blocks_that_its_files_fill() {
    let subjects = |scale| {
        let settings = Settings::new(Syscalls.spec().parameters, &[], scale).unwrap();
        let found = super::program::subjects(&settings, "/ferry".as_ref());
        let names = found.iter().map(|(cell, _)| cell.name.clone()).collect::<Vec<_>>();
        let (cell, command) = &found[0];
        let words: Vec<_> = command.arguments.iter().map(|word| word.to_str().unwrap()).collect();
        (names, cell.number("files"), words.join(" "))
    };
    let words = "lab strategy dfs --stats --block-size 4096 --max-fibers 2 {source} {target}".to_owned();
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(subjects(Scale::Default), (of(&["dfs/4K", "dfs/16K", "dfs/64K"]), Some(3905), words.clone()));
    assert_eq!(subjects(Scale::AsPublished), (of(&["dfs/4K", "dfs/1M"]), Some(3905), words.clone()));
    assert_eq!(subjects(Scale::Quick), (of(&["dfs/4K", "dfs/64K"]), Some(155), words));
}

#[test]
fn a_counter_that_differs_is_told() {
    let record = taken(&[("one", "4K", &[("requests", 33.0), ("traced_requests", 34.0)])]);
    let verdicts = Syscalls.verdicts(&record);
    let last = verdicts.last().unwrap();
    assert_eq!(last.outcome, Outcome::DidNotHold);
    assert_eq!(last.words, "in one/4K requests is 33, traced_requests 34");
    let untraced = taken(&[("one", "4K", &[("requests", 33.0)])]);
    assert_eq!(outcome(&untraced, "counters equal"), Outcome::NotMeasured);
}

#[test]
fn what_the_program_printed_is_understood_or_refused() {
    let printed = "copied\n{\"submitted\":5,\"ring_upkeep\":1,\"ring_enters\":4,\"bytes\":7,\
                   \"operations_per_submission\":2.5,\"kernel_worker_handovers\":null}\n";
    let figures = counts::of_program(printed).unwrap();
    let names: Vec<&str> = figures.keys().map(String::as_str).collect();
    assert_eq!(names, ["bytes", "operations_per_submission", "requests", "ring_enters"]);
    assert!((figures["requests"] - 6.0).abs() < 1e-9);
    let refused = |text: &str| counts::of_program(text).unwrap_err().to_string();
    assert_eq!(refused("{\"submitted\":5}"), "its statistics lack 'ring_upkeep'");
    // As the documents' programs print them.
    let printed = "{\"submitted\":50,\"submissions\":20,\"ring_upkeep\":1,\"ring_enters\":4}";
    let figures = counts::of_program(printed).unwrap();
    let names: Vec<&str> = figures.keys().map(String::as_str).collect();
    assert_eq!(names, ["operations_per_submission", "requests", "ring_enters"]);
    assert!((figures["operations_per_submission"] - 2.5).abs() < 1e-9);
    assert!(refused("").starts_with("its statistics are not JSON"));
}

#[test]
fn a_ring_and_room_for_two_trees_are_needed() {
    let settings = Settings::new(Syscalls.spec().parameters, &[], Scale::Quick).unwrap();
    let needs = Syscalls.needs(&settings).unwrap();
    assert!(needs.contains(&Need::Ring));
    assert!(needs.iter().any(|need| matches!(need, Need::Space { bytes, .. } if *bytes > 16 << 20)));
}

#[test]
fn each_cell_with_runs_is_a_row_of_both_tables() {
    let mut record = taken(&[("one", "4K", &[("ring_enters", 4.0)]), ("auto", "4K", &[])]);
    record.cells[1].runs.clear();
    record.cells[1].missing = Some("it broke".to_owned());
    let tables = Syscalls.tables(&record);
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0].rows[0][..3], ["one/4K", "4", "-"]);
    assert_eq!(tables[0].rows.len(), 1);
    assert_eq!(not_measured(&record).as_deref(), Some("Not measured: auto/4K (it broke)."));
    assert_eq!(Syscalls.plots(&record).len(), 1);
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let mut cells = Vec::new();
    for mode in super::MODE_NAMES {
        cells.extend(taken(&[(mode, "4K", &[]), (mode, "1M", &[])]).cells);
    }
    every_verdict_goes_every_way(&Syscalls, cells, &taken(&[]).parameters);
}

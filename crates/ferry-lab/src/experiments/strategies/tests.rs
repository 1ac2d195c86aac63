use super::cells::{Plan, middle};
use super::{NAMES, Strategies};
use crate::cache::State;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Scale};
use crate::settings::Settings;
use crate::strategies::Strategy;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Strategies.spec().parameters, &given, Scale::Default).unwrap()
}

fn plan(files: &str, given: &[(&str, &str)]) -> Plan {
    Plan::new(&settings(given), "/ferry".as_ref(), files)
}

fn names(plan: &Plan) -> Vec<String> {
    plan.cells(State::Warm).into_iter().map(|cell| cell.name).collect()
}

#[test]
fn every_strategy_can_be_named() {
    assert_eq!(Strategy::ALL.map(|(name, _)| name), *NAMES);
    assert_eq!(settings(&[]).texts("strategies"), NAMES);
}

#[test]
fn blocks_and_depths_cross_in_the_middle() {
    let given =
        [("strategies", "read-write,reflink,ring-direct"), ("block-sizes", "4K,1M"), ("depths", "1,4,64")];
    let names = names(&plan("one", &given));
    assert_eq!(
        names,
        [
            "one/warm/read-write/4K",
            "one/warm/read-write/1M",
            "one/warm/reflink",
            "one/warm/ring-direct/4K/4",
            "one/warm/ring-direct/1M/1",
            "one/warm/ring-direct/1M/4",
            "one/warm/ring-direct/1M/64",
            "one/warm/cp",
            "one/warm/dd/4K",
            "one/warm/dd/1M",
        ]
    );
    let given_buffered = [&[("strategies", "ring-buffered")][..], &given[1..]].concat();
    let buffered = self::names(&plan("one", &given_buffered));
    let in_flight = ["4K/1", "4K/4", "4K/64", "1M/1", "1M/4", "1M/64"];
    assert_eq!(buffered[..6], in_flight.map(|name| format!("one/warm/ring-buffered/{name}")));
    let every = plan("one", &[&given[..], &[("every-pair", "yes")]].concat());
    assert_eq!(every.ways.len(), names.len() + 2);
    assert_eq!((middle(&[4, 1]), middle(&[64, 1, 8]), middle(&[])), (4, 8, 1));
}

#[test]
fn programs_are_compared_with_the_strategy_of_their_block() {
    let plan = plan("one", &[]);
    let base = |name: &str| {
        let cells = plan.cells(State::Cold);
        cells.into_iter().find(|cell| cell.name == name).unwrap().base
    };
    assert_eq!(base("one/cold/cp").as_deref(), Some("one/cold/read-write/128K"));
    assert_eq!(base("one/cold/dd/4M").as_deref(), Some("one/cold/read-write/4M"));
    assert_eq!(base("one/cold/reflink").as_deref(), Some("one/cold/read-write/128K"));
    assert_eq!(base("one/cold/read-write/4M"), None);
    let way = plan.ways.iter().find(|way| way.name == "ring-direct").unwrap();
    let words: Vec<&str> = way.command.arguments.iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(words.join(" "), "lab strategy ring-direct --block-size 4096 --depth 8 {source} {target}");
}

#[test]
fn many_files_are_taken_a_file_a_call() {
    let names = names(&plan("many", &[("strategies", "splice,ring-buffered"), ("depths", "1,8")]));
    assert_eq!(
        names,
        [
            "many/warm/splice/64K",
            "many/warm/ring-buffered/64K/1",
            "many/warm/ring-buffered/64K/8",
            "many/warm/cp"
        ]
    );
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let needs = Strategies.needs(&settings(&[("states", "cold")])).unwrap();
    assert!(needs.contains(&Need::DropCaches));
    assert!(needs.iter().any(|need| matches!(need, Need::Space { bytes, .. } if *bytes >= 256 << 20)));
    let refused = Strategies.needs(&settings(&[("size", "5000")])).unwrap_err();
    assert_eq!(refused.to_string(), "'--size' must be a multiple of 4K, because direct I/O requires it");
}

/// A record in which each way took so many seconds.
fn taken(times: &[(&str, &str, Option<u64>, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.cells.clear();
    record.parameters = settings(&[("block-sizes", "4K,1M,4M")]).values().clone();
    for (strategy, block, depth, seconds) in times {
        let mut parameters = vec![
            ("files", "one".into()),
            ("cache", "warm".into()),
            ("strategy", (*strategy).into()),
            ("block", (*block).into()),
        ];
        parameters.extend(depth.map(|depth| ("depth", depth.into())));
        let bytes = crate::settings::bytes(block).unwrap();
        let mut cell = Cell::new(&parameters, State::Warm).with("block_bytes", bytes.into());
        if matches!(*strategy, "dd" | "splice" | "copy-file-range") {
            cell.base = Some(format!("one/warm/read-write/{block}"));
        }
        for round in 0..5 {
            let figures = ["returned_s", "durable_s"].map(|name| (name.to_owned(), *seconds));
            cell.runs.push(crate::record::Run { round, figures: Figures::from(figures), ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn the_documents_findings_are_judged_by_the_figures() {
    let record = taken(&[
        ("read-write", "4K", None, 2.0),
        ("read-write", "1M", None, 1.0),
        ("read-write", "4M", None, 1.5),
        ("copy-file-range", "1M", None, 1.2),
        ("splice", "1M", None, 0.8),
        ("ring-buffered", "4K", Some(1), 2.0),
        ("ring-buffered", "4K", Some(64), 1.24),
        ("ring-buffered", "1M", Some(1), 2.0),
        ("ring-buffered", "1M", Some(8), 0.9),
        ("ring-buffered", "1M", Some(64), 0.8),
        ("ring-registered", "1M", Some(8), 0.99),
        ("dd", "4K", None, 2.1),
        ("dd", "1M", None, 1.3),
    ]);
    let verdicts = Strategies.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("copy_file_range copies one file"), Outcome::DidNotHold);
    assert_eq!(outcome("splice copies one file"), Outcome::Held);
    assert_eq!(outcome("sendfile copies one file"), Outcome::NotMeasured);
    assert_eq!(outcome("Registered buffers"), Outcome::DidNotHold);
    assert_eq!(outcome("Larger blocks help"), Outcome::Held);
    assert_eq!(outcome("gain nothing"), Outcome::DidNotHold);
    let summary =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().summary();
    assert_eq!(summary("ring-buffered: 64 blocks of 4K"), "holds (0.62; published 0.62)");
    assert_eq!(summary("ring-buffered: 64 blocks of 1M"), "holds, larger (0.40; published 0.62)");
    assert_eq!(outcome("ring-direct: 64 blocks"), Outcome::NotMeasured);
    assert_eq!(outcome("one/warm/dd/4K takes as long"), Outcome::Held);
    assert_eq!(outcome("one/warm/dd/1M takes as long"), Outcome::DidNotHold);
    let tables = Strategies.tables(&record);
    let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "One file of 128M, warm",
            "Each call beside read(2) and write(2) of the same block (one, warm)",
            "One block of one file in flight, and several",
            "Plain programs that make the same calls"
        ]
    );
    assert_eq!(
        tables[1].rows,
        [
            ["copy-file-range/1M", "1.20 (1.20-1.20)", "1.20 (1.20-1.20)"],
            ["splice/1M", "0.80 (0.80-0.80)", "0.80 (0.80-0.80)"]
        ]
    );
    let flow = ["warm/4K", "2.00 s (2.00-2.00)", "1.24 s (1.24-1.24)", "0.62 (0.62-0.62)", "0.62"];
    assert_eq!((tables[2].rows.len(), &tables[2].rows[0][..]), (2, &flow.map(str::to_owned)[..]));
    assert_eq!(tables[3].rows[1][4..], ["1.30", "no"]);
    assert_eq!(Strategies.plots(&record).len(), 8);
}

#[test]
fn a_program_agrees_only_if_all_of_the_interval_does() {
    let cells = plan("one", &[("strategies", "read-write"), ("block-sizes", "4K")]).cells(State::Warm);
    let mut record = Record { cells, parameters: settings(&[]).values().clone(), ..record() };
    let run = self::record().cells[0].runs[0].clone();
    for cell in &mut record.cells {
        let own = if cell.text("strategy") == "dd" { [0.4, 0.8, 1.0, 1.3, 2.5] } else { [1.0; 5] };
        for (round, seconds) in (0..).zip(own) {
            let figures = Figures::from([("returned_s".to_owned(), seconds)]);
            cell.runs.push(crate::record::Run { round, figures, ..run.clone() });
        }
    }
    let verdicts = Strategies.verdicts(&record);
    let found = verdicts.iter().find(|verdict| verdict.finding.starts_with("one/warm/dd/4K")).unwrap();
    assert_eq!(found.outcome, Outcome::Unclear, "{}", found.words);
    assert_eq!(
        Strategies.tables(&record)[1].rows.iter().find(|row| row[0].contains("/dd/")).unwrap()[5],
        "unclear"
    );
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let given = [("block-sizes", "4K,128K"), ("depths", "1,8")];
    let cells = ["one", "many"].map(|files| plan(files, &given).cells(State::Warm)).concat();
    every_verdict_goes_every_way(&Strategies, cells, settings(&given).values());
}

use std::collections::BTreeMap;

use super::read::{parse, read};
use super::store::{Store, json};
use super::{Better, Cell, Measure, Record, Run, SCHEMA, Scale, Value, Values};
use crate::cache::{Proof, State};
use crate::machine::Machine;
use crate::record::warning::{Warning, WarningKind};

/// A small record: `cp` three times, another twice as fast, a third missing.
pub(crate) fn record() -> Record {
    let run = |round: u64, seconds: f64| Run {
        round,
        started: "2026-08-01T12:00:00.000Z".to_owned(),
        figures: BTreeMap::from([("returned_s".to_owned(), seconds)]),
        proof: Some(Proof {
            holds: true,
            names_by: "openat2(RESOLVE_CACHED)".to_owned(),
            names: 16,
            names_in_memory: 16,
            data_by: "cachestat(2)".to_owned(),
            data_files: 16,
            data_bytes: 65_536,
            data_in_memory_bytes: 65_536,
        }),
    };
    let cell = |tool: &str| Cell::new(&[("tree", "small".into()), ("tool", tool.into())], State::Warm);
    let cp = Cell { runs: vec![run(0, 0.1), run(1, 0.2), run(2, 0.3)], ..cell("cp") };
    let fast = Cell { runs: vec![run(0, 0.05), run(1, 0.1), run(2, 0.15)], ..cell("ferry") }.against(&cp);
    let missing = Some("'rsync' is not found on the PATH".to_owned());
    let missing = Cell { missing, ..cell("rsync") }.against(&cp);
    Record {
        schema: SCHEMA,
        experiment: "copy".to_owned(),
        taken_by: "ferry 0.1.0".to_owned(),
        program: "0123456789abcdef".to_owned(),
        started: "2026-08-01T12:00:00.000Z".to_owned(),
        seed: 7,
        runs: 3,
        warm_ups: 1,
        scale: Scale::Default,
        complete: true,
        parameters: Values::from([
            ("trees".to_owned(), Value::Texts(vec!["small".to_owned()])),
            ("block-sizes".to_owned(), Value::Numbers(vec![4096])),
            ("max-fibers".to_owned(), 2_u64.into()),
        ]),
        settled: Values::from([("levels".to_owned(), Value::Numbers(vec![4]))]),
        machine: Machine::look("/".as_ref()),
        tools: BTreeMap::from([("cp".to_owned(), "cp (GNU coreutils) 9.1".to_owned())]),
        measures: vec![Measure::new("returned_s", "time until it returned", "s", Better::Lower)],
        cells: vec![cp, fast, missing],
        warnings: vec![Warning::note(WarningKind::Discard, "discards", "remount it")],
    }
}

/// A figure became its neighbour each time that a record was read and kept anew, as by `--resume`; found by fuzzing.
#[test]
fn figures_are_read_to_the_last_bit() {
    let mut record = record();
    record.cells[0].runs[0].figures.insert("returned_s".to_owned(), 2_451.022_845_820_011_8);
    assert_eq!(parse(&json(&record)), Ok(record));
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("record.json");
    let store = Store::new(Some(path.clone()), record());
    store.save().unwrap();
    store.save_durably().unwrap();
    assert_eq!(read(&path).unwrap(), store.record);
    let names: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["record.json"]);
}

#[test]
fn what_cannot_be_kept_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("folder");
    std::fs::create_dir(&path).unwrap();
    let error = Store::new(Some(path.clone()), record()).save().unwrap_err();
    assert!(error.to_string().ends_with("folder': Is a directory"), "{error}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_record_is_refused_in_a_line() {
    let refused = |text: &str| parse(text).unwrap_err();
    assert!(refused("{").starts_with("it is not JSON ("));
    assert_eq!(refused("{}"), "it is not a record of ferry lab: it has no schema version");
    assert_eq!(
        refused(r#"{"schema": 9}"#),
        "it is a record of version 9; this program knows versions up to 1"
    );
    assert_eq!(
        refused(r#"{"schema": 0}"#),
        "it is a record of version 0, older than the first published one, 1"
    );
    assert!(refused(r#"{"schema": 1}"#).starts_with("it is not a record of version 1 (missing field"));
    let two_lines = refused(r#"{"schema": 1, "war\nings\u001b[2J": 1}"#);
    assert!(two_lines.contains(r"unknown field `war\nings\u{1b}[2J`"), "{two_lines}");
    assert!(!two_lines.contains(char::is_control), "{two_lines}");
    let missing = read("/no/such/record".as_ref()).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read '/no/such/record': No such file or directory");
}

/// Taken when version 1 was published, and never to be changed: who has kept such a record can still read it.
#[test]
fn a_record_of_version_1_is_still_read() {
    let text = include_str!("tests/version-1.json");
    let record = parse(text).unwrap();
    let cell = record.cell("sequential/1M/1/write").unwrap();
    assert_eq!(cell.figures("throughput_b_s"), [3_390_806_232.550_902, 1_957_776_577.470_651_9]);
    assert_eq!((record.scale, record.seed, record.cells.len()), (Scale::Quick, 84_474, 2));
    assert!(!record.is_to_be_trusted() && record.warnings.len() == 3);
    // Nothing of it is lost when it is written again.
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&json(&record)), value(text));
}

#[test]
fn records_follow_the_published_schema() {
    let schema = include_str!("../../../../docs/record.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json(&record())).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{error} at {}", error.instance_path)).collect();
    assert_eq!(errors, Vec::<String>::new());
    for (field, wrong) in [("schema", serde_json::json!(2)), ("cells", serde_json::json!([{}]))] {
        let mut broken = value.clone();
        broken[field] = wrong;
        assert!(!validator.is_valid(&broken), "{field}");
    }
}

#[test]
fn cells_are_compared_round_by_round() {
    let record = record();
    let ratio = record.ratio_to_base(&record.cells[1], "returned_s").unwrap();
    assert!((ratio.middle - 0.5).abs() < 1e-9 && (ratio.high - 0.5).abs() < 1e-9);
    assert!(record.ratio_to_base(&record.cells[0], "returned_s").is_none());
    assert_eq!(record.find(&[("tree", "small"), ("tool", "ferry")]).unwrap().name, "small/ferry");
    assert!(record.cells[0].is_complete(3) && !record.cells[0].is_complete(4));
    assert!(record.cells[2].is_complete(4) && record.is_to_be_trusted());
}

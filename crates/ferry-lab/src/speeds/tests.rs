use std::collections::BTreeMap;

use super::Speeds;
use crate::cache::State;
use crate::machine::{Filesystem, Machine, Memory, Processor};
use crate::record::tests::record;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Cell, Failed, Record, Value, Values};

/// Copiers that are given with `--vs`, and what they print for `--version`.
const PEERS: &[(&str, &str)] =
    &[("cpz", "cpz 3.2.1"), ("rsync", "rsync  version 3.2.7  protocol version 31"), ("fcp", "")];

fn machine(filesystem: &str, in_memory: bool) -> Machine {
    let processor = Processor {
        model: "Intel(R) Xeon(R) Processor @ 2.10GHz".to_owned(),
        count: 2,
        usable: 2,
        virtualised: true,
        ..Processor::default()
    };
    let place = Filesystem { filesystem: filesystem.to_owned(), in_memory, ..Filesystem::default() };
    let memory = Memory { total_bytes: 25_200_000_000, ..Memory::default() };
    Machine { kernel: "6.18.0-1-amd64".to_owned(), kernel_version: String::new(), processor, memory, place }
}

/// A record of one tree: the median of seconds of each copier, six runs of each.
fn taken(place: (&str, bool), tree: &str, state: State, extent: &str, times: &[(&str, f64)]) -> Record {
    let known = record();
    let run = known.cells[0].runs[0].clone();
    let cell = |(index, (tool, seconds)): (usize, &(&str, f64))| {
        let parameters = [("tree", tree.into()), ("cache", state.name().into()), ("tool", (*tool).into())];
        let mut cell = Cell::new(&parameters, state);
        if tool.starts_with("limit-") {
            cell = cell.with("limit", (*tool).into());
        }
        if PEERS.iter().any(|(name, _)| name == tool) {
            cell = cell.with("command", (*tool).into());
        }
        for round in 0..6_u64 {
            let factor =
                [1.0, 0.98, 1.02, 1.0, 0.99, 1.01][(usize::try_from(round).unwrap() + 3 * index) % 6];
            let figures = BTreeMap::from([("returned_s".to_owned(), seconds * factor)]);
            cell.runs.push(crate::record::Run { round, figures, ..run.clone() });
        }
        cell
    };
    let versions = PEERS.iter().chain(&[("cp", "cp (GNU coreutils) 9.1")]);
    Record {
        runs: 6,
        parameters: Values::from([("copy-as".to_owned(), Value::Text(extent.to_owned()))]),
        machine: machine(place.0, place.1),
        tools: versions.map(|(name, words)| ((*name).to_owned(), (*words).to_owned())).collect(),
        cells: times.iter().enumerate().map(cell).collect(),
        warnings: Vec::new(),
        ..known
    }
}

/// A row that reaches its aims, one that misses both, one that is doubted, and one with neither peers nor a limit.
fn records() -> Vec<(String, Record)> {
    let ram = ("ext4", true);
    let small = [
        ("cp", 0.060),
        ("ferry", 0.030),
        ("ferry-ring", 0.040),
        ("cpz", 0.033),
        ("fcp", 0.036),
        ("rsync", 0.150),
        ("limit-read-write-2x4K", 0.029_5),
        ("limit-cached-2x4K", 0.031),
    ];
    let small = taken(ram, "small", State::Warm, "shared", &small);
    let mut three = taken(
        ram,
        "three",
        State::Warm,
        "shared",
        &[
            ("cp", 0.000_8),
            ("ferry", 0.001),
            ("cpz", 0.000_9),
            ("fcp", 0.001),
            ("limit-copy-range-1", 0.000_7),
        ],
    );
    let fcp = three.cells.iter_mut().find(|cell| cell.text("tool") == "fcp").unwrap();
    (fcp.missing, fcp.failed) = (Some("the copy differs".to_owned()), Some(Failed::Copy));
    fcp.runs.clear();
    let mut flat =
        taken(("xfs", false), "flat", State::Cold, "plain", &[("cp", 2.0), ("ferry", 0.5), ("cpz", 1.0)]);
    flat.warnings = vec![
        Warning::note(WarningKind::Noisy, "noisy", "more").about("flat/cold/ferry").distrusted(),
        Warning::note(WarningKind::Outliers, "one run", "none").about("flat/cold/cp"),
    ];
    let mut huge =
        taken(("btrfs", false), "huge:2048", State::Warm, "archive", &[("cp", 0.6), ("ferry", 0.601)]);
    let mut rcp = Cell { runs: Vec::new(), ..huge.cells[1].clone() }.with("command", "rcp".into());
    rcp.parameters.insert("tool".to_owned(), "rcp".into());
    rcp.missing = Some("'rcp' is not found on the PATH".to_owned());
    huge.cells.push(rcp);
    huge.started = "2026-08-03T07:00:00.000Z".to_owned();
    [("small", small), ("three", three), ("flat", flat), ("huge", huge)]
        .map(|(name, record)| (format!("{name}.json"), record))
        .to_vec()
}

#[test]
fn the_same_records_give_the_same_table_and_chart() {
    let speeds = Speeds::of(records()).unwrap();
    assert_eq!(speeds.markdown(), include_str!("tests/speeds.md"));
    assert_eq!(speeds.plot().file(), include_str!("tests/speeds.svg"));
    assert_eq!(Speeds::of(records()).unwrap().plot(), speeds.plot());
}

#[test]
fn the_text_below_the_table_has_at_most_ten_lines() {
    // Each copier fails in its own way in a third of the rows.
    let mut many: Vec<(String, Record)> = Vec::new();
    for (index, tree) in ["small", "wide", "large", "huge", "three", "flat", "mixed"].iter().enumerate() {
        let times: Vec<(&str, f64)> = ["cp", "ferry"]
            .into_iter()
            .chain(PEERS.iter().map(|(name, _)| *name))
            .map(|tool| (tool, 1.0))
            .collect();
        let mut record = taken(("ext4", true), tree, State::Warm, "shared", &times);
        for cell in record.cells.iter_mut().skip(2) {
            cell.failed = [None, Some(Failed::Run), Some(Failed::Copy)][index % 3];
            cell.missing = Some("why".to_owned());
        }
        record.warnings = vec![Warning::note(WarningKind::StolenTime, "stolen", "later").distrusted()];
        record.started = format!("2026-08-0{}T12:00:00.000Z", index + 1);
        many.push((format!("{index}"), record));
    }
    let markdown = Speeds::of(many).unwrap().markdown();
    let (table, text) = markdown.split_once("\n\n").unwrap();
    assert_eq!(table.lines().count(), 9);
    assert!(text.lines().count() <= 10, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 125), "{text}");
    let absent =
        "cpz (a copy was wrong; 2 rows), cpz (a run failed; 2 rows), cpz (not installed; 3 rows), fcp";
    assert!(text.replace('\n', " ").contains(absent), "{text}");
}

#[test]
fn cp_is_the_best_other_copier_where_no_other_is_faster() {
    let speeds = Speeds::of(records()).unwrap();
    let best: Vec<&str> = speeds.rows.iter().map(|row| row.best.name.as_str()).collect();
    assert_eq!(best, ["cpz", "cp", "cpz", "cp"]);
}

/// The error of these records after a change of the second.
fn refused(change: impl Fn(&mut Record)) -> String {
    let mut records = records();
    change(&mut records[1].1);
    Speeds::of(records).unwrap_err().to_string()
}

#[test]
fn records_that_do_not_belong_together_are_refused_in_a_line() {
    type Change = fn(&mut Record);
    let expected: [(&str, Change); 11] = [
        ("it is of another machine than 'small.json'", |record| record.machine.kernel = "6.19".to_owned()),
        ("it is of another machine than 'small.json'", |record| record.machine.memory.total_bytes = 1),
        ("it is of another build of ferry than 'small.json'", |record| record.program = "00".to_owned()),
        ("it is of another cp than 'small.json'", |record| drop(record.tools.remove("cp"))),
        ("it is not finished; continue with --resume", |record| record.complete = false),
        ("it is a record of 'lab ring', not of 'lab copy'", |record| record.experiment = "ring".to_owned()),
        ("it has no copies", |record| record.cells.clear()),
        ("cp has no figures for three/warm", |record| record.cells[0].runs.clear()),
        ("ferry has no figures for three/warm", |record| record.cells[1].missing = Some("why".to_owned())),
        ("cp has 4 runs of three/warm, too few for a claim", |record| {
            record.cells[0].runs.truncate(4);
        }),
        ("traced; measure again", |record| {
            let recorded = Warning::note(WarningKind::Recorded, "traced", "measure again");
            record.warnings = vec![recorded.distrusted()];
        }),
    ];
    for (why, change) in expected {
        assert_eq!(refused(change), format!("cannot use 'three.json': {why}"));
    }
    let mut twice = records();
    twice[3] = twice[0].clone();
    let why = "another record has '3,905 files of 4 KiB, ext4 in RAM, warm', too";
    assert_eq!(Speeds::of(twice).unwrap_err().to_string(), format!("cannot use 'small.json': {why}"));
    assert_eq!(Speeds::of(Vec::new()).unwrap_err().exit_code(), 2);
}

/// A peer that fails in a cell leaves its record unfinished for `lab copy`, but the row has all of its figures.
#[test]
fn a_copier_that_failed_is_named_and_its_record_is_used() {
    let mut records = records();
    let record = &mut records[0].1;
    record.complete = false;
    let cpz = record.cells.iter_mut().find(|cell| cell.text("tool") == "cpz").unwrap();
    (cpz.missing, cpz.failed) = (Some("'cpz' failed: exit status: 1".to_owned()), Some(Failed::Run));
    cpz.runs.truncate(2);
    let judged = Warning::note(WarningKind::Failed, "'cpz' failed: exit status: 1", "fix it");
    record.warnings = vec![judged.about("small/warm/cpz").distrusted()];
    let markdown = Speeds::of(records).unwrap().markdown();
    let text = markdown.replace('\n', " ");
    assert!(text.contains("Without figures: cpz (a run failed; 1 row), "), "{text}");
    let row = markdown.lines().find(|line| line.starts_with("| 3,905 files")).unwrap();
    assert!(row.contains("1.67 fcp") && !row.contains('†'), "{row}");
}

#[test]
fn a_record_is_unfinished_until_its_failed_cells_are_judged() {
    type Change = fn(&mut Record);
    let fail = |record: &mut Record| {
        record.complete = false;
        let rival = &mut record.cells[2];
        (rival.missing, rival.failed) = (Some("it failed".to_owned()), Some(Failed::Run));
        rival.runs.clear();
        record.warnings = vec![Warning::note(WarningKind::Failed, "it failed", "fix it").distrusted()];
    };
    let unfinished: [(&str, Change); 4] = [
        // As kept after each run, and after a kill.
        ("it is not finished; continue with --resume", |record| record.warnings.clear()),
        ("it is not finished; continue with --resume", |record| {
            record.warnings.push(Warning::note(WarningKind::Incomplete, "interrupted", "go on"));
        }),
        ("it is not finished; continue with --resume", |record| record.cells[4].runs.truncate(5)),
        ("ferry has no figures for three/warm", |record| {
            record.cells[1].missing = Some("it failed".to_owned());
        }),
    ];
    for (why, change) in unfinished {
        let said = refused(|record| {
            fail(record);
            change(record);
        });
        assert_eq!(said, format!("cannot use 'three.json': {why}"));
    }
    let mut usable = records();
    fail(&mut usable[1].1);
    assert!(Speeds::of(usable).is_ok());
}

/// Memory that is free, and the filesystem, differ between records of one machine.
#[test]
fn facts_that_vary_do_not_make_another_machine() {
    let mut records = records();
    records[1].1.machine.memory.available_bytes = 5;
    records[1].1.machine.place.source = "/dev/loop7".to_owned();
    assert!(Speeds::of(records).is_ok());
}

#[test]
fn every_text_of_the_chart_fits() {
    let svg = Speeds::of(records()).unwrap().plot().svg();
    for (picture, width) in svg.split("</svg>").zip([720.0, 350.0]) {
        let texts: Vec<&str> = picture.split("<text ").skip(1).collect();
        assert!(texts.len() > 12, "{picture}");
        for text in texts {
            let attribute =
                |name: &str| text.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap();
            let words = text.split('>').nth(1).unwrap().split('<').next().unwrap();
            let (x, wide) =
                (attribute("x").parse::<f64>().unwrap(), crate::units::real_count(words.len()) * 6.9);
            let start = match attribute("text-anchor") {
                "start" => x,
                "middle" => x - wide / 2.0,
                _ => x - wide,
            };
            assert!(start >= 0.0 && start + wide <= width, "{words} from {start} to {}", start + wide);
        }
    }
}

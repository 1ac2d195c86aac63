use super::Limits;
use crate::cache::State;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Run, Scale};
use crate::settings::Settings;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Limits.spec().parameters, &given, Scale::Default).unwrap()
}

/// Cells of small files in a warm cache; each tool took so many seconds in all of its runs.
fn taken(times: &[(&str, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.cells.clear();
    for (tool, seconds) in times {
        let parameters = [("tree", "small".into()), ("cache", "warm".into()), ("tool", (*tool).into())];
        let mut cell = Cell::new(&parameters, State::Warm);
        if tool.starts_with("limit-") {
            cell = cell.with("limit", (*tool).into());
        }
        let figures = Figures::from([("returned_s".to_owned(), *seconds)]);
        cell.runs.extend((0..5).map(|round| Run { round, figures: figures.clone(), ..run.clone() }));
        record.cells.push(cell);
    }
    record.measures = Limits.measures();
    record
}

#[test]
fn the_fastest_limit_program_is_the_limit() {
    let mut record = taken(&[
        ("cp", 1.0),
        ("ferry", 0.5),
        ("limit-read-write-2x64K", 0.45),
        ("limit-copy-range-3", 0.4),
        ("limit-direct-8x256K", 0.1),
    ]);
    // What failed is no limit.
    record.cells[4].missing = Some("Invalid argument".to_owned());
    let tables = Limits.tables(&record);
    let [row] = &tables[0].rows[..] else { panic!("{tables:?}") };
    assert_eq!(row[1], "limit-copy-range-3");
    assert_eq!(row[3..], ["0.40 (0.40-0.40)", "0.80 (0.80-0.80)"]);
    let last: Vec<&str> = tables[1].rows.iter().map(|row| row.last().unwrap().as_str()).collect();
    assert_eq!(tables[1].columns.last().unwrap(), "of the limit");
    assert_eq!(last[..4], ["0.40", "0.80", "0.89", "the limit"]);
    let verdicts = Limits.verdicts(&record);
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].outcome, Outcome::DidNotHold);
    assert_eq!(
        verdicts[0].to_string(),
        "ferry cp reaches 0.97 of the limit (small, warm) - does not hold (0.80): it reached 0.80 (0.80-0.80) of the speed \
         of the fastest limit program"
    );
    let fast = taken(&[("cp", 1.0), ("ferry", 0.4), ("limit-copy-range-3", 0.4)]);
    assert_eq!(Limits.verdicts(&fast)[0].outcome, Outcome::Held);
}

#[test]
fn without_limit_programs_nothing_is_said_of_them() {
    let record = taken(&[("cp", 1.0), ("ferry", 0.5)]);
    assert!(Limits.verdicts(&record).is_empty());
    let tables = Limits.tables(&record);
    assert_eq!(tables.len(), 1);
    assert_ne!(tables[0].columns.last().unwrap(), "of the limit");
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let cells = taken(&[("cp", 1.0), ("ferry", 0.5), ("limit-copy-range-3", 0.4)]).cells;
    every_verdict_goes_every_way(&Limits, cells, settings(&[]).values());
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let needs = Limits.needs(&settings(&[("trees", "mixed"), ("states", "cold")])).unwrap();
    assert!(needs.contains(&Need::DropCaches) && needs.contains(&Need::Program("cp".into())));
    for names in ["teleport", "auto,all", "limit-mapped-3", "limit-read-write-2x5000"] {
        let said = Limits.needs(&settings(&[("limits", names)])).unwrap_err().to_string();
        assert!(said.contains("for '--limits'; it must be auto, all, none, or names like"), "{said}");
    }
    assert!(Limits.needs(&settings(&[("limits", "limit-mapped-2,limit-copy-range-1")])).is_ok());
}

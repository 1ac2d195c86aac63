use super::{of_figures, of_machine, of_stolen_time};
use crate::cache::Proof;
use crate::machine::Machine;
use crate::record::tests::record;
use crate::record::warning::WarningKind;
use crate::record::{Better, Cell, Failed, Measure, Record, Scale};

fn returned(_: &Cell) -> Vec<String> {
    vec!["returned_s".to_owned()]
}

fn kinds(record: &Record) -> Vec<(WarningKind, bool)> {
    of_figures(record, &returned).iter().map(|warning| (warning.kind, warning.distrust)).collect()
}

#[test]
fn three_runs_are_too_few() {
    let found = kinds(&record());
    assert_eq!(
        found,
        [(WarningKind::FewRuns, true), (WarningKind::FewRuns, true), (WarningKind::Missing, false)]
    );
    let quick = kinds(&Record { scale: Scale::Quick, ..record() });
    assert_eq!(quick, [(WarningKind::FewRuns, true), (WarningKind::Missing, false)]);
}

#[test]
fn scattered_figures_are_noisy() {
    let mut record = record();
    record.cells.truncate(1);
    let run = record.cells[0].runs[0].clone();
    let mut with = |figures: &[f64]| {
        record.cells[0].runs = figures.iter().map(|_| run.clone()).collect();
        for (run, figure) in record.cells[0].runs.iter_mut().zip(figures) {
            run.figures.insert("returned_s".to_owned(), *figure);
        }
        kinds(&record)
    };
    assert_eq!(with(&[1.0, 1.01, 0.99, 1.0, 1.02, 0.98]), []);
    assert_eq!(with(&[1.0, 2.0, 0.5, 1.5, 0.7, 3.0]), [(WarningKind::Noisy, true)]);
    assert_eq!(
        with(&[1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.03, 0.97, 1.0, 9.0]),
        [(WarningKind::Outliers, false)]
    );
}

#[test]
fn a_cache_in_another_state_is_told() {
    let mut record = record();
    record.cells.truncate(1);
    let runs = record.cells[0].runs.clone();
    record.cells[0].runs.extend(runs);
    for run in &mut record.cells[0].runs {
        run.figures.insert("returned_s".to_owned(), 1.0);
    }
    assert_eq!(kinds(&record), []);
    let proof = record.cells[0].runs[2].proof.clone().unwrap();
    record.cells[0].runs[2].proof = Some(Proof { holds: false, ..proof });
    let found = of_figures(&record, &returned);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string(),
        "small/cp: 1 run began with a cache that was not warm; another program was reading, or memory is short"
    );
}

#[test]
fn a_cache_that_could_not_be_asked_is_not_proved() {
    let mut record = record();
    record.cells.truncate(1);
    let proof = record.cells[0].runs[2].proof.clone().unwrap();
    let data_by = "cachestat(2): Function not implemented".to_owned();
    record.cells[0].runs[2].proof =
        Some(Proof { holds: false, data_files: 0, data_bytes: 0, data_by, ..proof });
    let found = of_figures(&record, &returned);
    let told = found.iter().find(|warning| warning.kind == WarningKind::CacheState).unwrap();
    assert!(told.distrust);
    assert_eq!(
        told.message,
        "1 run began with a cache that is not proved to be warm (names by openat2(RESOLVE_CACHED), data by \
         cachestat(2): Function not implemented)"
    );
}

#[test]
fn every_measure_that_is_judged_is_checked() {
    let mut record = record();
    record.cells.truncate(1);
    record.measures.push(Measure::new("durable_s", "until durable", "s", Better::Lower));
    let run = record.cells[0].runs[0].clone();
    record.cells[0].runs = [1.0, 2.0, 0.5, 1.5, 0.7, 3.0]
        .map(|figure| {
            let mut run = run.clone();
            run.figures.insert("durable_s".to_owned(), figure);
            run
        })
        .into();
    assert_eq!(kinds(&record), []);
    let found = of_figures(&record, &|_| vec!["returned_s".to_owned(), "durable_s".to_owned()]);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].message.starts_with("the confidence interval of its median (until durable) is ±"),
        "{found:?}"
    );
    // A cell without any figure of the most important measure has too few runs all the same.
    record.cells[0].runs.truncate(3);
    assert_eq!(of_figures(&record, &|_| vec!["absent".to_owned()])[0].kind, WarningKind::FewRuns);
}

#[test]
fn what_failed_is_not_trusted() {
    let mut record = record();
    record.scale = Scale::Quick;
    for (failed, wanted) in [
        (None, (WarningKind::Missing, false)),
        (Some(Failed::Run), (WarningKind::Failed, true)),
        (Some(Failed::Copy), (WarningKind::Failed, true)),
    ] {
        record.cells[2].failed = failed;
        assert_eq!(kinds(&record)[1], wanted);
    }
}

#[test]
fn limits_of_the_machine_are_told() {
    let mut machine = Machine::default();
    machine.processor.count = 4;
    machine.processor.usable = 2;
    machine.processor.quota_percent = Some(150);
    machine.memory.limit_bytes = Some(1_000_000_000);
    machine.place.in_memory = true;
    machine.place.options = vec!["rw".to_owned(), "discard=async".to_owned()];
    let found: Vec<WarningKind> = of_machine(&machine).iter().map(|warning| warning.kind).collect();
    assert_eq!(
        found,
        [
            WarningKind::CpuLimit,
            WarningKind::CpuLimit,
            WarningKind::MemoryLimit,
            WarningKind::RamFilesystem,
            WarningKind::Discard
        ]
    );
}

#[test]
fn stolen_time_is_told_from_three_percent_on() {
    assert!(of_stolen_time(2, 100).is_none() && of_stolen_time(0, 0).is_none());
    assert!(of_stolen_time(3, 100).unwrap().distrust);
}

use std::collections::{BTreeMap, BTreeSet};

use ferry_tree::fill::SplitMix64;

use super::{ALL, named};
use crate::experiment::Experiment;
use crate::record::tests::record;
use crate::record::{Cell, Record, Run, Scale, Values};
use crate::settings::Settings;
use crate::verdict::Outcome;

#[test]
fn every_experiment_has_defaults_that_it_understands() {
    for experiment in ALL {
        for scale in [Scale::Default, Scale::Quick, Scale::AsPublished] {
            let settings = Settings::new(experiment.spec().parameters, &[], scale);
            assert!(settings.is_ok(), "{}: {settings:?}", experiment.spec().name);
            assert!(experiment.spec().runs(scale) >= 1);
        }
        for operand in experiment.spec().operands {
            assert!(
                experiment.spec().parameters.iter().any(|parameter| parameter.name == *operand),
                "{operand}"
            );
        }
        assert!(!experiment.measures().is_empty());
        // The first runs find nothing as the later ones do.
        assert!(
            !experiment.spec().is_measured || experiment.spec().warm_ups(Scale::Default) == 1,
            "{}",
            experiment.spec().name
        );
        assert_eq!(
            named(experiment.spec().name).map(|found| found.spec().name),
            Some(experiment.spec().name)
        );
    }
    assert!(named("no-such-experiment").is_none());
}

/// Fails unless each finding about these cells is held with some figures, is not with others, is unclear with others
/// again, and is not judged without any.
pub(super) fn every_verdict_goes_every_way(
    experiment: &dyn Experiment,
    cells: Vec<Cell>,
    parameters: &Values,
) {
    let cells = cells.into_iter().map(|cell| Cell { runs: Vec::new(), missing: None, ..cell }).collect();
    let measures = experiment.measures();
    let bare = Record { cells, measures, parameters: parameters.clone(), ..record() };
    let judged = |verdict: &crate::verdict::Verdict| verdict.outcome != Outcome::NotMeasured;
    assert!(!experiment.verdicts(&bare).iter().any(judged), "{:?}", experiment.verdicts(&bare));
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    only_what_is_judged_counts(experiment, &drawn(&bare, 0));
    for seed in 0..2000 {
        for verdict in experiment.verdicts(&drawn(&bare, seed)) {
            // Counts are equal or not, and its own test shows both.
            if verdict.finding.contains("counters equal") {
                continue;
            }
            let all = [Outcome::Held, Outcome::DidNotHold, Outcome::Unclear].map(Outcome::name);
            let left = missing.entry(verdict.finding).or_insert_with(|| BTreeSet::from(all));
            left.remove(verdict.outcome.name());
        }
        if missing.values().all(BTreeSet::is_empty) {
            return;
        }
    }
    missing.retain(|_, left| !left.is_empty());
    panic!("{missing:#?}");
}

/// Fails if a verdict changes with figures of a measure that a cell is not said to be judged by: those are not checked
/// for noise.
fn only_what_is_judged_counts(experiment: &dyn Experiment, record: &Record) {
    let outcomes = |record: &Record| -> Vec<(String, Outcome)> {
        let verdicts = experiment.verdicts(record).into_iter();
        let judged = verdicts.filter(|verdict| !verdict.finding.contains("counters equal"));
        judged.map(|verdict| (verdict.finding, verdict.outcome)).collect()
    };
    let before = outcomes(record);
    for (index, cell) in record.cells.iter().enumerate() {
        for measure in &record.measures {
            if experiment.judged(cell).contains(&measure.name.as_str()) {
                continue;
            }
            let mut other = record.clone();
            for run in &mut other.cells[index].runs {
                run.figures.entry(measure.name.clone()).and_modify(|figure| *figure *= 1e6);
            }
            assert_eq!(outcomes(&other), before, "{} of {}", measure.name, cell.name);
        }
    }
}

/// The record with figures of every measure: in each cell all the same, or very scattered.
fn drawn(bare: &Record, seed: u64) -> Record {
    const FIGURES: [f64; 6] = [0.05, 0.5, 1.0, 1.0, 2.0, 20.0];
    let mut numbers = SplitMix64::new(seed);
    let run = record().cells[0].runs[0].clone();
    let mut drawn = bare.clone();
    for cell in &mut drawn.cells {
        let is_scattered = numbers.index(5) == 0;
        let figures = bare.measures.iter().map(|measure| (measure.name.clone(), FIGURES[numbers.index(6)]));
        let figures: Vec<(String, f64)> = figures.collect();
        for round in 0..5 {
            let factor = if is_scattered { [0.01, 100.0][usize::from(round % 2 == 0)] } else { 1.0 };
            let figures = figures.iter().map(|(name, figure)| (name.clone(), figure * factor)).collect();
            cell.runs.push(Run { round, figures, ..run.clone() });
        }
    }
    drawn
}

//! Adds the warnings that are known only after the last run.

use crate::error::Failure;
use crate::experiment::Experiment;
use crate::machine::Ticks;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Cell, Record, Run};
use crate::verdict::Outcome;
use crate::warnings::{self, counted};

/// Judges what was taken since `ticks`, until `failure` ended it if it did.
pub(super) fn judge(
    experiment: &dyn Experiment,
    record: &mut Record,
    ticks: Ticks,
    failure: Option<&Failure>,
) {
    let is_whole = |cell: &Cell| cell.is_complete(record.runs) && cell.failed.is_none();
    record.complete = failure.is_none() && record.cells.iter().all(is_whole);
    if !experiment.spec().is_measured {
        return;
    }
    let end = Ticks::now();
    let stolen = end.stolen.saturating_sub(ticks.stolen);
    if let Some(warning) = warnings::of_stolen_time(stolen, end.all.saturating_sub(ticks.all)) {
        record.warn(warning);
    }
    let first = record.measures.first().map(|measure| measure.name.clone()).unwrap_or_default();
    let judged = |cell: &Cell| match experiment.judged(cell) {
        [] => vec![first.clone()],
        measures => measures.iter().map(|measure| (*measure).to_owned()).collect(),
    };
    record.warnings.extend(warnings::of_figures(record, &judged));
    record.warnings.extend(of_lost_verdicts(experiment, record));
    if let Some(failure) = failure {
        let message = format!("not all runs were taken ({failure})");
        let warning =
            Warning::note(WarningKind::Incomplete, message, "go on with --resume FILE").distrusted();
        record.warnings.push(warning);
    }
}

/// Why there is not a single run, where there should be some.
pub(super) fn nothing_measured(experiment: &dyn Experiment, record: &Record) -> Option<Failure> {
    if !experiment.spec().is_measured || record.cells.iter().any(|cell| !cell.runs.is_empty()) {
        return None;
    }
    let mut reasons: Vec<&str> = Vec::new();
    for why in record.cells.iter().filter_map(|cell| cell.missing.as_deref()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let reasons =
        if reasons.is_empty() { "there is nothing to measure".to_owned() } else { reasons.join("; ") };
    Some(Failure::Run(format!("nothing was measured: {reasons}")))
}

/// Findings that are not judged only because cells are missing. What they would be judged by is found out by giving
/// those cells figures: then they are.
fn of_lost_verdicts(experiment: &dyn Experiment, record: &Record) -> Option<Warning> {
    let is_missing = |cell: &Cell| cell.missing.is_some() && cell.runs.is_empty();
    if !record.cells.iter().any(is_missing) {
        return None;
    }
    let mut whole = record.clone();
    let figures = whole.measures.iter().map(|measure| (measure.name.clone(), 1.0)).collect();
    let run =
        |round| Run { round, started: record.started.clone(), figures: Clone::clone(&figures), proof: None };
    for cell in whole.cells.iter_mut().filter(|cell| is_missing(cell)) {
        cell.runs = (0..record.runs).map(run).collect();
    }
    let judged = |record: &Record| -> Vec<String> {
        let verdicts = experiment.verdicts(record).into_iter();
        verdicts
            .filter(|verdict| verdict.outcome != Outcome::NotMeasured)
            .map(|verdict| verdict.finding)
            .collect()
    };
    let here = judged(record);
    let lost = judged(&whole).into_iter().filter(|finding| !here.contains(finding)).count();
    (lost > 0).then(|| {
        let message = format!("{} cannot be judged because cells are missing", counted(lost, "finding"));
        Warning::note(WarningKind::Missing, message, "see the reasons above").distrusted()
    })
}

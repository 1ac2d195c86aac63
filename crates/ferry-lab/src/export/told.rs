//! Parts that the text and the Markdown of a result share: the first lines, the tables, and the warnings.

use crate::experiment::Experiment;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Record, Scale};
use crate::table::{Table, listed};

/// Returns the answer, and what a reader must know before using it.
pub(super) fn first(experiment: &dyn Experiment, record: &Record) -> Vec<String> {
    let mut lines = experiment.headline(record).lines();
    if record.scale == Scale::Quick && experiment.spec().is_measured {
        lines.push("--quick decides nothing; run it without --quick for reliable figures".to_owned());
    }
    if record.warnings.iter().any(|warning| warning.distrust && !is_of_quick(warning)) {
        lines.push("Do not trust these figures: the warnings below say why".to_owned());
    }
    lines
}

/// Returns the tables that have something to show.
pub(super) fn tables(experiment: &dyn Experiment, record: &Record) -> Vec<Table> {
    let mut tables = experiment.tables(record);
    tables.retain(|table| !table.is_empty());
    tables
}

/// Returns the warnings, each with its cells. Those that the footnote or the first lines say are left out.
pub(super) fn warnings(record: &Record) -> Vec<String> {
    let is_noted = |warning: &Warning| {
        let cell = record.cell(&warning.cell).filter(|cell| cell.runs.is_empty());
        warning.kind == WarningKind::Missing && cell.is_some()
    };
    let mut groups: Vec<(&Warning, Vec<String>)> = Vec::new();
    for warning in record.warnings.iter().filter(|warning| !is_of_quick(warning) && !is_noted(warning)) {
        let is_same = |known: &&mut (&Warning, Vec<String>)| {
            (&known.0.message, &known.0.advice) == (&warning.message, &warning.advice)
        };
        match groups.iter_mut().find(is_same) {
            Some((_, cells)) => cells.push(warning.cell.clone()),
            None => groups.push((warning, vec![warning.cell.clone()])),
        }
    }
    let text = |(warning, mut cells): (&Warning, Vec<String>)| {
        cells.retain(|cell| !cell.is_empty());
        let about = if cells.is_empty() { String::new() } else { format!("{}: ", listed(&cells)) };
        format!("{about}{}; {}", warning.message, warning.advice)
    };
    groups.into_iter().map(text).collect()
}

/// Returns true for the warning about all cells that `--quick` causes.
fn is_of_quick(warning: &Warning) -> bool {
    warning.kind == WarningKind::FewRuns && warning.cell.is_empty()
}

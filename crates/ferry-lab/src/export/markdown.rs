//! The result as Markdown: the answer, the conditions, tables and their footnote, all claims and warnings.

use super::conditions::machine;
use super::told;
use crate::claims;
use crate::experiment::Experiment;
use crate::record::Record;
use crate::table::not_measured;

/// Formats a record as Markdown.
#[must_use]
pub fn markdown(experiment: &dyn Experiment, record: &Record) -> String {
    let mut out = format!("## ferry lab {}\n\n", record.experiment);
    for line in told::first(experiment, record) {
        out += &format!("{line}\n\n");
    }
    out += &format!("{}\n\n", machine(record));
    for table in told::tables(experiment, record) {
        out += &format!("{}\n", table.markdown());
    }
    if let Some(note) = not_measured(record) {
        out += &format!("{note}\n\n");
    }
    if let Some(claims) = claims::all(&experiment.verdicts(record)) {
        out += &format!("{}\n", claims.markdown());
    }
    let warnings = told::warnings(record);
    if !warnings.is_empty() {
        out += "### Warnings\n\n";
        warnings.iter().for_each(|line| out += &format!("- {line}\n"));
        out += "\n";
    }
    out
}

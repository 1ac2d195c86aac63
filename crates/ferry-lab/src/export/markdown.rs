//! The result as Markdown: the answer, the conditions, tables, all claims and warnings.

use super::conditions::machine;
use super::told;
use crate::claims;
use crate::experiment::Experiment;
use crate::record::Record;

/// Formats a record as Markdown.
#[must_use]
pub fn markdown(experiment: &dyn Experiment, record: &Record) -> String {
    let mut out = format!("## ferry lab {}\n\n", record.experiment);
    for line in told::first(experiment, record) {
        out += &format!("{line}\n\n");
    }
    out += &format!("{}\n\n", machine(record));
    let tables = experiment.tables(record);
    for table in tables.iter().chain(&claims::all(&experiment.verdicts(record))) {
        out += &format!("{}\n", table.markdown());
    }
    let warnings = told::warnings(record, &tables);
    if !warnings.is_empty() {
        out += "### Warnings\n\n";
        warnings.iter().for_each(|line| out += &format!("- {line}\n"));
        out += "\n";
    }
    out
}

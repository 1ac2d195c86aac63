//! The result as text for a terminal: the answer, the conditions, tables and their footnote, claims and
//! warnings.

use super::conditions::machine;
use super::told;
use crate::claims;
use crate::experiment::Experiment;
use crate::record::Record;
use crate::table::{not_measured, wrapped};

/// Formats a record in lines of at most `columns` characters, unless a word or figure is longer.
#[must_use]
pub fn text(experiment: &dyn Experiment, record: &Record, columns: usize) -> String {
    let mut out = String::new();
    for line in told::first(experiment, record) {
        out += &indented("", &line, columns);
    }
    out += &format!("\n{}", indented("", &machine(record), columns));
    for table in told::tables(experiment, record) {
        out += &format!("\n{}", table.text_in(columns));
    }
    if let Some(note) = not_measured(record) {
        out += &format!("\n{}", indented("", &note, columns));
    }
    if let Some(claims) = claims::decided(&experiment.verdicts(record)) {
        out += &format!("\n{}", claims.text_in(columns));
    }
    let warnings = told::warnings(record);
    if !warnings.is_empty() {
        out += "\nWarnings\n";
        warnings.iter().for_each(|line| out += &indented("- ", line, columns));
    }
    out
}

/// Wraps a text behind a mark. Further lines are indented by the mark's width.
fn indented(mark: &str, text: &str, columns: usize) -> String {
    let lines = wrapped(text, columns.saturating_sub(mark.len())).into_iter().enumerate();
    let line = |(number, line): (usize, String)| {
        let start = if number == 0 { mark.to_owned() } else { " ".repeat(mark.len()) };
        start + &line + "\n"
    };
    lines.map(line).collect()
}

//! All figures of all runs, exactly as recorded: one collapsed table for each cell.

use std::collections::BTreeSet;

use super::html::{Grid, escaped};
use crate::cache::Proof;
use crate::record::{Cell, Record, Run, Values};

/// All cells.
pub(super) fn all(record: &Record, id: &str) -> String {
    if record.cells.is_empty() {
        return String::new();
    }
    let hint = "<p class=\"screen\">A table for each cell, with the figures as they were taken. What is open here is \
                printed, too.</p>\n";
    let cells = record.cells.iter().enumerate();
    cells.fold(hint.to_owned(), |out, (index, cell)| out + &one(record, cell, &format!("{id}-{}", index + 1)))
}

fn one(record: &Record, cell: &Cell, id: &str) -> String {
    let count = crate::warnings::counted(cell.runs.len(), "run");
    let mut facts = values(&cell.parameters);
    if cell.text("cache") != cell.cache.name() {
        facts.push(format!("caches: {}", cell.cache.name()));
    }
    facts.extend(cell.base.iter().map(|base| format!("compared with {base}")));
    facts.extend(cell.missing.iter().map(|why| format!("missing: {why}")));
    facts.extend(asked(cell));
    let table = if cell.runs.is_empty() { String::new() } else { table(record, cell, id) };
    format!(
        "<details><summary><code>{}</code> <span class=\"faint\">{count}</span></summary>\n<p>{}</p>\n{table}</details>\n",
        escaped(&cell.name),
        escaped(&facts.join("; ")),
    )
}

fn table(record: &Record, cell: &Cell, id: &str) -> String {
    let known =
        record.measures.iter().filter(|one| cell.runs.iter().any(|run| run.figures.contains_key(&one.name)));
    let mut measures: Vec<(String, &str)> =
        known.map(|one| (heading(&one.heading(), &one.unit), one.name.as_str())).collect();
    for name in cell.runs.iter().flat_map(|run| run.figures.keys()) {
        if measures.iter().all(|(_, known)| known != name) {
            measures.push((name.clone(), name));
        }
    }
    let proved = cell.runs.iter().any(|run| run.proof.is_some());
    let mut grid = Grid::new(id, &format!("Runs of {}", cell.name));
    grid.columns(["round", "begun"]);
    grid.columns(measures.iter().map(|(heading, _)| heading.as_str()));
    if proved {
        grid.columns(["names in memory", "bytes in memory", "as asked for"]);
    }
    for run in &cell.runs {
        let mut row = vec![run.round.to_string(), escaped(&run.started)];
        row.extend(measures.iter().map(|(_, name)| exact(run, name)));
        if proved {
            row.extend(run.proof.as_ref().map_or_else(Default::default, proof));
        }
        grid.row(row);
    }
    grid.html()
}

fn heading(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// Formats all digits.
fn exact(run: &Run, measure: &str) -> String {
    run.figures.get(measure).map(f64::to_string).unwrap_or_default()
}

/// Describes the queries behind the proofs.
fn asked(cell: &Cell) -> Vec<String> {
    let proofs = || cell.runs.iter().filter_map(|run| run.proof.as_ref());
    let names: BTreeSet<&str> = proofs().map(|proof| proof.names_by.as_str()).collect();
    let data: BTreeSet<&str> = proofs().map(|proof| proof.data_by.as_str()).collect();
    let said = [("names", names), ("data", data)].map(|(what, by)| {
        let by: Vec<&str> = by.into_iter().collect();
        (!by.is_empty()).then(|| format!("{what} in memory asked for by {}", by.join(", or ")))
    });
    said.into_iter().flatten().collect()
}

fn proof(proof: &Proof) -> [String; 3] {
    let part = |part: u64, all: u64| format!("{part} of {all}");
    [
        part(proof.names_in_memory, proof.names),
        part(proof.data_in_memory_bytes, proof.data_bytes),
        if proof.holds { "yes" } else { "no" }.to_owned(),
    ]
}

/// Formats `name: value`, without empty values.
pub(super) fn values(values: &Values) -> Vec<String> {
    let texts = values.iter().map(|(name, value)| (name.replace('_', " "), value.to_string()));
    texts.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}: {value}")).collect()
}

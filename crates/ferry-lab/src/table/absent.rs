//! The footnote of a result about the cells without runs.

use super::cells::listed;
use crate::record::{Cell, Record};

/// Fewest cells that are named by the part of their names that they share.
const SEVERAL: usize = 2;

/// Returns a sentence about the cells without runs, by reason, if there are any: `Not measured: cold (REASON); one/fio
/// (REASON).` A word such as `cold` stands for all cells with this part in their names. None of them has runs.
#[must_use]
pub fn not_measured(record: &Record) -> Option<String> {
    let mut groups: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for cell in record.cells.iter().filter(|cell| cell.runs.is_empty()) {
        let why = cell.missing.as_deref().unwrap_or("not taken");
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((why, vec![cell])),
        }
    }
    let group = |(why, cells): &(&str, Vec<&Cell>)| format!("{} ({why})", listed(&names(record, cells)));
    let groups: Vec<String> = groups.iter().map(group).collect();
    (!groups.is_empty()).then(|| format!("Not measured: {}.", groups.join("; ")))
}

/// Returns the shared parts that name most of the cells, then the whole names of the others.
fn names(record: &Record, cells: &[&Cell]) -> Vec<String> {
    let (mut words, mut left) = (Vec::new(), cells.to_vec());
    while let Some(word) = shared(record, &left) {
        left.retain(|cell| !has(cell, word));
        words.push(word.to_owned());
    }
    words.extend(left.iter().map(|cell| cell.name.clone()));
    words
}

/// Returns the part that most of these cells share, if no cell with runs has it. Numbers alone say nothing.
fn shared<'r>(record: &Record, cells: &[&'r Cell]) -> Option<&'r str> {
    let count = |part: &str| cells.iter().filter(|cell| has(cell, part)).count();
    let is_absent = |part: &str| record.cells.iter().all(|cell| cell.runs.is_empty() || !has(cell, part));
    let parts = cells.iter().flat_map(|cell| cell.name.split('/'));
    let named = parts.filter(|part| part.starts_with(char::is_alphabetic));
    let candidates = named.filter(|part| count(part) >= SEVERAL && is_absent(part));
    candidates.max_by_key(|part| count(part))
}

fn has(cell: &Cell, part: &str) -> bool {
    cell.name.split('/').any(|known| known == part)
}

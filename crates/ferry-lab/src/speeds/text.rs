//! The text below the table: how the figures were taken, where ferry misses its aims, and who has no figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Record;
use crate::units::figure;
use crate::warnings::counted;

use super::row::Row;

/// Largest length of a line, in characters.
const WIDTH: usize = 125;

/// Returns the text, in lines.
pub(super) fn below(records: &[Record], rows: &[Row]) -> String {
    let parts = [conditions(records, rows), machine(records, rows), missing(rows), doubts(rows)];
    let text: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    in_lines(&text.join(" "))
}

fn conditions(records: &[Record], rows: &[Row]) -> String {
    let runs = span(rows.iter().map(|row| row.runs.to_string()).collect(), " to ");
    let cp = records.iter().find_map(|record| record.tools.get("cp"));
    let cp = cp.and_then(|words| version(words)).map(|version| format!(" {version}")).unwrap_or_default();
    format!(
        "Speeds relative to GNU cp{cp} (1.00 is equal, more is faster): medians of {runs} interleaved runs, and their 95 % \
         intervals. Options are `-r` unless stated. *Warm* sources are in the page cache, *cold* ones are not. Each copy was \
         compared with its source. The *limit* is the fastest bare program that was found for the copy (`ferry lab limits`). \
         Bold ratios miss their aims, 1.00 of the best other copier and 0.97 of the limit."
    )
}

fn machine(records: &[Record], rows: &[Row]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let machine = &first.machine;
    let days = records.iter().map(|record| record.started.chars().take(10).collect()).collect();
    let others: BTreeSet<&String> = rows.iter().flat_map(|row| &row.others).collect();
    let of_tool = |name: &&String| {
        let words = records.iter().find_map(|record| record.tools.get(*name));
        let version = words.and_then(|words| version(words));
        version.map_or_else(|| (*name).clone(), |version| format!("{name} {version}"))
    };
    let others: Vec<String> = others.iter().map(of_tool).collect();
    let model = if machine.processor.model.is_empty() { "processor" } else { &machine.processor.model };
    let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    format!(
        "Machine: {} x {model}{}, {}, Linux {}. {}, {}; other copiers: {others}.",
        machine.processor.usable,
        if machine.processor.virtualised { " (virtual)" } else { "" },
        figure(crate::units::real(machine.memory.total_bytes), "B"),
        // Without a distribution's or a builder's suffix.
        machine.kernel.split('-').next().unwrap_or_default(),
        first.taken_by,
        span(days, " to "),
    )
}

/// Names copiers without figures: `Without figures: rcp (not installed), xcp (a copy was wrong; 2 rows).`
fn missing(rows: &[Row]) -> String {
    let mut found: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (name, why) in rows.iter().flat_map(|row| &row.absent) {
        *found.entry((name.as_str(), why)).or_default() += 1;
    }
    let of_copier = |((name, why), count): ((&str, &str), usize)| {
        let part = if count == rows.len() { String::new() } else { format!("; {}", counted(count, "row")) };
        format!("{name} ({why}{part})")
    };
    let found: Vec<String> = found.into_iter().map(of_copier).collect();
    if found.is_empty() { String::new() } else { format!("Without figures: {}.", found.join(", ")) }
}

fn doubts(rows: &[Row]) -> String {
    let is_any = rows.iter().any(|row| row.is_doubted);
    let words = "† Runs of this row vary too much for a claim, or the host took processor time.";
    if is_any { words.to_owned() } else { String::new() }
}

/// Returns the smallest and the largest text, or the only one. Numbers are compared by length first.
fn span(mut texts: Vec<String>, between: &str) -> String {
    texts.sort_by_key(|text| (text.len(), text.clone()));
    match (texts.first(), texts.last()) {
        (Some(first), Some(last)) if first != last => format!("{first}{between}{last}"),
        (Some(first), _) => first.clone(),
        (None, _) => String::new(),
    }
}

/// Finds the version number in what a program printed.
fn version(printed: &str) -> Option<&str> {
    printed.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
}

fn in_lines(text: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let wide = word.chars().count();
        if length > 0 && length + 1 + wide > WIDTH {
            out.push('\n');
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out += word;
        length += wide;
    }
    out.push('\n');
    out
}

//! The result in words: the answer, the table of both commands, and the notes beneath it.

use super::names::{FLOOR, MEMORY, STATUS, SYSTEM, TIME, USER};
use crate::cache::State;
use crate::headline::{Headline, confidence};
use crate::record::{Cell, Measure, Record, Value};
use crate::statistics::Interval;
use crate::table::{Columns, Table};
use crate::units::{figure, real};
use crate::verdict::{interval, middle};
use crate::warnings::counted;

/// Ratios closer to 1 have a digit more.
const CLOSE: f64 = 1.005;

/// Says which command is faster.
pub(super) fn headline(record: &Record) -> Headline {
    let none = || Headline::none("the commands");
    let [first, second] = &record.cells[..] else { return none() };
    let (Some(speed), Some(other)) = (record.ratio(second, first, TIME), record.ratio(first, second, TIME))
    else {
        return none();
    };
    let (first, second) = (&first.name, &second.name);
    if speed.is_enough() && !speed.is_above(1.0) && !speed.is_below(1.0) {
        return Headline::new(format!("{first} and {second} can't be told apart: {}", interval(&speed)));
    }
    let (fast, slow, ratio) =
        if speed.middle < 1.0 { (first, second, other) } else { (second, first, speed) };
    let (times, aside) = if ratio.is_enough() && ratio.low < CLOSE {
        let Interval { middle, low, high, .. } = ratio;
        (format!("{middle:.3}"), format!("95 %: {low:.3}-{high:.3}"))
    } else {
        (middle(&ratio), confidence(&ratio, record.scale))
    };
    Headline::new(format!("{fast} is {times}x as fast as {slow} ({aside})"))
}

/// A row for each command.
pub(super) fn table(record: &Record) -> Table {
    const TITLE: &str = "The commands";
    let Some(columns) = Columns::of(record) else { return Table::new(TITLE, &["cell"]) };
    let is_shown = |measure: &&Measure| [USER, SYSTEM].contains(&measure.name.as_str());
    let others = columns.others.into_iter().filter(is_shown).collect();
    let peak: &dyn Fn(&Cell) -> String = &|cell| memory(record, cell);
    let columns = Columns { first: columns.first, others, last: Some(("memory", peak)) };
    let mut table = columns.table(record, TITLE, &record.cells.iter().collect::<Vec<_>>());
    table.notes.extend(notes(record));
    table
}

/// Formats the median of the peaks of memory if each run has one. Otherwise it is a bound: the largest peak that is
/// known, or the floor if none is.
fn memory(record: &Record, cell: &Cell) -> String {
    let known = cell.figures(MEMORY);
    if known.len() == cell.runs.len() {
        let summary = record.summary(cell, MEMORY);
        return summary.map(|its| figure(its.median.middle, "B")).unwrap_or_default();
    }
    if let Some(largest) = known.into_iter().max_by(f64::total_cmp) {
        return format!("up to {}", figure(largest, "B"));
    }
    let floor = record.settled.get(FLOOR).and_then(Value::as_number);
    floor.map(|floor| format!("under {}", figure(real(floor), "B"))).unwrap_or_default()
}

fn notes(record: &Record) -> Vec<String> {
    let text = |name: &str| record.parameters.get(name).map(Value::to_string).unwrap_or_default();
    let mut notes: Vec<String> =
        record.cells.iter().map(|cell| format!("{}: {}", cell.name, visible(&cell.text("line")))).collect();
    for (name, when) in [("prepare", "Before"), ("cleanup", "After")] {
        let line = text(name);
        notes.extend((!line.is_empty()).then(|| format!("{when} each run: {}", visible(&line))));
    }
    let state = record.cells.first().map(|cell| cell.cache);
    notes.extend(state.map(|state| caches(state, !text("files").is_empty()).to_owned()));
    notes.extend(record.cells.iter().filter_map(failures));
    notes
}

fn caches(state: State, has_files: bool) -> &'static str {
    match (state, has_files) {
        (State::Cold, true) => {
            "Cold caches: dropped before each run, and the files are proved not to be in memory."
        }
        (State::Cold, false) => "Cold caches: dropped before each run; without --files nothing is proved.",
        (State::Warm, true) => "Warm caches: the files are proved to be in memory before each run.",
        (State::Warm | State::AsItIs, _) => {
            "Warm caches: each command has run before; without --files nothing is proved."
        }
    }
}

/// Counts the runs of a command that failed.
fn failures(cell: &Cell) -> Option<String> {
    let failed = cell.figures(STATUS).into_iter().filter(|status| *status > 0.0).count();
    let all = counted(cell.runs.len(), "run");
    (failed > 0).then(|| format!("{}: {failed} of {all} ended with another status than 0.", cell.name))
}

/// A command line whose control characters are not obeyed by a terminal.
fn visible(line: &str) -> String {
    let shown = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    line.chars().map(shown).collect()
}

//! The line of progress: the percentage first, then as much of the rest as there is room for, and the bar last.

use std::time::Duration;

use crate::units::{bytes, clock, count, counted, rate};

#[cfg(test)]
mod tests;

/// Figures of one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// `None` while the amount of work is unknown.
    pub(super) percent: Option<u128>,
    /// Set if all bytes are an estimate: the percentage begins with `~`.
    pub(super) is_estimate: bool,
    /// Bytes done and all bytes.
    pub(super) bytes: (u64, Option<u64>),
    /// Entries done and all entries.
    pub(super) entries: (u64, Option<u64>),
    /// Bytes done in a time.
    pub(super) rate: (u64, Duration),
    pub(super) left: Option<Duration>,
    pub(super) elapsed: Duration,
}

/// Space between two parts.
const GAP: &str = "  ";
/// Fewest and most columns of a bar.
const BAR: (usize, usize) = (12, 42);

/// Formats `41 %  261/629 MB  63 MB/s  0:06 left  1,204/2,811 entries` in at most `columns`.
pub(super) fn plain(facts: &Facts, columns: usize) -> String {
    let about = if facts.is_estimate { "~" } else { "" };
    let percent = facts.percent.map(|percent| format!("{about}{percent} %"));
    let moved = Some(bytes_of(facts.bytes));
    let speed = Some(rate(facts.rate.0, facts.rate.1));
    let time = match facts.left {
        Some(left) => format!("{} left", clock(left)),
        None => format!("{} elapsed", clock(facts.elapsed)),
    };
    let entries = entries_of(facts.entries);
    // Of two parts that do not fit both, the first named is the one that is left out.
    let layouts: [Vec<Option<&String>>; 5] = [
        vec![percent.as_ref(), moved.as_ref(), speed.as_ref(), Some(&time), Some(&entries)],
        vec![percent.as_ref(), moved.as_ref(), speed.as_ref(), Some(&time)],
        vec![percent.as_ref(), moved.as_ref(), Some(&time)],
        vec![percent.as_ref(), moved.as_ref()],
        vec![percent.as_ref()],
    ];
    let lines = layouts.iter().map(|parts| {
        let parts: Vec<&str> = parts.iter().flatten().map(|part| part.as_str()).collect();
        parts.join(GAP)
    });
    lines.into_iter().find(|line| line.chars().count() <= columns).unwrap_or_default()
}

/// Formats the line, and a bar after it if there is room for one.
pub(super) fn with_bar(facts: &Facts, columns: usize) -> String {
    let line = plain(facts, columns);
    let room = columns.saturating_sub(line.chars().count() + GAP.len()).min(BAR.1);
    let Some(percent) = facts.percent.filter(|_| room >= BAR.0) else { return line };
    let steps = room - 2;
    let done = usize::try_from(percent.min(100)).unwrap_or(0) * steps / 100;
    let arrow = if done < steps { ">" } else { "" };
    format!("{line}{GAP}[{:<steps$}]", "=".repeat(done) + arrow)
}

/// Formats `1,204/2,811 entries`.
pub(super) fn entries_of((done, all): (u64, Option<u64>)) -> String {
    match all {
        Some(all) => format!("{}/{} entries", count(done), count(all)),
        None => counted(done, "entry", "entries"),
    }
}

/// Formats `261/629 MB`, or `8.5 MB/1.2 GB` where the units differ.
pub(super) fn bytes_of((done, all): (u64, Option<u64>)) -> String {
    let moved = bytes(done);
    let Some(all) = all.map(|all| bytes(all.max(done))) else { return moved };
    match (moved.split_once(' '), all.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}/{all}"),
        (Some(_) | None, Some(_) | None) => format!("{moved}/{all}"),
    }
}

//! Formats a comparison for a terminal: the answer first, then the causes, the wall time and the operations.

use ferry_io::Route;
use ferry_trace::Trace;
use ferry_trace::diff::{Basis, Cause, Contribution, Diff, Part, Run, State, Subject};
use ferry_trace::model::Lost;

use crate::layout::wrapped;
use crate::trace::figures::{command_line, printable, share, time};
use crate::units::{count, counted};

/// Differences below this share of A are no evidence.
const LEAST_PERCENT: u64 = 3;
/// Columns between two columns of a table.
const GAP: usize = 2;
/// Fewest columns for words behind a table.
const LEAST_WORDS: usize = 24;

pub(super) fn of(diff: &Diff, traces: [&Trace; 2], columns: usize) -> String {
    let parts = [
        wrapped("", &answer(diff), 0, columns) + "\n" + &warnings(diff, traces, columns),
        origin(traces, columns),
        causes(diff, columns),
        wall_time(diff, columns),
        operations(diff),
        moves(diff),
    ];
    let shown: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    shown.join("\n")
}

/// Formats `B took 1.80 s, 600 ms (50 %) longer than A. 92 % of it: device wait (+552 ms), mostly read on the pool.`
fn answer(diff: &Diff) -> String {
    let (before, after) = (diff.before.took, time(diff.after.took));
    let difference = diff.difference();
    let size = difference.unsigned_abs();
    if size == 0 {
        return format!("B took {after}, as long as A.");
    }
    let than = if difference < 0 { "less" } else { "longer" };
    let first = format!("B took {after}, {} ({}) {than} than A.", time(size), share(size, before));
    if u128::from(size) * 100 < u128::from(before) * u128::from(LEAST_PERCENT) {
        return format!("{first} One run of each is no evidence for so small a difference.");
    }
    let goes_along = |part: &&Part| part.difference.signum() == difference.signum();
    let largest = diff.causes.iter().filter(goes_along).max_by_key(|part| part.difference.unsigned_abs());
    largest.map_or_else(|| first.clone(), |part| format!("{first} {}", sentence(part, size)))
}

fn sentence(part: &Part, size: u64) -> String {
    let its = part.difference.unsigned_abs();
    let beginning = if its > size.saturating_add(size / 20) {
        "More than all of it".to_owned()
    } else if its >= size / 2 {
        format!("{} of it", share(its.min(size), size))
    } else {
        format!("The largest part, {}", share(its, size))
    };
    let sign = if part.difference < 0 { '-' } else { '+' };
    let mostly = part.contributions.first().filter(|first| {
        first.difference.signum() == part.difference.signum() && first.difference.unsigned_abs() >= its / 2
    });
    let mostly = mostly.and_then(|first| subject(part.cause, first.subject));
    let mostly = mostly.map(|words| format!(", mostly {words}")).unwrap_or_default();
    format!("{beginning}: {} ({sign}{}){mostly}.", part.cause.name(), time(its))
}

/// Names the origin of a part; `None` if the cause says all.
fn subject(cause: Cause, subject: Subject) -> Option<String> {
    Some(match subject {
        Subject::Operations(kind, route) => format!("{} {}", kind.name(), place(route)),
        Subject::Moved(kind, before, after) => {
            format!("{}, from {} to {}", kind.name(), noun(before), noun(after))
        }
        Subject::Replaced(before, after) => {
            format!("other kinds of operations, from {} to {}", noun(before), noun(after))
        }
        Subject::Other if cause == Cause::ProcessorTime => "between operations".to_owned(),
        Subject::Other => return None,
    })
}

fn place(route: Route) -> &'static str {
    match route {
        Route::Inline => "inline",
        Route::Ring => "on the ring",
        Route::Pool => "on the pool",
        Route::Offload => "offloaded",
    }
}

fn noun(route: Route) -> &'static str {
    match route {
        Route::Inline => "inline",
        Route::Ring => "the ring",
        Route::Pool => "the pool",
        Route::Offload => "offload",
    }
}

/// Formats why the figures may mislead.
fn warnings(diff: &Diff, traces: [&Trace; 2], columns: usize) -> String {
    let mut lines = Vec::new();
    let (in_a, in_b) = (diff.before.operations, diff.after.operations);
    if in_a.abs_diff(in_b) > in_a.max(in_b) / 20 {
        let performed = |n| counted(n, "operation", "operations");
        lines.push(format!(
            "A performed {}, and B {}: the runs may not have done the same work.",
            performed(in_a),
            performed(in_b)
        ));
    }
    let sides = [("A", &diff.before), ("B", &diff.after)].into_iter().zip(traces);
    for ((name, run), trace) in sides {
        if trace.lost != Lost::default() {
            let lost = counted(trace.lost.program.saturating_add(trace.lost.kernel), "event", "events");
            lines.push(format!("LOST: {name} lacks {lost}."));
        }
        if !run.has_kernel {
            let why =
                trace.about.missing.iter().find(|line| line.starts_with("nothing of the kernel's side"));
            let why = why.map_or_else(|| "it is a simulation".to_owned(), |line| printable(line));
            lines.push(format!("{name} does not show which calls slept ({why})."));
        }
    }
    if diff.basis == Basis::Program {
        lines.push("So long calls count as device wait, even if they waited for a processor.".to_owned());
    }
    lines.iter().map(|line| wrapped("", line, 0, columns) + "\n").collect()
}

fn origin([a, b]: [&Trace; 2], columns: usize) -> String {
    let line = |name: &str, trace: &Trace| wrapped(name, &command_line(&trace.about.command), 3, columns);
    format!("{}\n{}\n", line("A ", a), line("B ", b))
}

fn causes(diff: &Diff, columns: usize) -> String {
    let difference = diff.difference();
    let mut rows = vec![["Causes", "difference", "share"].map(str::to_owned).to_vec()];
    rows.extend(diff.causes.iter().map(|part| {
        vec![part.cause.name().to_owned(), signed(part.difference), percent(part.difference, difference)]
    }));
    let largest = diff.causes.iter().map(|part| {
        let first = part.contributions.first().filter(|first| is_shown(first, difference));
        let words = first.and_then(|first| Some((first, subject(part.cause, first.subject)?)));
        words.map_or_else(String::new, |(first, words)| format!("{words}: {}", signed(first.difference)))
    });
    let words: Vec<String> = std::iter::once("largest part".to_owned()).chain(largest).collect();
    with_words(&table(&rows), &words, columns)
}

/// Returns true for at least 1 % of the difference.
fn is_shown(part: &Contribution, difference: i64) -> bool {
    u128::from(part.difference.unsigned_abs()) * 100 >= u128::from(difference.unsigned_abs())
}

/// Puts words behind the lines of a table, or below them if there is no room.
fn with_words(lines: &[String], words: &[String], columns: usize) -> String {
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (number, (line, words)) in lines.iter().zip(words).enumerate() {
        if words.is_empty() {
            out += line;
        } else if width + GAP + LEAST_WORDS <= columns {
            out += &wrapped(&format!("{line:<width$} "), words, width + GAP, columns);
        } else {
            out += line;
            if number > 0 {
                out.push('\n');
                out += &wrapped(" ", words, GAP, columns);
            }
        }
        out.push('\n');
    }
    out
}

fn wall_time(diff: &Diff, columns: usize) -> String {
    let mut rows = vec![["Wall time", "A", "B", "difference"].map(str::to_owned).to_vec()];
    let states = diff.before.states.into_iter().zip(diff.after.states);
    rows.extend(State::ALL.into_iter().zip(states).map(|(state, (a, b))| {
        let difference = i64::try_from(i128::from(b) - i128::from(a)).unwrap_or(i64::MAX);
        vec![state.name().to_owned(), time(a), time(b), signed(difference)]
    }));
    let legend = "Each moment counts once, in the first row that applies. Processor: a thread runs or is ready \
                  to run. Device: an operation is performed while its thread sleeps. Hand-over: an operation \
                  or its result waits.";
    lines(&rows) + &wrapped("", legend, 0, columns) + "\n"
}

fn operations(diff: &Diff) -> String {
    let runs = [&diff.before, &diff.after];
    if runs.iter().all(|run| run.operations == 0 && run.handed_over.to_kernel_workers == 0) {
        return String::new();
    }
    let row = |name: &str, of: &dyn Fn(&Run) -> String| {
        let cells = runs.map(of);
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let mean = |run: &Run, of: fn((u64, u64)) -> u64| {
        run.handed_over.means().map_or_else(|| "-".to_owned(), |means| time(of(means)))
    };
    lines(&[
        ["Operations", "A", "B"].map(str::to_owned).to_vec(),
        row("performed", &|run| count(run.operations)),
        row("handed to the pool", &|run| count(run.handed_over.to_pool)),
        row("handed to a ring", &|run| count(run.handed_over.to_ring)),
        row("to kernel workers", &|run| count(run.handed_over.to_kernel_workers)),
        row("until begun, mean", &|run| mean(run, |(begun, _)| begun)),
        row("until taken, mean", &|run| mean(run, |(_, taken)| taken)),
    ])
}

fn moves(diff: &Diff) -> String {
    if diff.moves.is_empty() {
        return String::new();
    }
    let mut rows = vec![["Moved", "operations", "difference"].map(str::to_owned).to_vec()];
    rows.extend(diff.moves.iter().map(|its| {
        let name = format!("{}, {} to {}", its.kind.name(), its.before.name(), its.after.name());
        vec![name, count(its.operations), signed(its.difference)]
    }));
    lines(&rows)
}

/// Formats rows: the first column is text, the others are figures.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut out = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            out += &if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        out.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn lines(rows: &[Vec<String>]) -> String {
    table(rows).into_iter().map(|line| line + "\n").collect()
}

fn signed(difference: i64) -> String {
    let size = time(difference.unsigned_abs());
    if difference < 0 { format!("-{size}") } else { size }
}

/// Formats a part of a difference as a percentage; negative for one in the other direction.
fn percent(part: i64, whole: i64) -> String {
    let size = share(part.unsigned_abs(), whole.unsigned_abs());
    let is_against = part.signum() * whole.signum() < 0 && !size.starts_with('<');
    if is_against { format!("-{size}") } else { size }
}

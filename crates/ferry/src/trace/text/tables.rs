//! Formats the tables of operations: by route, phase, kind and reason, the longest ones, and errors.

use ferry_lab::table::Table;
use ferry_trace::Summary;
use ferry_trace::model::{Operation, Trace};
use ferry_trace::summary::{Phases, Place, RouteTimes, Times, duration};

use super::page::{Page, whole};
use crate::trace::figures::{extent, name, share, time};
use crate::units::{bytes, count};

/// Columns before an operation's file.
const INDENT: usize = 2;
/// Fewest columns of a file's name beside other words.
const LEAST_NAME: usize = 16;

pub(super) fn spread(times: &Times) -> [String; 3] {
    [times.median, times.p99, times.max].map(time)
}

pub(super) fn routes(page: Page, summary: &Summary) -> String {
    if summary.routes.is_empty() {
        return String::new();
    }
    let columns = ["route", "operations", "time", "share", "median", "p99", "slowest"];
    let mut table = Table::new("Time by route, from request to result", &columns);
    for RouteTimes { route, times, .. } in &summary.routes {
        let mut row = vec![
            route.name().to_owned(),
            count(times.count),
            time(times.total),
            share(times.total, summary.time()),
        ];
        row.extend(spread(times));
        table.row(row);
    }
    page.table(&table, &[5, 4, 6, 3])
}

pub(super) fn phases(page: Page, summary: &Summary) -> String {
    if summary.routes.is_empty() {
        return String::new();
    }
    let is_known = summary.routes.iter().all(|route| route.phases.unknown == 0);
    let mut columns = vec!["route", "queued", "running", "not taken"];
    columns.extend((!is_known).then_some("either of these"));
    let mut table = Table::new("Time by phase", &columns);
    for RouteTimes { route, times, phases } in &summary.routes {
        let Phases { queued, running, untaken, unknown } = *phases;
        let part = |part| format!("{} {:>6}", time(part), share(part, times.total));
        let mut row = vec![route.name().to_owned()];
        row.extend([queued, running, untaken].map(part));
        row.extend((!is_known).then(|| part(unknown)));
        table.row(row);
    }
    page.table(&table, &[3, 1, 4])
}

pub(super) fn kinds(page: Page, summary: &Summary) -> String {
    if summary.kinds.is_empty() {
        return String::new();
    }
    let columns = ["kind", "operations", "failed", "time", "share", "median", "p99", "slowest"];
    let mut table = Table::new("Time by kind of operation", &columns);
    for kind in &summary.kinds {
        let times = &kind.times;
        let mut row = vec![kind.kind.name().to_owned(), count(times.count), count(kind.failed)];
        row.extend([time(times.total), share(times.total, summary.time())]);
        row.extend(spread(times));
        table.row(row);
    }
    page.table(&table, &[6, 5, 7, 2, 4])
}

pub(super) fn reasons(page: Page, summary: &Summary) -> String {
    if summary.reasons.is_empty() {
        return String::new();
    }
    let mut table = Table::new("Reasons for routes", &["reason", "route", "operations", "share"]);
    let mut meanings: Vec<(&str, &str)> = Vec::new();
    for (route, reason, n) in &summary.reasons {
        let (short, meaning) = (reason.name(), reason.why());
        if !meanings.contains(&(short, meaning)) {
            meanings.push((short, meaning));
        }
        let share = share(*n, summary.operations);
        table.row(vec![short.to_owned(), route.name().to_owned(), count(*n), share]);
    }
    format!("{}\n{}", page.table(&table, &[3]), page.legend(&meanings))
}

/// Formats two lines for each operation: its times, then its file, size, offset, route and reason.
pub(super) fn longest(page: Page, trace: &Trace, summary: &Summary) -> String {
    let found: Vec<&Operation> =
        summary.longest.iter().filter_map(|&index| trace.operations.get(index)).collect();
    if found.is_empty() {
        return String::new();
    }
    let columns = ["operation", "took", "queued", "running", "not taken", "at"];
    let mut table = Table::new("Longest operations", &columns);
    for operation in &found {
        let phases = Phases::of_one(operation).unwrap_or_default();
        let is_known = operation.completed.is_some();
        let times = [
            duration(operation),
            Some(phases.queued),
            is_known.then_some(phases.running),
            is_known.then_some(phases.untaken),
            Some(operation.asked),
        ];
        let mut row = vec![operation.kind.name().to_owned()];
        row.extend(times.map(|nanos| nanos.map_or_else(|| "?".to_owned(), time)));
        table.row(row);
    }
    let text = page.table(&table, &[4, 2, 5]);
    let lines: Vec<&str> = text.lines().collect();
    let (head, rows) = lines.split_at(lines.len().saturating_sub(found.len()));
    let mut out: String = head.iter().map(|line| format!("{line}\n")).collect();
    for (row, operation) in rows.iter().zip(found) {
        out += &format!("{row}\n{}", page.entry(" ", &subject(page, trace, operation)));
    }
    out
}

/// Formats `'a/b', 4,096 bytes at offset 0; pool (missed)`, to be broken only between these parts.
fn subject(page: Page, trace: &Trace, operation: &Operation) -> String {
    let extent = extent(operation).iter().map(|part| whole(part)).collect::<Vec<_>>().join(" ");
    let decided = format!("{} ({})", operation.route.name(), operation.reason.name());
    let path = Place::of(trace, operation).path();
    // The name has the rest of the line, or a line of its own.
    let others = INDENT + ", ".len() + extent.len() + "; ".len() + decided.len();
    let rest = page.columns().saturating_sub(others);
    let room = if rest < LEAST_NAME { page.columns().saturating_sub(INDENT + ",".len()) } else { rest };
    let file = if path.is_empty() { path } else { whole(&name(&path, room, page.glyphs)) };
    let known: Vec<String> = [file, extent].into_iter().filter(|part| !part.is_empty()).collect();
    let semicolon = if known.is_empty() { "" } else { "; " };
    format!("{}{semicolon}{}", known.join(", "), whole(&decided))
}

pub(super) fn ways(page: Page, summary: &Summary) -> String {
    if summary.ways.is_empty() {
        return String::new();
    }
    let columns = ["calls", "pieces", "trials", "bytes", "time", "speed"];
    let mut table = Table::new("Calls that moved the bytes of large files", &columns);
    for way in &summary.ways {
        let speed = way.speed().map_or_else(|| "?".to_owned(), |speed| format!("{}/s", bytes(speed)));
        table.row(vec![
            way.way.calls(),
            count(way.pieces),
            count(way.trials),
            bytes(way.bytes),
            time(way.took),
            speed,
        ]);
    }
    page.table(&table, &[2, 1, 4, 3])
}

pub(super) fn errors(page: Page, summary: &Summary) -> String {
    let named = |error: i32| {
        let text = std::io::Error::from_raw_os_error(error).to_string();
        text.split(" (os error").next().unwrap_or(&text).to_owned()
    };
    let rows: Vec<(String, u64)> = summary.errors.iter().map(|(error, n)| (named(*error), *n)).collect();
    page.counts("Errors", "operations", &rows)
}

//! `--stats` and the closing line.

use std::collections::BTreeMap;
use std::time::Duration;

use ferry_copy::{Method, Summary};
use ferry_io::{Operation, Route, Tried};
use serde::Serialize;

use super::ways;
use crate::layout::wrapped;
use crate::progress::Counts;
use crate::progress::ending::{self, Cause, Incomplete};
use crate::units::{bytes, count, counted, per_second, rate, ratio, real, time};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatsFormat {
    /// Lines for people, on standard error.
    Text,
    /// One JSON object in one line, on standard output.
    Json,
}

impl StatsFormat {
    pub(crate) const NAMES: [(&str, Self); 2] = [("text", Self::Text), ("json", Self::Json)];
}

/// Formats `copied 60,123 entries, 851 MB in 1.2 s (709 MB/s)`, in lines of at most `columns`. After a run that ended early
/// the line has `reached`, the figures of progress: those of failed entries and incomplete files are among them. `way_on` is
/// the option with which the same command continues: an empty one if it lacks nothing, `None` if it can't continue.
pub(crate) fn closing(summary: &Summary, reached: &Counts, way_on: Option<&str>, columns: usize) -> String {
    let (moved, took) = (summary.bytes(), time(summary.wall));
    let cause = cause(summary);
    let mut line = match cause {
        Some(cause) => {
            let (why, figures) = (cause.text(), reached.text());
            format!("{why} {figures} in {took} ({})", rate(reached.bytes, summary.wall))
        }
        None => {
            let what = counted(entries(summary), "entry", "entries");
            format!("copied {what}, {} in {took} ({})", bytes(moved), rate(moved, summary.wall))
        }
    };
    if summary.failed > 0 {
        line += &format!(", {} failed", count(summary.failed));
    }
    if summary.unfinished > 0 {
        line += &format!(", {} left incomplete", count(summary.unfinished));
    }
    if let Some(cause) = cause {
        // The bytes include those of targets that were left incomplete: their number is not known.
        let removed = if summary.unfinished > 0 { 0 } else { reached.bytes.saturating_sub(moved) };
        line += &format!("; {}", Incomplete { removed, kept: 0 }.text());
        if let Some(option) = way_on {
            let option = Some(option).filter(|option| !option.is_empty());
            line += &format!("; {}", ending::way_on(cause, option));
        }
    }
    wrapped("", &line, 2, columns)
}

/// Returns why a copy ended early.
pub(crate) fn cause(summary: &Summary) -> Option<Cause> {
    match (summary.lost, summary.out_of_space, summary.interrupted) {
        (Some(side), _, _) => Some(Cause::Device(side)),
        (None, true, _) => Some(Cause::Space),
        (None, false, true) => Some(Cause::Signal),
        (None, false, false) => (summary.ended_operands > 0).then_some(Cause::Operand),
    }
}

fn entries(summary: &Summary) -> u64 {
    summary.files + summary.directories + summary.symlinks + summary.hard_links + summary.specials
}

/// Returns a line for each figure; longer ones are continued below.
pub(crate) fn text(summary: &Summary, columns: usize) -> String {
    let io = &summary.io;
    let mut lines = Lines { text: String::new(), columns };
    lines.add("entries", &entries_text(summary));
    lines.add("bytes", &format!("{} ({})", count(summary.bytes()), bytes(summary.bytes())));
    lines.add("wall time", &format!("{}, {}", time(summary.wall), rate(summary.bytes(), summary.wall)));
    let total = Route::ALL.iter().map(|route| io.by_route(*route)).sum();
    lines.add("operations", &format!("{}: {}", count(total), routes_text(|route| io.by_route(route))));
    for (index, operation) in Operation::ALL.iter().enumerate() {
        let row = io.operations[index];
        if row.iter().any(|n| *n > 0) {
            let by_route = routes_text(|route| of_route(&row, route));
            lines.add(&format!("  {}", operation.name()), &by_route);
        }
    }
    let each =
        ratio(io.submitted, io.submissions).map_or(String::new(), |each| format!(", {each} operations each"));
    let enters = counted(io.ring_enters, "ring enter", "ring enters");
    lines.add("submissions", &format!("{}{each}; {enters}", count(io.submissions)));
    lines.add("system calls", &count(io.system_calls));
    let handovers = io.kernel_worker_handovers.map_or_else(|| "not counted".to_owned(), count);
    lines.add("to kernel workers", &handovers);
    lines.add("not cached", &count(io.misses));
    lines.add("pool requests", &count(io.pool_requests));
    for (method, files, moved) in methods(summary).filter(|(_, files, moved)| files + moved > 0) {
        lines.add(&format!("by {method}"), &format!("{}, {}", counted(files, "file", "files"), bytes(moved)));
    }
    for tried in summary.ways.iter().flatten() {
        lines.add(&format!("  {}", tried.way.name()), &bytes(tried.bytes));
    }
    lines.add("backend", &format!("{}: {}", io.backend, io.backend_reason));
    lines.add("workers", &format!("{}, pool threads {}", count(io.workers), count(io.pool_threads)));
    lines.add("peak memory", &peak_memory().map_or_else(|| "unknown".to_owned(), bytes));
    lines.text
}

struct Lines {
    text: String,
    columns: usize,
}

impl Lines {
    fn add(&mut self, name: &str, value: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &wrapped(&format!("{name:<18}"), value, 19, self.columns);
    }
}

fn entries_text(summary: &Summary) -> String {
    let kinds = [
        (summary.files, "file", "files"),
        (summary.directories, "directory", "directories"),
        (summary.symlinks, "symbolic link", "symbolic links"),
        (summary.hard_links, "hard link", "hard links"),
        (summary.specials, "special file", "special files"),
    ];
    let made: Vec<_> =
        kinds.iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| counted(*n, one, many)).collect();
    let made = if made.is_empty() { String::new() } else { format!(" ({})", made.join(", ")) };
    let (skipped, failed) = (count(summary.skipped), count(summary.failed));
    format!("{}{made}, {skipped} skipped, {failed} failed", count(entries(summary)))
}

fn routes_text(n: impl Fn(Route) -> u64) -> String {
    let taken: Vec<_> = Route::ALL
        .iter()
        .filter(|route| n(**route) > 0)
        .map(|route| format!("{} {}", route.name(), count(n(*route))))
        .collect();
    if taken.is_empty() { "none".to_owned() } else { taken.join(", ") }
}

fn of_route(row: &[u64; Route::ALL.len()], route: Route) -> u64 {
    Route::ALL.iter().position(|other| *other == route).map_or(0, |index| row[index])
}

fn methods(summary: &Summary) -> impl Iterator<Item = (Method, u64, u64)> {
    let counts = summary.files_by_method.into_iter().zip(summary.bytes_by_method);
    Method::ALL.into_iter().zip(counts).map(|(method, (files, moved))| (method, files, moved))
}

#[derive(Serialize)]
struct Report<'a> {
    entries: u64,
    files: u64,
    directories: u64,
    symlinks: u64,
    hard_links: u64,
    specials: u64,
    skipped: u64,
    failed: u64,
    unfinished: u64,
    interrupted: bool,
    out_of_space: bool,
    bytes: u64,
    wall_seconds: f64,
    bytes_per_second: Option<u64>,
    operations: u64,
    operations_by_route: BTreeMap<&'static str, u64>,
    operations_by_kind: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    submissions: u64,
    submitted: u64,
    ring_upkeep: u64,
    operations_per_submission: Option<f64>,
    ring_enters: u64,
    system_calls: u64,
    kernel_worker_handovers: Option<u64>,
    misses: u64,
    pool_requests: u64,
    methods: BTreeMap<&'static str, MethodReport>,
    ways: Vec<Vec<WayReport>>,
    backend: &'a str,
    backend_reason: &'a str,
    workers: u64,
    pool_threads: u64,
    peak_memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct WayReport {
    way: &'static str,
    bytes: u64,
    seconds: f64,
    bytes_per_second: u64,
    /// Its time divided by that of the preferred way, when they were last compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative_time: Option<f64>,
}

#[derive(Serialize)]
struct MethodReport {
    files: u64,
    bytes: u64,
}

pub(crate) fn json(summary: &Summary) -> String {
    // Serialization to a string cannot fail here.
    serde_json::to_string(&report(summary)).unwrap_or_default()
}

fn way_report(tried: &Tried) -> WayReport {
    let seconds = Duration::from_nanos(tried.took_ns).as_secs_f64();
    WayReport {
        way: tried.way.name(),
        bytes: tried.bytes,
        seconds,
        bytes_per_second: tried.speed(),
        relative_time: ways::relative_time(tried),
    }
}

fn report(summary: &Summary) -> Report<'_> {
    let io = &summary.io;
    let by_route: BTreeMap<_, _> =
        Route::ALL.into_iter().map(|route| (route.name(), io.by_route(route))).collect();
    let kinds = Operation::ALL.iter().zip(&io.operations).filter(|(_, row)| row.iter().any(|n| *n > 0));
    let by_kind = kinds.map(|(operation, row)| {
        let routes = Route::ALL.into_iter().map(|route| (route.name(), of_route(row, route))).collect();
        (operation.name(), routes)
    });
    let each = (io.submissions > 0).then(|| real(io.submitted) / real(io.submissions));
    Report {
        entries: entries(summary),
        files: summary.files,
        directories: summary.directories,
        symlinks: summary.symlinks,
        hard_links: summary.hard_links,
        specials: summary.specials,
        skipped: summary.skipped,
        failed: summary.failed,
        unfinished: summary.unfinished,
        interrupted: summary.interrupted,
        out_of_space: summary.out_of_space,
        bytes: summary.bytes(),
        wall_seconds: summary.wall.as_secs_f64(),
        bytes_per_second: per_second(summary.bytes(), summary.wall),
        operations: by_route.values().sum(),
        operations_by_route: by_route,
        operations_by_kind: by_kind.collect(),
        submissions: io.submissions,
        submitted: io.submitted,
        ring_upkeep: io.ring_upkeep,
        operations_per_submission: each,
        ring_enters: io.ring_enters,
        system_calls: io.system_calls,
        kernel_worker_handovers: io.kernel_worker_handovers,
        misses: io.misses,
        pool_requests: io.pool_requests,
        methods: methods(summary)
            .map(|(method, files, bytes)| (method.name(), MethodReport { files, bytes }))
            .collect(),
        ways: summary.ways.iter().map(|tried| tried.iter().map(way_report).collect()).collect(),
        backend: io.backend,
        backend_reason: &io.backend_reason,
        workers: io.workers,
        pool_threads: io.pool_threads,
        peak_memory_bytes: peak_memory(),
    }
}

/// Peak resident memory in bytes (`VmHWM` of proc_pid_status(5)).
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

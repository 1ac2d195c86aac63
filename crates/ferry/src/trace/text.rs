//! Formats a summary for a terminal of 80 columns.

use std::fmt::Write;

use ferry_lab::clock;
use ferry_lab::table::Table;
use ferry_trace::model::{Operation, SubmitReason, Trace};
use ferry_trace::summary::{Basis, Depth, Phases, RouteTimes, Times, duration};
use ferry_trace::{Summary, model};

use super::figures::{bar, command_line, name, share, sparkline, time};
use crate::units::{bytes, count, counted, ratio};

/// Number of intervals for depths over time, one character each.
pub(super) const SLOTS: usize = 46;
const WIDTH: usize = 80;
const BAR: usize = 24;
/// Width of the names of an operation and its fiber, in characters.
const NAMES: usize = 27;

pub(super) fn of(trace: &Trace, summary: &Summary) -> String {
    let mut text = head(trace, summary);
    let parts = [
        routes(summary),
        phases(&summary.routes),
        kinds(summary),
        reasons(summary),
        longest(trace, summary),
        ways(summary),
        errors(summary),
        requests(summary),
        batches(summary),
        depths(&summary.depths, trace.about.took),
        threads(trace, summary),
        causes(summary),
        timelines(summary),
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        text.push('\n');
        text += part;
    }
    text
}

fn head(trace: &Trace, summary: &Summary) -> String {
    let about = &trace.about;
    let mut text = format!("{}\n", command_line(&about.command));
    if !about.run.is_empty() {
        add(&mut text, &format!("recorded of {}", printable(&about.run)));
    }
    let backend =
        if about.backend.is_empty() { String::new() } else { format!(", backend {}", about.backend) };
    let processors = counted(about.processors.into(), "processor", "processors");
    let began = clock::text(u128::from(about.began / 1_000_000));
    add(
        &mut text,
        &format!("{began}, ferry {}, Linux {}, {processors}{backend}", about.recorder, about.kernel),
    );
    let fibers = counted(summary.fibers, "fiber", "fibers");
    let cancelled = if summary.cancelled == 0 {
        String::new()
    } else {
        format!(", {} scopes cancelled", count(summary.cancelled))
    };
    let what = if trace.operations.is_empty() {
        counted(u64::try_from(trace.requests.len()).unwrap_or(u64::MAX), "request", "requests")
    } else {
        format!("{}, {fibers}{cancelled}", counted(summary.operations, "operation", "operations"))
    };
    add(&mut text, &format!("{}, {}, {what}", time(about.took), counted(summary.events, "event", "events")));
    let left = [(summary.unfinished, "pending when the recording ended"), (summary.abandoned, "abandoned")];
    for (n, what) in left.into_iter().filter(|(n, _)| *n > 0) {
        add(&mut text, &format!("{} {what}", counted(n, "operation", "operations")));
    }
    if trace.lost != model::Lost::default() {
        let (program, kernel) = (count(trace.lost.program), count(trace.lost.kernel));
        add(
            &mut text,
            &format!("LOST: {program} events of the program and {kernel} of the kernel, for lack of room;"),
        );
        add(&mut text, "      the figures below lack them");
    }
    for line in &about.missing {
        add(&mut text, &format!("not recorded: {}", printable(line)));
    }
    text
}

fn add(text: &mut String, line: &str) {
    writeln!(text, "{line}").unwrap_or_default();
}

/// Replaces control characters, which a terminal would obey.
pub(super) fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn spread(times: &Times) -> [String; 3] {
    [times.median, times.p99, times.max].map(time)
}

fn routes(summary: &Summary) -> String {
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
    table.text()
}

fn phases(routes: &[RouteTimes]) -> String {
    if routes.is_empty() {
        return String::new();
    }
    let is_known = routes.iter().all(|route| route.phases.unknown == 0);
    let mut columns = vec!["route", "queued", "running", "not taken"];
    columns.extend((!is_known).then_some("either of these"));
    let mut table = Table::new("Time by phase", &columns);
    for RouteTimes { route, times, phases } in routes {
        let Phases { queued, running, untaken, unknown } = *phases;
        let part = |part| format!("{} {:>6}", time(part), share(part, times.total));
        let mut row = vec![route.name().to_owned()];
        row.extend([queued, running, untaken].map(part));
        row.extend((!is_known).then(|| part(unknown)));
        table.row(row);
    }
    table.text()
}

fn kinds(summary: &Summary) -> String {
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
    table.text()
}

fn reasons(summary: &Summary) -> String {
    if summary.reasons.is_empty() {
        return String::new();
    }
    let mut text = "Reasons for routes\n".to_owned();
    add(&mut text, &format!("{:<8}{:>10}  {:>5}", "route", "operations", "share"));
    for (route, reason, n) in &summary.reasons {
        let figures = format!("{:<8}{:>10}  {:>5}", route.name(), count(*n), share(*n, summary.operations));
        let indent = " ".repeat(figures.chars().count());
        for (index, line) in wrapped(reason.why(), WIDTH - indent.len() - 2).iter().enumerate() {
            add(&mut text, &format!("{}  {line}", if index == 0 { &figures } else { &indent }));
        }
    }
    text
}

/// Wraps words to lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Formats a table of counts with shares and bars of at most `width` characters.
fn counts(title: &str, unit: &str, rows: Vec<(String, u64)>, width: usize) -> String {
    let whole: u64 = rows.iter().map(|(_, n)| n).sum();
    if whole == 0 {
        return String::new();
    }
    let most = rows.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let mut table = Table::new(title, &["", unit, "share"]);
    table.rows = rows.iter().map(|(name, n)| vec![name.clone(), count(*n), share(*n, whole)]).collect();
    let lines = table.text();
    // The title and the header have no bar.
    let bars = std::iter::repeat_n(String::new(), 2).chain(rows.iter().map(|(_, n)| bar(*n, most, width)));
    let lines =
        lines.lines().zip(bars).map(|(line, bar)| format!("{line}  {bar}").trim_end().to_owned() + "\n");
    lines.collect()
}

fn longest(trace: &Trace, summary: &Summary) -> String {
    let found: Vec<&Operation> =
        summary.longest.iter().filter_map(|&index| trace.operations.get(index)).collect();
    if found.is_empty() {
        return String::new();
    }
    let mut text = "Longest operations\n".to_owned();
    add(&mut text, "     took    queued   running  not taken         at  operation");
    for operation in found {
        let phases = Phases::of_one(operation).unwrap_or_default();
        let known = operation.completed.is_some();
        let times = [
            (9, duration(operation)),
            (10, Some(phases.queued)),
            (10, known.then_some(phases.running)),
            (11, known.then_some(phases.untaken)),
            (11, Some(operation.asked)),
        ];
        let cells =
            times.map(|(width, nanos)| format!("{:>width$}", nanos.map_or_else(|| "?".to_owned(), time)));
        add(&mut text, &format!("{}  {}", cells.concat(), title(trace, operation, NAMES)));
        add(&mut text, &format!("    {}: {}", operation.route.name(), operation.reason.why()));
    }
    text
}

/// Formats `read 'file' of 'fiber'`.
pub(super) fn title(trace: &Trace, operation: &Operation, width: usize) -> String {
    let kind = operation.kind.name();
    let fiber = operation.fiber.and_then(|index| trace.fibers.get(usize::try_from(index).ok()?));
    let fiber =
        fiber.map(|fiber| fiber.name.as_str()).filter(|fiber| !fiber.is_empty() && *fiber != operation.name);
    let left = width.saturating_sub(kind.chars().count() + 1).max(8);
    match (operation.name.is_empty(), fiber) {
        (true, None) => kind.to_owned(),
        (false, None) => format!("{kind} {}", name(&operation.name, left)),
        (true, Some(fiber)) => format!("{kind} of {}", name(fiber, left.saturating_sub(3))),
        (false, Some(fiber)) => {
            let each = left.saturating_sub(4) / 2;
            format!("{kind} {} of {}", name(&operation.name, each), name(fiber, each))
        }
    }
}

fn ways(summary: &Summary) -> String {
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
    table.text()
}

fn errors(summary: &Summary) -> String {
    let named = |error: i32| {
        let text = std::io::Error::from_raw_os_error(error).to_string();
        text.split(" (os error").next().unwrap_or(&text).to_owned()
    };
    let rows = summary.errors.iter().map(|(error, n)| (named(*error), *n)).collect();
    counts("Errors", "operations", rows, BAR)
}

fn requests(summary: &Summary) -> String {
    if summary.requests.is_empty() {
        return String::new();
    }
    let columns = ["opcode", "requests", "handed over", "failed", "time", "median", "p99", "slowest"];
    let mut table = Table::new("Requests of rings, seen by the kernel", &columns);
    for opcode in &summary.requests {
        let mut row = vec![printable(&opcode.opcode)];
        row.extend([opcode.count, opcode.handed_over, opcode.failed].map(count));
        if let Some(times) = &opcode.times {
            row.push(time(times.total));
            row.extend(spread(times));
        }
        row.resize(columns.len(), String::new());
        table.row(row);
    }
    let mut text = table.text();
    if let Some(found) = summary.hand_overs {
        let (given, all) = (count(found.handed_over), counted(found.requests, "request", "requests"));
        add(&mut text, &format!("{given} of {all} were handed to kernel workers"));
    }
    text
}

fn batches(summary: &Summary) -> String {
    let Some(batches) = &summary.batches else { return String::new() };
    let each = ratio(batches.requests, batches.count).unwrap_or_default();
    let mut text = format!(
        "{} of {} submitted to rings, {each} each, {} at most\n",
        counted(batches.count, "batch", "batches"),
        counted(batches.requests, "request", "requests"),
        count(batches.largest.into())
    );
    if let Some(enters) = &summary.enters {
        let calls = counted(enters.count, "call", "calls");
        let (waits, slept) = (count(enters.waits), count(enters.slept));
        add(&mut text, &format!("{calls} of io_uring_enter(2), {waits} to wait, {slept} of which slept"));
    }
    let sizes = batches.histogram.iter().map(|bar| {
        let size = if bar.least == bar.most {
            count(bar.most.into())
        } else {
            format!("{} to {}", count(bar.least.into()), count(bar.most.into()))
        };
        (size, bar.count)
    });
    text.push('\n');
    text += &counts("Requests per batch", "batches", sizes.collect(), BAR);
    text.push('\n');
    let why = batches.why.iter().map(|(why, n)| (because(*why).to_owned(), *n));
    text + &counts("Reasons for submitting batches", "batches", why.collect(), BAR)
}

pub(super) fn because(why: SubmitReason) -> &'static str {
    match why {
        SubmitReason::Full => "full: no room for more",
        SubmitReason::Idle => "idle: no fiber could run",
        SubmitReason::Forced => "forced: submitted early",
    }
}

fn depths(depths: &[Depth], took: u64) -> String {
    if depths.is_empty() {
        return String::new();
    }
    let mut text = "In flight or in use, over time\n".to_owned();
    add(&mut text, &format!("{:<11}  {:>7}  {:>7}", "", "peak", "mean"));
    for depth in depths {
        let tenths = (depth.area * 10 + u128::from(took) / 2).checked_div(u128::from(took)).unwrap_or(0);
        let mean = format!("{}.{}", tenths / 10, tenths % 10);
        let (name, peak) = (depth.series.name(), count(depth.peak));
        add(&mut text, format!("{name:<11}  {peak:>7}  {mean:>7}  {}", sparkline(&depth.peaks)).trim_end());
    }
    text
}

fn threads(trace: &Trace, summary: &Summary) -> String {
    let busy: Vec<_> = summary.threads.iter().filter(|its| its.operations > 0 || its.busy > 0).collect();
    if busy.is_empty() {
        return String::new();
    }
    let columns = ["thread", "operations", "running", "share", model::IDLE];
    let mut table = Table::new("Threads", &columns);
    for its in busy {
        let named = usize::try_from(its.thread).ok().and_then(|index| trace.threads.get(index));
        let named = named.map(|thread| printable(&thread.name)).unwrap_or_default();
        let idle = its.lived.saturating_sub(its.busy);
        table.row(vec![named, count(its.operations), time(its.busy), share(its.busy, its.lived), time(idle)]);
    }
    table.text()
}

fn causes(summary: &Summary) -> String {
    let runs: u64 = summary.causes.iter().map(|cause| cause.runs).sum();
    let units: u64 = summary.causes.iter().map(|cause| cause.units).sum();
    if runs == 0 {
        return String::new();
    }
    let mut table = Table::new("Causes of task work", &["cause", "runs", "share", "units", "share"]);
    for cause in &summary.causes {
        let name = cause.cause.name().to_owned();
        table.row(vec![
            name,
            count(cause.runs),
            share(cause.runs, runs),
            count(cause.units),
            share(cause.units, units),
        ]);
    }
    table.text()
}

fn timelines(summary: &Summary) -> String {
    let Some(found) = &summary.timelines else { return String::new() };
    let unit = match found.basis {
        Basis::Operations => "operations",
        Basis::TaskWork => "units of task work",
    };
    let rows = [
        ("already in the completion queue", found.peek),
        ("found by GETEVENTS at once", found.at_once),
        ("slept for in GETEVENTS", found.slept),
        ("unknown", found.unknown),
    ];
    let rows = rows.into_iter().filter(|(name, n)| *n > 0 || *name != "unknown");
    counts("How completions were met", unit, rows.map(|(name, n)| (name.to_owned(), n)).collect(), BAR - 4)
}

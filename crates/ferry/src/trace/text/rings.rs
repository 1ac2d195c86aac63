//! Formats what rings did: requests, batches, task work, and how completions were met.

use ferry_lab::table::Table;
use ferry_trace::Summary;
use ferry_trace::summary::{Basis, Batches};

use super::page::{Page, whole};
use super::tables::spread;
use crate::trace::figures::{printable, share, time};
use crate::trace::reasons::because;
use crate::units::{count, counted, ratio};

pub(super) fn requests(page: Page, summary: &Summary) -> String {
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
    let mut text = page.table(&table, &[6, 5, 3, 7, 2]);
    if let Some(found) = summary.hand_overs {
        let (given, all) = (count(found.handed_over), counted(found.requests, "request", "requests"));
        text += &page.lines(&format!("{given} of {all} were handed to kernel workers"));
    }
    text
}

pub(super) fn batches(page: Page, summary: &Summary) -> String {
    let Some(batches) = &summary.batches else { return String::new() };
    let each = ratio(batches.requests, batches.count).unwrap_or_default();
    let mut text = page.lines(&format!(
        "{} of {} submitted to rings, {each} each, {} at most",
        counted(batches.count, "batch", "batches"),
        counted(batches.requests, "request", "requests"),
        count(batches.largest.into())
    ));
    if let Some(enters) = &summary.enters {
        let calls = counted(enters.count, "call", "calls");
        let (waits, slept) = (count(enters.waits), count(enters.slept));
        text +=
            &page.lines(&format!("{calls} of io_uring_enter(2), {waits} to wait, {slept} of which slept"));
    }
    let sizes = batches.histogram.iter().map(|bar| {
        let size = if bar.least == bar.most {
            count(bar.most.into())
        } else {
            format!("{} to {}", count(bar.least.into()), count(bar.most.into()))
        };
        (size, bar.count)
    });
    let sizes: Vec<(String, u64)> = sizes.collect();
    text.push('\n');
    text += &page.counts("Requests per batch", "batches", &sizes);
    text.push('\n');
    text + &why(page, batches)
}

/// Formats the reasons that occurred, and their meanings.
fn why(page: Page, batches: &Batches) -> String {
    let found: Vec<_> =
        batches.why.iter().filter(|(_, n)| *n > 0).map(|(why, n)| (because(*why), *n)).collect();
    let rows: Vec<(String, u64)> = found.iter().map(|((name, _), n)| ((*name).to_owned(), *n)).collect();
    let meanings: Vec<(&str, &str)> = found.iter().map(|(meaning, _)| *meaning).collect();
    let counts = page.counts("Reasons for submitting batches", "batches", &rows);
    format!("{counts}\n{}", page.legend(&meanings))
}

pub(super) fn causes(page: Page, summary: &Summary) -> String {
    let runs: u64 = summary.causes.iter().map(|cause| cause.runs).sum();
    let units: u64 = summary.causes.iter().map(|cause| cause.units).sum();
    if runs == 0 {
        return String::new();
    }
    let mut table = Table::new("Causes of task work", &["cause", "runs", "share", "units", "share"]);
    for cause in &summary.causes {
        table.row(vec![
            cause.cause.name().to_owned(),
            count(cause.runs),
            share(cause.runs, runs),
            count(cause.units),
            share(cause.units, units),
        ]);
    }
    page.table(&table, &[4, 2, 3])
}

pub(super) fn timelines(page: Page, summary: &Summary) -> String {
    let Some(found) = &summary.timelines else { return String::new() };
    let (title, unit) = match found.basis {
        Basis::Operations => ("How completions were met".to_owned(), "operations"),
        Basis::TaskWork => (format!("How completions were met, by {}", whole("units of task work")), "units"),
    };
    let rows = [
        ("already in the queue", found.peek),
        ("found by GETEVENTS at once", found.at_once),
        ("slept for in GETEVENTS", found.slept),
        ("unknown", found.unknown),
    ];
    let rows = rows.into_iter().filter(|(name, n)| *n > 0 || *name != "unknown");
    let rows: Vec<(String, u64)> = rows.map(|(name, n)| (name.to_owned(), n)).collect();
    page.counts(&title, unit, &rows)
}

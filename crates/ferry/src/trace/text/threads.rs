//! Formats what was in use over time, and the time use of threads.

use std::fmt::Write;

use ferry_lab::table::Table;
use ferry_trace::Summary;
use ferry_trace::model::{IDLE, Role, Trace};
use ferry_trace::summary::{Depth, PoolTime, ThreadTime};

use super::page::Page;
use crate::trace::figures::{printable, share, sparkline, time};
use crate::units::count;

/// Columns of the name, of the peak and of the mean in the table of depths, with the gaps behind them.
const NAME: usize = 13;
const PEAK: usize = 9;
const MEAN: usize = 9;

/// Number of intervals for depths over time, one character each.
pub(super) fn slots(page: Page) -> usize {
    let mean = if page.is_wide() { MEAN } else { 0 };
    page.columns().saturating_sub(NAME + PEAK + mean).max(1)
}

pub(super) fn depths(page: Page, depths: &[Depth], took: u64) -> String {
    if depths.is_empty() {
        return String::new();
    }
    let mut text = "In flight or in use, over time\n".to_owned();
    let mut row = |name: &str, peak: &str, mean: &str, picture: &str| {
        let mean = if page.is_wide() { format!("{mean:>7}  ") } else { String::new() };
        let line = format!("{name:<11}  {peak:>7}  {mean}{picture}");
        writeln!(text, "{}", line.trim_end()).unwrap_or_default();
    };
    row("", "peak", "mean", "");
    for depth in depths {
        let tenths = (depth.area * 10 + u128::from(took) / 2).checked_div(u128::from(took)).unwrap_or(0);
        let mean = format!("{}.{}", tenths / 10, tenths % 10);
        row(depth.series.name(), &count(depth.peak), &mean, &sparkline(&depth.peaks, page.glyphs));
    }
    text
}

/// Formats a row for each worker, and one for the pool.
pub(super) fn threads(page: Page, trace: &Trace, summary: &Summary) -> String {
    let role = |its: &ThreadTime| trace.threads.get(its.thread as usize).map(|thread| thread.role);
    let is_used = |its: &&ThreadTime| its.operations > 0 || its.busy > 0;
    let workers = summary.threads.iter().filter(|its| role(its) == Some(Role::Worker)).filter(is_used);
    let mut table = Table::new("Threads", &["thread", "operations", "running", "share", IDLE]);
    for its in workers {
        let name = trace.threads.get(its.thread as usize).map(|thread| printable(&thread.name));
        table.row(vec![
            name.unwrap_or_default(),
            count(its.operations),
            time(its.busy),
            share(its.busy, its.lived),
            time(its.lived.saturating_sub(its.busy)),
        ]);
    }
    let pool = PoolTime::of(trace, &summary.threads).filter(|pool| pool.operations > 0 || pool.busy > 0);
    if let Some(pool) = &pool {
        table.row(of_pool(pool));
    }
    if table.rows.is_empty() {
        return String::new();
    }
    let mut text = page.table(&table, &[4, 2, 1]);
    if pool.is_some_and(|pool| pool.threads > 1) {
        text += &page.lines("The pool's shares are those of its least busy, median and busiest thread.");
    }
    text
}

/// Formats a row such as `pool, 8 threads`, with the shares `3 %, 12 %, 40 %`.
fn of_pool(pool: &PoolTime) -> Vec<String> {
    let (name, shares) = if pool.threads == 1 {
        ("pool, 1 thread".to_owned(), share(pool.busy, pool.lived))
    } else {
        let shares = pool.shares.map(|(busy, lived)| share(busy, lived));
        (format!("pool, {} threads", count(pool.threads)), shares.join(", "))
    };
    vec![name, count(pool.operations), time(pool.busy), shares, time(pool.lived.saturating_sub(pool.busy))]
}

//! dd's sequential writes beside cp: document 004's upper limit, with the bytes of both counted alike.
//!
//! The document divides the bytes that cp reads and writes by those that dd writes. Here both count the bytes that they
//! write, until these are durable. Until they return, both may have written to memory only, so that share is shown
//! beside the other and decides nothing.

use std::path::Path;

use super::groups::{DD_SIZE, group_of, heading};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiments::copies::Times;
use crate::record::{Cell, Record, Run};
use crate::session::{Session, Subject};
use crate::statistics::{Interval, Summary};
use crate::table::Table;
use crate::units::figure;
use crate::verdict::{Verdict, interval};

/// Name of its group.
pub(super) const NAME: &str = "dd";
/// Measures that the comparison uses.
pub(super) const JUDGED: &[&str] = &["returned_s", "durable_s", "throughput_b_s"];
/// Bytes of one write.
const BLOCK: u64 = 1_000_000;

/// Times dd.
pub(super) fn take(session: &mut Session<'_>) -> Result<(), Failure> {
    let bytes = session.settings().number(DD_SIZE);
    if bytes == 0 {
        return Ok(());
    }
    let cell = Cell::new(&[("tree", NAME.into())], State::AsItIs).with("bytes", bytes.into());
    let Some(program) = crate::search_path::find_program("dd".as_ref()) else {
        session.leave_out(cell, "'dd' is not found on the PATH");
        return Ok(());
    };
    session.note_tool("dd", &program);
    let blocks = bytes.div_ceil(BLOCK);
    let command = Stranger::new(
        &program,
        &["if=/dev/zero", "of={target}", &format!("bs={BLOCK}"), &format!("count={blocks}")],
    );
    let subject = Subject::new(cell, |turn| {
        let target = turn.fresh("dd");
        let times = Times::take(&command, Path::new(""), &target, turn.stop());
        let removed = turn.remove(target);
        let figures = times?.figures_of(blocks * BLOCK);
        removed?;
        Ok(figures)
    });
    session.interleave(&mut [subject], &Sample::none())
}

/// Returns dd's cell.
fn dd(record: &Record) -> Option<&Cell> {
    record.find(&[("tree", NAME)])
}

/// Returns the bytes that a cell wrote a second until the end of a time, `durable_s` or `returned_s`.
fn rate(record: &Record, cell: &Cell, until: &str) -> Option<Interval> {
    // The throughput of copiers includes the bytes that they read.
    let counted = if cell.text("tree") == NAME { 1.0 } else { 2.0 };
    let of_run = |run: &Run| {
        let [throughput, returned, seconds] =
            ["throughput_b_s", "returned_s", until].map(|name| run.figures.get(name).copied());
        let seconds = seconds.filter(|seconds| *seconds > 0.0)?;
        Some(throughput? * returned? / counted / seconds)
    };
    let rates: Vec<f64> = cell.runs.iter().filter_map(of_run).collect();
    Summary::of(&rates, record.seed).map(|found| found.median)
}

/// Returns a cell's share of dd's rate. dd runs in other rounds, so the interval of its median counts, too.
fn share(record: &Record, cell: &Cell, until: &str) -> Option<Interval> {
    let dd = rate(record, dd(record)?, until).filter(|rate| rate.low > 0.0)?;
    let found = rate(record, cell, until)?;
    Some(Interval {
        middle: found.middle / dd.middle,
        low: found.low / dd.high,
        high: found.high / dd.low,
        count: found.count.min(dd.count),
    })
}

/// Table of cp's times and those that dd would need to write as many bytes.
pub(super) fn table(record: &Record) -> Option<Table> {
    let dd = rate(record, dd(record)?, "durable_s")?.middle;
    let limit = figure(dd, "B/s");
    let title = format!("dd as a limit until durable ({limit}); returned: share until both returned");
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut table = Table::new(&title, &["cp", "written", "dd's time", "cp's time", "share", "returned"]);
    for cell in record.cells.iter().filter(|cell| cell.text("tool") == "cp") {
        let Some(written) = rate(record, cell, "durable_s") else { continue };
        let Some(took) = record.summary(cell, "durable_s") else { continue };
        let took = took.median.middle;
        let bytes = written.middle * took;
        let returned = share(record, cell, "returned_s").map(|share| percent(share.middle));
        table.row(vec![
            heading(record, &group_of(cell)),
            figure(bytes, "B"),
            figure(bytes / dd, "s"),
            figure(took, "s"),
            percent(written.middle / dd),
            returned.unwrap_or_default(),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// One verdict for each of these trees with a warm copy by cp.
pub(super) fn verdicts<'t>(record: &Record, trees: impl IntoIterator<Item = &'t str>) -> Vec<Verdict> {
    if dd(record).is_none() {
        return Vec::new();
    }
    let of_tree = |tree: &'t str| {
        let cp = record.find(&[("tree", tree), ("cache", "warm"), ("tool", "cp")])?;
        let returned = share(record, cp, "returned_s").map(|share| interval(&share)).unwrap_or_default();
        Some(Verdict::below(
            "004",
            &format!("cp of {tree} writes fewer bytes a second than dd"),
            share(record, cp, "durable_s"),
            1.0,
            |share| {
                format!(
                    "cp wrote {} of dd's bytes a second until durable, {returned} until both returned; 0.64 in the document \
                     also counts the bytes that cp read",
                    interval(share)
                )
            },
        ))
    };
    trees.into_iter().filter_map(of_tree).collect()
}

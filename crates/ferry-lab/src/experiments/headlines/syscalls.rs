//! The answer of `lab syscalls`: SQPOLL beside a ring without it, the calls a block, and the submissions of dfs.

use super::common::{RETURNED, median, stated};
use crate::experiments::syscalls::program;
use crate::headline::{Headline, confidence, speed};
use crate::record::{Cell, Record};
use crate::units::figure;
use crate::verdict::middle;

const PER_SUBMISSION: &str = "operations_per_submission";

/// SQPOLL beside a ring without it, the calls a block, and the submissions of dfs: those that have figures.
pub(in crate::experiments) fn syscalls(record: &Record) -> Headline {
    let polled = ["many", "one"].into_iter().find_map(|mode| polled(record, mode));
    let plot = if polled.is_some() { "Time by block size" } else { "Operations a submission by block size" };
    let mut sentences = [polled, calls(record), submissions(record)].into_iter().flatten();
    let Some(answer) = sentences.next() else { return Headline::none("copies with SQPOLL and without") };
    let answer = Headline::new(answer).shown_by(plot.to_owned());
    sentences.fold(answer, |answer, sentence| answer.and(Some(sentence)))
}

fn find<'r>(record: &'r Record, mode: &str) -> Option<&'r Cell> {
    record.find(&[("mode", mode), ("block", "4K")])
}

fn polled(record: &Record, mode: &str) -> Option<String> {
    let ratio = speed(record, find(record, mode)?, find(record, &format!("{mode}-sqpoll"))?, RETURNED)?;
    let requests = if mode == "many" { "many requests" } else { "one request" };
    let place = format!("in a copy with {requests} in flight, blocks of 4K");
    Some(stated(record, ("SQPOLL", "a ring without it"), &place, ratio, None))
}

fn calls(record: &Record) -> Option<String> {
    let calls = figure(median(record, find(record, "one")?, "enters_per_block")?, "x");
    Some(format!("With one request at a time, a block of 4 KiB takes {calls} io_uring_enter calls"))
}

/// Submissions and requests of dfs, with the smallest block that was measured.
fn submissions(record: &Record) -> Option<String> {
    let has_figures = |cell: &&Cell| median(record, cell, PER_SUBMISSION).is_some();
    let cells = record.cells.iter().filter(|cell| cell.text("mode") == program::NAME).filter(has_figures);
    let cell = cells.min_by_key(|cell| cell.number("block_bytes"))?;
    let count = |measure: &str| Some(figure(median(record, cell, measure)?, ""));
    let shared = record.summary(cell, PER_SUBMISSION)?.median;
    let is_published = cell.text("block") == "4K" && program::scaled(record, cell).is_some();
    let published = if is_published { "; published 25" } else { "" };
    Some(format!(
        "dfs makes {} submissions for {} requests, in blocks of {}: {} requests share one ({}{published})",
        count("ring_enters")?,
        count("requests")?,
        cell.text("block"),
        middle(&shared),
        confidence(&shared, record.scale),
    ))
}

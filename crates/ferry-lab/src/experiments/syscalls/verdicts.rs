//! Compares document 000's findings, made by tracing, with the figures.

use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::units::{plain, real};
use crate::verdict::{Outcome, Verdict, interval};

use super::program;

/// Document 000's number of submissions, for files of 1 MiB in blocks of 4 KiB.
const PUBLISHED_SUBMISSIONS: f64 = 80_000.0;
const BLOCK: u64 = 4096;
/// "Roughly the same".
const SAME: (f64, f64) = (0.8, 1.25);
/// About two a block.
const TWO: (f64, f64) = (1.9, 2.2);

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let mut verdicts = vec![
        fewer_by_larger_blocks(record),
        two_a_block(record),
        shared_by_fibers(record),
        published_number(record),
    ];
    for mode in ["one", "many"] {
        verdicts.push(same_with_sqpoll(record, mode));
        verdicts.push(sqpoll_is_no_faster(record, mode));
    }
    verdicts.push(Verdict::below(
        "",
        "ferry's own choice of routes causes fewer context switches than the ring (blocks of 4 KiB, warm)",
        ratio(record, ("many", "4K"), ("auto", "4K"), "switches"),
        1.0,
        |ratio| format!("it causes {} times as many as the ring", interval(ratio)),
    ));
    verdicts.push(counters_equal_tracepoints(record));
    verdicts
}

fn cell<'r>(record: &'r Record, (mode, block): (&str, &str)) -> Option<&'r Cell> {
    record.find(&[("mode", mode), ("block", block)])
}

fn ratio(record: &Record, base: (&str, &str), other: (&str, &str), measure: &str) -> Option<Interval> {
    record.ratio(cell(record, base)?, cell(record, other)?, measure)
}

fn median(record: &Record, of: (&str, &str), measure: &str) -> Option<Interval> {
    Some(record.summary(cell(record, of)?, measure)?.median)
}

fn fewer_by_larger_blocks(record: &Record) -> Verdict {
    Verdict::below(
        "000",
        "The many io_uring_enter calls come from blocks of 4,096 bytes; blocks of 1 MiB need far fewer",
        ratio(record, ("one", "4K"), ("one", "1M"), "ring_enters"),
        0.1,
        |ratio| format!("blocks of 1 MiB need {} of the calls", interval(ratio)),
    )
}

fn two_a_block(record: &Record) -> Verdict {
    Verdict::within(
        "000",
        "With one request at a time, each block of 4,096 bytes takes two submissions: a read and a write",
        median(record, ("one", "4K"), "enters_per_block"),
        TWO,
        |found| format!("{} calls a block, including those that open and close files", interval(found)),
    )
}

fn shared_by_fibers(record: &Record) -> Verdict {
    Verdict::below(
        "",
        "Fibers share submissions: dfs, with two a folder, makes fewer calls a block than one request at a time",
        ratio(record, ("one", "4K"), (program::NAME, "4K"), "enters_per_block"),
        1.0,
        |ratio| {
            let published = PUBLISHED_SUBMISSIONS / program::published_blocks(BLOCK);
            format!("it makes {} times as many (published: {published:.2} calls a block)", interval(ratio))
        },
    )
}

/// The document does not say how many fibers its copier had. dfs has the two a folder of documents 003 and 004.
fn published_number(record: &Record) -> Verdict {
    let operations = 2.0 * program::published_blocks(BLOCK);
    let verdict = Verdict::within(
        "000",
        "3,905 files of 1 MiB in blocks of 4,096 bytes take about 80,000 submissions",
        cell(record, (program::NAME, "4K")).and_then(|cell| program::scaled(record, cell)),
        (PUBLISHED_SUBMISSIONS / 2.0, PUBLISHED_SUBMISSIONS * 2.0),
        |calls| {
            let many = median(record, ("many", "4K"), "enters_per_block");
            let many = many.map(|each| {
                let calls = plain(each.middle * program::published_blocks(BLOCK));
                format!("; ferry cp with up to 64 requests in flight takes {calls}")
            });
            format!(
                "dfs, two fibers a folder, takes {}: {:.1} of {} reads and writes share a call, {:.1} as published{}",
                interval(calls),
                operations / calls.middle,
                plain(operations),
                operations / PUBLISHED_SUBMISSIONS,
                many.unwrap_or_default(),
            )
        },
    );
    verdict.published("about 80,000")
}

fn same_with_sqpoll(record: &Record, mode: &str) -> Verdict {
    let polled = format!("{mode}-sqpoll");
    Verdict::within(
        "000",
        &format!("SQPOLL leaves the number of system calls roughly the same ({mode}, blocks of 4 KiB)"),
        ratio(record, (mode, "4K"), (&polled, "4K"), "ring_enters"),
        SAME,
        |ratio| {
            format!(
                "{} times as many: submitting needs no call, but the program still enters the kernel to sleep until \
                 a request completes",
                interval(ratio)
            )
        },
    )
}

fn sqpoll_is_no_faster(record: &Record, mode: &str) -> Verdict {
    let polled = format!("{mode}-sqpoll");
    Verdict::above(
        "000",
        &format!("SQPOLL does not improve throughput ({mode}, blocks of 4 KiB)"),
        ratio(record, (mode, "4K"), (&polled, "4K"), "returned_s"),
        1.0,
        |ratio| format!("with SQPOLL it took {} times as long", interval(ratio)),
    )
}

/// Run by run, each of the program's counters beside the tracepoint's count.
fn counters_equal_tracepoints(record: &Record) -> Verdict {
    let pairs = [
        ("ring_enters", "traced_enters"),
        ("requests", "traced_requests"),
        ("handovers", "traced_handovers"),
    ];
    let runs = record.cells.iter().flat_map(|cell| cell.runs.iter().map(move |run| (cell, run)));
    let (mut compared, mut first_difference) = (0_u64, None);
    for (cell, run) in runs {
        for (own, traced) in pairs {
            let (Some(&ours), Some(&theirs)) = (run.figures.get(own), run.figures.get(traced)) else {
                continue;
            };
            compared += 1;
            if (ours - theirs).abs() >= 0.5 {
                first_difference.get_or_insert_with(|| {
                    format!("in {} {own} is {}, {traced} {}", cell.name, plain(ours), plain(theirs))
                });
            }
        }
    }
    let (outcome, words) = match first_difference {
        _ if compared == 0 => (Outcome::NotMeasured, "the kernel did not permit tracing".to_owned()),
        Some(difference) => (Outcome::DidNotHold, difference),
        None => (Outcome::Held, format!("in all {} comparisons", plain(real(compared)))),
    };
    let finding = "The program's counters equal the kernel's tracepoints in the same run";
    Verdict::stated("", finding, outcome, words)
}

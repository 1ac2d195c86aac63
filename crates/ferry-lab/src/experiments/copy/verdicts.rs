//! Findings of documents 000, 003 and 004 about copying.

use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::verdict::{Verdict, interval};

const SMALL: &[&str] = &["small", "wide"];
const LARGE: &[&str] = &["large", "large-3905"];

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for tree in SMALL.iter().filter(|tree| has(record, tree)) {
        verdicts.extend(small(record, tree));
    }
    for tree in LARGE.iter().filter(|tree| has(record, tree)) {
        verdicts.extend(large(record, tree));
    }
    verdicts.extend(dd(record));
    verdicts.extend(ferry(record));
    verdicts
}

fn has(record: &Record, tree: &str) -> bool {
    record.find(&[("tree", tree)]).is_some()
}

fn cell<'r>(record: &'r Record, tree: &str, cache: &str, tool: &str) -> Option<&'r Cell> {
    record.find(&[("tree", tree), ("cache", cache), ("tool", tool)])
}

/// The ratio of `other`'s time to that of `base`.
fn times(record: &Record, tree: &str, cache: &str, base: &str, other: &str) -> Option<Interval> {
    record.ratio(cell(record, tree, cache, base)?, cell(record, tree, cache, other)?, "returned_s")
}

fn small(record: &Record, tree: &str) -> Vec<Verdict> {
    let words = |published: &'static str| {
        move |ratio: &Interval| format!("the copy took {} times as long as cp{published}", interval(ratio))
    };
    vec![
        Verdict::above(
            "000",
            &format!(
                "With {tree} files in a warm cache, the concurrent copy with blocks of 4,096 bytes is slower than cp"
            ),
            times(record, tree, "warm", "cp", "dfs-4K"),
            1.0,
            words(" (published: 1.81)"),
        ),
        Verdict::below(
            "000",
            &format!(
                "With {tree} files in a cold cache, the concurrent program is faster than the sequential one"
            ),
            times(record, tree, "cold", "sequential-4K", "bfs-4K")
                .or_else(|| times(record, tree, "cold", "sequential-4K", "dfs-4K")),
            1.0,
            |ratio| {
                format!(
                    "the concurrent program took {} of the sequential program's time (published: about 0.5)",
                    interval(ratio)
                )
            },
        ),
        Verdict::below(
            "000",
            &format!("With {tree} files in a cold cache, the concurrent copy is faster than cp"),
            times(record, tree, "cold", "cp", "bfs-4K")
                .or_else(|| times(record, tree, "cold", "cp", "dfs-4K")),
            1.0,
            words(""),
        ),
        Verdict::above(
            "004",
            &format!("With {tree} files in a warm cache, the sequential program is slower than cp"),
            times(record, tree, "warm", "cp", "sequential-4K"),
            1.0,
            words(" (published: 2.9)"),
        ),
        Verdict::above(
            "004",
            &format!(
                "With {tree} files in a warm cache, the program with two fibers per folder is slower than cp"
            ),
            times(record, tree, "warm", "cp", "dfs-4K"),
            1.0,
            words(" (published: 1.6)"),
        ),
    ]
}

fn large(record: &Record, tree: &str) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for cache in ["warm", "cold"] {
        let of = |base, other| times(record, tree, cache, base, other);
        verdicts.push(Verdict::above(
            "004",
            &format!(
                "With files of 1 MiB ({tree}, {cache}), copying in blocks of 4,096 bytes is slower than cp"
            ),
            of("cp", "dfs-4K"),
            1.0,
            |ratio| format!("the copy took {} times as long as cp (published: 1.4)", interval(ratio)),
        ));
        verdicts.push(Verdict::below(
            "003",
            &format!(
                "With files of 1 MiB ({tree}, {cache}), blocks of 1 MiB are faster than blocks of 4,096 bytes"
            ),
            of("dfs-4K", "dfs-1M"),
            1.0,
            |ratio| format!("blocks of 1 MiB took {} of the time", interval(ratio)),
        ));
        verdicts.push(Verdict::below(
            if tree == "large-3905" { "000" } else { "004" },
            &format!("With files of 1 MiB ({tree}, {cache}), copying in blocks of 1 MiB is faster than cp"),
            of("cp", "dfs-1M"),
            1.0,
            |ratio| {
                format!("the copy took {} of cp's time (published in document 000: 0.63)", interval(ratio))
            },
        ));
        verdicts.push(Verdict::below(
            "003",
            &format!(
                "Several blocks of a file in flight ({tree}, {cache}, 4,096 bytes) are faster than one at a \
            time"
            ),
            of("sequential-4K", "blocks-4K"),
            1.0,
            |ratio| {
                format!(
                    "several blocks in flight took {} of the time (published for one file: 0.62)",
                    interval(ratio)
                )
            },
        ));
    }
    verdicts
}

/// dd as an upper limit, as in document 004. It runs in other rounds, so its own spread counts: the share's low end
/// uses its fastest run, the high end its slowest.
fn dd(record: &Record) -> Vec<Verdict> {
    let rate = record.find(&[("tree", "dd")]).and_then(|cell| record.summary(cell, "throughput_b_s"));
    let Some(rate) = rate.map(|found| found.median).filter(|rate| rate.low > 0.0) else {
        return Vec::new();
    };
    let of_tree = |tree: &&str| {
        let found = record.summary(cell(record, tree, "warm", "cp")?, "throughput_b_s")?.median;
        let share = Interval {
            middle: found.middle / rate.middle,
            low: found.low / rate.high,
            high: found.high / rate.low,
            count: found.count.min(rate.count),
        };
        Some(Verdict::below(
            "004",
            &format!("cp -r of {tree} has a lower throughput than dd's sequential writes"),
            Some(share),
            1.0,
            |share| format!("cp reached {} of dd's throughput (published: 0.64)", interval(share)),
        ))
    };
    SMALL.iter().chain(LARGE).filter_map(of_tree).collect()
}

/// Routes, which the documents lack.
fn ferry(record: &Record) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for tree in SMALL.iter().chain(LARGE) {
        for cache in ["cold", "warm"] {
            let Some(ratio) = times(record, tree, cache, "ferry-ring", "ferry") else { continue };
            verdicts.push(Verdict::below(
                "",
                &format!(
                    "ferry is faster if it chooses a route for each operation than if it uses the ring for all \
                    ({tree}, {cache})"
                ),
                Some(ratio),
                1.0,
                |ratio| format!("with its own choice ferry took {} of the time", interval(ratio)),
            ));
            verdicts.push(Verdict::below(
                "",
                &format!("ferry cp is faster than cp ({tree}, {cache})"),
                times(record, tree, cache, "cp", "ferry"),
                1.0,
                |ratio| format!("ferry took {} of cp's time", interval(ratio)),
            ));
        }
    }
    verdicts
}

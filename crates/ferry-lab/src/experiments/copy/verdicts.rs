//! Findings of documents 000, 003 and 004 about copying.

use super::dd;
use super::tools::{CP_BY_BLOCKS, FERRY_POSIX, FERRY_RING};
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
    verdicts.extend(dd::verdicts(record, SMALL.iter().chain(LARGE).copied()));
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

/// Document 000 names copy_file_range(2) as a difference between cp and eio. There is no verdict without that cell.
fn by_blocks(record: &Record, tree: &str) -> Option<Verdict> {
    cell(record, tree, "warm", CP_BY_BLOCKS)?;
    Some(Verdict::above(
        "000",
        &format!("With {tree} files in a warm cache, cp is slower if it reads and writes every byte"),
        times(record, tree, "warm", "cp", CP_BY_BLOCKS),
        1.0,
        |ratio| format!("cp -r --reflink=never took {} times as long as cp -r", interval(ratio)),
    ))
}

/// The time of a copy relative to cp's, in words; also relative to that of cp that reads and writes every byte.
fn than_cp(record: &Record, (tree, cache, tool): (&str, &str, &str)) -> impl FnOnce(&Interval) -> String {
    let by_blocks = times(record, tree, cache, CP_BY_BLOCKS, tool);
    let by_blocks = by_blocks.map(|ratio| format!(", {} times as cp --reflink=never", interval(&ratio)));
    move |ratio: &Interval| {
        let beside = by_blocks.unwrap_or_default();
        format!("the copy took {} times as long as cp{beside}", interval(ratio))
    }
}

fn small(record: &Record, tree: &str) -> Vec<Verdict> {
    let concurrent = if cell(record, tree, "cold", "bfs-4K").is_some() { "bfs-4K" } else { "dfs-4K" };
    let mut verdicts = vec![
        Verdict::above(
            "000",
            &format!(
                "With {tree} files in a warm cache, the concurrent copy with blocks of 4,096 bytes is slower than cp"
            ),
            times(record, tree, "warm", "cp", "dfs-4K"),
            1.0,
            than_cp(record, (tree, "warm", "dfs-4K")),
        )
        .published("1.81"),
        Verdict::below(
            "000",
            &format!(
                "With {tree} files in a cold cache, the concurrent program is faster than the sequential one"
            ),
            times(record, tree, "cold", "sequential-4K", concurrent),
            1.0,
            |ratio| {
                format!("the concurrent program took {} of the sequential program's time", interval(ratio))
            },
        )
        .published("about 0.5"),
        Verdict::below(
            "000",
            &format!("With {tree} files in a cold cache, the concurrent copy is faster than cp"),
            times(record, tree, "cold", "cp", concurrent),
            1.0,
            than_cp(record, (tree, "cold", concurrent)),
        ),
        Verdict::above(
            "004",
            &format!("With {tree} files in a warm cache, the sequential program is slower than cp"),
            times(record, tree, "warm", "cp", "sequential-4K"),
            1.0,
            than_cp(record, (tree, "warm", "sequential-4K")),
        )
        .published("2.9"),
        Verdict::above(
            "004",
            &format!(
                "With {tree} files in a warm cache, the program with two fibers per folder is slower than cp"
            ),
            times(record, tree, "warm", "cp", "dfs-4K"),
            1.0,
            than_cp(record, (tree, "warm", "dfs-4K")),
        )
        .published("1.6"),
    ];
    verdicts.extend(by_blocks(record, tree));
    verdicts
}

fn large(record: &Record, tree: &str) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for cache in ["warm", "cold"] {
        let of = |base, other| times(record, tree, cache, base, other);
        let by_small_blocks = Verdict::above(
            "004",
            &format!(
                "With files of 1 MiB ({tree}, {cache}), copying in blocks of 4,096 bytes is slower than cp"
            ),
            of("cp", "dfs-4K"),
            1.0,
            than_cp(record, (tree, cache, "dfs-4K")),
        );
        verdicts.push(by_small_blocks.published("1.4"));
        verdicts.push(Verdict::below(
            "003",
            &format!(
                "With files of 1 MiB ({tree}, {cache}), blocks of 1 MiB are faster than blocks of 4,096 bytes"
            ),
            of("dfs-4K", "dfs-1M"),
            1.0,
            |ratio| format!("blocks of 1 MiB took {} of the time", interval(ratio)),
        ));
        let by_large_blocks = Verdict::below(
            if tree == "large-3905" { "000" } else { "004" },
            &format!("With files of 1 MiB ({tree}, {cache}), copying in blocks of 1 MiB is faster than cp"),
            of("cp", "dfs-1M"),
            1.0,
            than_cp(record, (tree, cache, "dfs-1M")),
        );
        verdicts.push(by_large_blocks.published("0.63"));
        let by_several_blocks = Verdict::below(
            "003",
            &format!(
                "Several blocks of a file in flight ({tree}, {cache}, 4,096 bytes) are faster than one at a \
            time"
            ),
            of("sequential-4K", "blocks-4K"),
            1.0,
            |ratio| {
                let ratio = interval(ratio);
                format!(
                    "several blocks in flight took {ratio} of the time; the published figure is of one file"
                )
            },
        );
        verdicts.push(by_several_blocks.published("0.62"));
    }
    verdicts.extend(by_blocks(record, tree));
    verdicts
}

/// Routes, which the documents lack, and the backends.
fn ferry(record: &Record) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for tree in SMALL.iter().chain(LARGE) {
        for cache in ["cold", "warm"] {
            // There is no verdict without figures.
            let mut faster_than = |base: &str, finding: &str, words: &str| {
                let Some(ratio) = times(record, tree, cache, base, "ferry") else { return };
                verdicts.push(Verdict::below(
                    "",
                    &format!("{finding} ({tree}, {cache})"),
                    Some(ratio),
                    1.0,
                    |ratio| format!("{words} {} of the time", interval(ratio)),
                ));
            };
            faster_than(
                FERRY_RING,
                "ferry is faster if it chooses a route for each operation than if it uses the ring for all",
                "with its own choice ferry took",
            );
            faster_than(
                FERRY_POSIX,
                "ferry is faster with io_uring than without",
                "with io_uring ferry took",
            );
            faster_than("cp", "ferry cp is faster than cp", "ferry took");
        }
    }
    verdicts
}

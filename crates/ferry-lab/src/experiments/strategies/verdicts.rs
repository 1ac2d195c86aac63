//! Compares document 003's findings about copying bytes, and plain programs, with the figures.

use super::cells::middle;
use crate::record::{Cell, Record, Value};
use crate::statistics::{Interval, median};
use crate::table::Table;
use crate::units::{figure, size};
use crate::verdict::{Outcome, Verdict, interval};

/// A program that makes the same calls takes so much of the strategy's time, at least and at most.
const AGREES: (f64, f64) = (0.87, 1.15);

pub(super) fn all(record: &Record) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> =
        programs(record).into_iter().filter_map(|cell| agrees(record, cell)).collect();
    for cache in ["cold", "warm"] {
        if record.find(&[("files", "one"), ("cache", cache)]).is_some() {
            verdicts.extend(one(record, cache));
        }
        if record.find(&[("files", "many"), ("cache", cache)]).is_some() {
            verdicts.extend(many(record, cache));
        }
    }
    verdicts
}

fn numbers(record: &Record, name: &str) -> Vec<u64> {
    match record.parameters.get(name) {
        Some(Value::Numbers(numbers)) => numbers.clone(),
        _ => Vec::new(),
    }
}

/// A strategy's cell with that block, of a ring's strategy with that depth.
fn cell<'r>(
    record: &'r Record,
    files: &str,
    cache: &str,
    strategy: &str,
    block: u64,
    depth: Option<u64>,
) -> Option<&'r Cell> {
    record.cells.iter().find(|cell| {
        let is = |name: &str, text: &str| cell.text(name) == text;
        is("files", files)
            && is("cache", cache)
            && is("strategy", strategy)
            && cell.number("block_bytes") == Some(block)
            && cell.number("depth") == depth
    })
}

fn one(record: &Record, cache: &str) -> Vec<Verdict> {
    let (blocks, depths) = (numbers(record, "block-sizes"), numbers(record, "depths"));
    let (least, most) = (blocks.iter().min().copied(), blocks.iter().max().copied());
    let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
    let (block, depth) = (middle(&blocks), middle(&depths));
    let find = |strategy, block, depth| cell(record, "one", cache, strategy, block, depth);
    let ratio = |base: Option<&Cell>, other: Option<&Cell>| record.ratio(base?, other?, "returned_s");
    let times =
        |what: &'static str| move |found: &Interval| format!("the copy took {} {what}", interval(found));
    let plain = |block| find("read-write", block, None);
    let mut verdicts = calls(record, cache, block);
    verdicts.push(Verdict::below(
        "003",
        &format!(
            "Larger blocks help: reads and writes of {} are faster than those of {} ({cache})",
            size(most),
            size(least)
        ),
        ratio(plain(least), plain(most)),
        1.0,
        times("of the time"),
    ));
    verdicts.push(Verdict::above(
        "003",
        &format!(
            "Asynchronous calls through the page cache gain nothing: the ring with {depth} blocks of {} in \
            flight is no faster than reads and writes ({cache})",
            size(block)
        ),
        ratio(plain(block), find("ring-buffered", block, Some(depth))),
        1.0,
        times("times the time of reads and writes"),
    ));
    verdicts.push(Verdict::below(
        "",
        &format!(
            "Registered buffers make a copy on the ring faster, with {depth} blocks of {} in flight ({cache})",
            size(block)
        ),
        ratio(
            find("ring-buffered", block, Some(depth)),
            find("ring-registered", block, Some(depth)),
        ),
        1.0,
        times("of the time, registering included"),
    ));
    verdicts.extend(flow(record, cache, (least, block), &depths));
    verdicts.extend(durable(record, cache, block, depth));
    verdicts
}

/// The calls of document 003's appendix beside reads and writes. Of one of them it says that it is faster.
fn calls(record: &Record, cache: &str, block: u64) -> Vec<Verdict> {
    let find = |strategy: &str| cell(record, "one", cache, strategy, block, None);
    let verdict = |(document, strategy, name): (&'static str, &str, &str)| {
        let ratio = find("read-write").zip(find(strategy));
        Verdict::below(
            document,
            &format!("{name} copies one file faster than reads and writes of {} ({cache})", size(block)),
            ratio.and_then(|(base, other)| record.ratio(base, other, "returned_s")),
            1.0,
            |found| format!("the copy took {} times the time of reads and writes", interval(found)),
        )
    };
    [("003", "copy-file-range", "copy_file_range"), ("", "sendfile", "sendfile"), ("", "splice", "splice")]
        .map(verdict)
        .into()
}

/// Several blocks of one file in flight beside one: document 003's change of `Flow.copy`, whose blocks were small.
fn flow(record: &Record, cache: &str, (least, block): (u64, u64), depths: &[u64]) -> Vec<Verdict> {
    let deepest = depths.iter().max().copied().unwrap_or(1);
    if deepest == 1 || !depths.contains(&1) {
        return Vec::new();
    }
    let mut cases = vec![("ring-buffered", least), ("ring-buffered", block), ("ring-direct", block)];
    cases.dedup();
    let verdict = |(strategy, block)| {
        let find = |depth| cell(record, "one", cache, strategy, block, Some(depth));
        let verdict = Verdict::below(
            "003",
            &format!(
                "{strategy}: {deepest} blocks of {} in flight are faster than one ({cache})",
                size(block)
            ),
            find(1).zip(find(deepest)).and_then(|(one, many)| record.ratio(one, many, "returned_s")),
            1.0,
            |found| format!("{deepest} blocks took {} of the time", interval(found)),
        );
        if strategy == "ring-buffered" { verdict.published("0.62") } else { verdict }
    };
    cases.into_iter().map(verdict).collect()
}

/// Verdicts on strategies compared with reads and writes, where the copy must be durable.
fn durable(record: &Record, cache: &str, block: u64, depth: u64) -> Vec<Verdict> {
    let find = |strategy, depth| cell(record, "one", cache, strategy, block, depth);
    let ratio = |other: Option<&Cell>| record.ratio(find("read-write", None)?, other?, "durable_s");
    let mut verdicts = Vec::new();
    for (document, strategy, depth) in
        [("003", "ring-direct", Some(depth)), ("", "own-cache", Some(depth)), ("", "dontcache", None)]
    {
        verdicts.push(Verdict::below(
            document,
            &format!(
                "If the copy must be durable, {strategy} with blocks of {} is faster than reads and writes ({cache})",
                size(block)
            ),
            ratio(find(strategy, depth)),
            1.0,
            |found| {
                format!("the copy was durable after {} times the time of reads and writes", interval(found))
            },
        ));
    }
    verdicts
}

fn many(record: &Record, cache: &str) -> Vec<Verdict> {
    let depths = numbers(record, "depths");
    let Some(deepest) = depths.iter().max().copied() else { return Vec::new() };
    let of = |strategy: &str, depth: Option<u64>| {
        record.cells.iter().find(|cell| {
            cell.text("files") == "many"
                && cell.text("cache") == cache
                && cell.text("strategy") == strategy
                && cell.number("depth") == depth
        })
    };
    let deep = of("ring-buffered", Some(deepest));
    let ratio = |base: Option<&Cell>| record.ratio(base?, deep?, "returned_s");
    let mut verdicts = Vec::new();
    if deepest > 1 && depths.contains(&1) {
        verdicts.push(Verdict::below(
            "003",
            &format!("Many files ({cache}): the ring is faster with {deepest} files in flight than with one"),
            ratio(of("ring-buffered", Some(1))),
            1.0,
            |found| format!("{deepest} files took {} of the time", interval(found)),
        ));
    }
    verdicts.push(Verdict::below(
        "003",
        &format!(
            "Many files ({cache}): the ring with {deepest} files in flight is faster than reads and writes, \
                one file after another"
        ),
        ratio(of("read-write", None)),
        1.0,
        |found| format!("the ring took {} times as long", interval(found)),
    ));
    verdicts
}

/// Cells of programs that make a strategy's calls: on one file, as of many cp asks for more than their bytes.
fn programs(record: &Record) -> Vec<&Cell> {
    let is_program =
        |cell: &&Cell| cell.text("files") == "one" && matches!(cell.text("strategy").as_str(), "cp" | "dd");
    record.cells.iter().filter(is_program).filter(|cell| cell.base.is_some()).collect()
}

/// The program's median divided by its strategy's.
fn of_medians(record: &Record, cell: &Cell) -> Option<f64> {
    let base = record.cell(cell.base.as_deref()?)?.figures("returned_s");
    let own = cell.figures("returned_s");
    (!own.is_empty() && median(&base) > 0.0).then(|| median(&own) / median(&base))
}

/// Compares a program's times with those of its strategy, pair by pair.
fn agrees(record: &Record, cell: &Cell) -> Option<Verdict> {
    let ratio = of_medians(record, cell)?;
    let base = cell.base.as_deref()?;
    Some(Verdict::within(
        "",
        &format!("{} takes as long as {base}, which makes the same calls", cell.name),
        record.ratio_to_base(cell, "returned_s"),
        AGREES,
        |pairs| {
            let (least, most) = AGREES;
            let pairs = interval(pairs);
            format!(
                "the ratio of the medians is {ratio:.2}; pair by pair {pairs} ({least:.2} to {most:.2} agree)"
            )
        },
    ))
}

/// Programs beside the strategies that make the same calls.
pub(super) fn agreement(record: &Record) -> Option<Table> {
    let columns = ["program", "strategy", "program took", "strategy took", "ratio of medians", "agree"];
    let mut table = Table::new("Plain programs that make the same calls", &columns);
    for cell in programs(record) {
        let (Some(ratio), Some(base)) = (of_medians(record, cell), &cell.base) else { continue };
        let took = |cell: Option<&Cell>| {
            cell.map(|cell| figure(median(&cell.figures("returned_s")), "s")).unwrap_or_default()
        };
        let agree = match agrees(record, cell).map(|verdict| verdict.outcome) {
            Some(Outcome::Held) => "yes",
            Some(Outcome::DidNotHold) => "no",
            Some(Outcome::Unclear | Outcome::NotMeasured) | None => "unclear",
        };
        table.row(vec![
            cell.name.clone(),
            base.clone(),
            took(Some(cell)),
            took(record.cell(base)),
            format!("{ratio:.2}"),
            agree.to_owned(),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

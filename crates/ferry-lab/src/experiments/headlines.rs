//! The answer of each experiment: the first line of its result.
//!
//! Fixed rules choose what a headline compares, and its conditions, such as tree and depth. The ratio does not: a
//! headline about the best of several would overstate it. Only the limit of a copy is the fastest of several programs, by
//! its definition.

use super::copy::{groups, shares};
use crate::headline::{Headline, confidence, others, speed};
use crate::record::{Cell, Record, Value};
use crate::statistics::Interval;
use crate::units::size;
use crate::verdict::{interval, middle};

mod common;
mod syscalls;
mod when;

use self::common::{RETURNED, median, stated};
pub(super) use self::syscalls::syscalls;
pub(super) use self::when::when;

#[cfg(test)]
mod tests;

const READS: &str = "reads_1_s";

/// ferry beside cp, where cp takes longest.
pub(super) fn copy(record: &Record) -> Headline {
    let ratio = |group: &str| {
        let of = |tool: &str| groups::cells_of(record, group).find(|cell| cell.text("tool") == tool);
        speed(record, of("cp")?, of("ferry")?, RETURNED)
    };
    of_groups(record, ("ferry", "cp"), "cp and ferry", ratio)
}

/// ferry beside the fastest limit program, where cp takes longest.
pub(super) fn limits(record: &Record) -> Headline {
    let ratio = |group: &str| {
        let ferry = groups::cells_of(record, group).find(|cell| cell.text("tool") == "ferry")?;
        shares::share(record, shares::limit(record, group)?, ferry)
    };
    of_groups(record, ("ferry", "the fastest limit program"), "ferry and the limit programs", ratio)
}

/// The headline of copies: one group's in a sentence, and the others counted.
fn of_groups(
    record: &Record,
    names: (&str, &str),
    cells: &str,
    ratio: impl Fn(&str) -> Option<Interval>,
) -> Headline {
    let mut found: Vec<(String, f64, Interval)> = groups::of(record)
        .into_iter()
        .filter_map(|group| {
            let cp = groups::cells_of(record, &group).find(|cell| cell.text("tool") == "cp")?;
            let (seconds, ratio) = (median(record, cp, RETURNED)?, ratio(&group)?);
            Some((group, seconds, ratio))
        })
        .collect();
    found.sort_by(|one, other| other.1.total_cmp(&one.1));
    let Some(((group, _, ratio), rest)) = found.split_first() else { return Headline::none(cells) };
    let (name, state) = group.split_once('/').unwrap_or((group.as_str(), ""));
    let place = format!("on {}, {state}", files(name));
    let rest: Vec<Interval> = rest.iter().map(|(.., ratio)| *ratio).collect();
    Headline::new(stated(record, names, &place, *ratio, None))
        .and(others(&rest, ["copy", "copies"]))
        .shown_by(groups::heading(record, group))
}

/// The files of a preset, in words.
fn files(tree: &str) -> &str {
    match tree {
        "small" => "small files",
        "wide" => "many small files",
        "large" | "large-3905" => "large files",
        "huge" => "one huge file",
        "three" => "three small files",
        "flat" => "many small files in one folder",
        "mixed" => "files of mixed sizes",
        other => other,
    }
}

/// Ways of copying bytes: ferry's own for large files first, then that of document 003's program. Reflinks copy nothing.
const WAYS: [&str; 10] = [
    "copy-file-range",
    "ring-buffered",
    "mmap",
    "splice",
    "sendfile",
    "dontcache",
    "ring-registered",
    "ring-direct",
    "direct-read",
    "own-cache",
];

/// The first of the ways beside plain calls, with the middle block and depth, and several blocks in flight beside one.
pub(super) fn strategies(record: &Record) -> Headline {
    let groups = [("one", "cold"), ("one", "warm"), ("many", "cold"), ("many", "warm")];
    let of_way = |files: &'static str, cache: &'static str, way: &str| {
        let is_timed = |cell: &&Cell| {
            let is = |name: &str, text: &str| cell.text(name) == text;
            is("files", files)
                && is("cache", cache)
                && is("strategy", way)
                && beside_base(record, cell).is_some()
        };
        let timed: Vec<&Cell> = record.cells.iter().filter(is_timed).collect();
        let cell = at_middle(&at_middle(&timed, "block_bytes"), "depth").first().copied()?;
        let (base, ratio) = beside_base(record, cell)?;
        Some((files, cache, cell, base, ratio))
    };
    let first = |(files, cache)| WAYS.into_iter().find_map(|way| of_way(files, cache, way));
    let Some((files, cache, cell, base, ratio)) = groups.into_iter().find_map(first) else {
        return Headline::none("the strategies and plain calls");
    };
    let start = format!("{files}/{cache}/");
    let name = |cell: &Cell| cell.name.strip_prefix(&start).unwrap_or(&cell.name).to_owned();
    let what = if files == "one" { "one file" } else { "many files" };
    let place = format!("on {what}, {cache}");
    Headline::new(stated(record, (&name(cell), &name(base)), &place, ratio, None))
        .and(in_flight(record, files, cache))
}

/// A cell's base, and its speed relative to it.
fn beside_base<'r>(record: &'r Record, cell: &Cell) -> Option<(&'r Cell, Interval)> {
    let base = record.cell(cell.base.as_deref()?)?;
    Some((base, speed(record, base, cell, RETURNED)?))
}

/// The cells with the middle value of a parameter, the larger of two; all cells if none has the parameter.
fn at_middle<'r>(cells: &[&'r Cell], parameter: &str) -> Vec<&'r Cell> {
    let mut numbers: Vec<Option<u64>> = cells.iter().map(|cell| cell.number(parameter)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let middle = numbers.get(numbers.len() / 2).copied().flatten();
    cells.iter().copied().filter(|cell| cell.number(parameter) == middle).collect()
}

/// Document 003's claim: several blocks in flight beside one. The block size is that of the deepest queue.
fn in_flight(record: &Record, files: &str, cache: &str) -> Option<String> {
    let ring = |cell: &&Cell| {
        let is = |name: &str, text: &str| cell.text(name) == text;
        is("files", files) && is("cache", cache) && is("strategy", "ring-buffered")
    };
    let several = |cell: &&Cell| cell.number("depth") > Some(1);
    let deepest = record.cells.iter().filter(ring).filter(several).max_by_key(|cell| cell.number("depth"))?;
    let block = deepest.text("block");
    let is_single = |cell: &&Cell| cell.text("block") == block && cell.number("depth") == Some(1);
    let single = record.cells.iter().filter(ring).find(is_single)?;
    let subject = format!("A ring with {} blocks in flight", deepest.text("depth"));
    let ratio = speed(record, single, deepest, RETURNED)?;
    let published = (files == "one").then_some("1.60");
    Some(stated(record, (&subject, "one with a single block"), &format!("of {block}"), ratio, published))
}

/// io_uring and O_DIRECT beside plain writes.
pub(super) fn write(record: &Record) -> Headline {
    let ratio = |operation: &str, sink: &str| {
        let cell = record.find(&[("operation", operation), ("sink", sink)])?;
        speed(record, record.cell(cell.base.as_deref()?)?, cell, RETURNED)
    };
    let operations = [("overwrite", "on a sparse file", "0.75"), ("download", "in a download", "0.60")];
    let found = operations.into_iter().find_map(|its| Some((its, ratio(its.0, "ring")?)));
    let Some(((operation, place, of_direct), ring)) = found else {
        return Headline::none("io_uring and plain writes");
    };
    let base = "plain writes";
    let direct = ratio(operation, "direct").map(|ratio| {
        let subject = "O_DIRECT with one write in flight";
        stated(record, (subject, base), place, ratio, Some(of_direct))
    });
    Headline::new(stated(record, ("io_uring", base), place, ring, Some("1.00"))).and(direct)
}

/// COOP, which document 002 is about, and DEFER beside the plain ring, under the first load that was measured.
/// Without these modes the next ones take their places. `None` if no two modes have figures.
pub(super) fn ring(record: &Record) -> Option<Headline> {
    let loads = [
        ("alone", "without load"),
        ("process", "beside a busy process"),
        ("computation", "with a computation between submissions"),
    ];
    loads.into_iter().find_map(|(load, words)| ring_modes(record, load, words))
}

fn ring_modes(record: &Record, load: &str, words: &str) -> Option<Headline> {
    let is_it = |cell: &&Cell| cell.text("load") == load && median(record, cell, READS).is_some();
    let cells: Vec<&Cell> = record.cells.iter().filter(is_it).collect();
    let depths = || cells.iter().filter_map(|cell| cell.number("depth"));
    let depth = depths().find(|depth| *depth == 16).or_else(|| depths().max())?;
    let is_mode = |cell: &Cell, mode: &str| cell.number("depth") == Some(depth) && cell.text("mode") == mode;
    let find = |mode: &'static str| {
        let cell = cells.iter().copied().find(|cell| is_mode(cell, mode))?;
        Some((mode, cell))
    };
    let modes = ["plain", "coop", "defer", "sqpoll", "iopoll", "registered"];
    let mut measured = modes.into_iter().filter_map(find);
    let (base, of_base) = measured.next()?;
    let is_documents = base == "plain" && load == "alone";
    let base = if base == "plain" { "a plain one".to_owned() } else { format!("one of mode {base}") };
    let place = format!("with {depth} reads in flight, {words}");
    let sentence = |(mode, cell): (&str, &Cell)| {
        // More reads are better, so that the cells are divided the other way round.
        let ratio = record.ratio(of_base, cell, READS)?;
        let published = (is_documents && mode == "coop").then_some("1.15-1.20");
        Some(stated(record, (&format!("A ring of mode {mode}"), &base), &place, ratio, published))
    };
    let mut sentences = measured.filter_map(sentence);
    let answer = sentences.next()?;
    Some(Headline::new(answer).and(sentences.next()))
}

/// Random reads with a deep queue beside one at a time, and those beside sequential ones.
pub(super) fn disk(record: &Record) -> Headline {
    let is_read = |cell: &&Cell| cell.text("operation") == "read";
    let find = |pattern: &str, depth: u64| {
        record
            .cells
            .iter()
            .filter(is_read)
            .find(|cell| cell.text("pattern") == pattern && cell.number("depth") == Some(depth))
    };
    let ratio = |base: Option<&Cell>, cell: Option<&Cell>| record.ratio(base?, cell?, "throughput_b_s");
    let depths = record.cells.iter().filter(is_read).filter_map(|cell| cell.number("depth"));
    let deepest = depths.max().unwrap_or(1);
    let single = find("random", 1);
    let deep = ratio(single, find("random", deepest)).filter(|_| deepest > 1).map(|ratio| {
        let (subject, base) = (format!("A queue of {deepest}"), "one request at a time");
        let published = (deepest == 64).then_some("16.5");
        stated(record, (&subject, base), "with random reads of 4 KiB", ratio, published)
    });
    let random = ratio(find("sequential", 1), single).map(|ratio| {
        let subject = "A stream of random reads of 4 KiB";
        stated(record, (subject, "a sequential one"), "with one request in flight", ratio, Some("0.04"))
    });
    let mut sentences = deep.into_iter().chain(random);
    match sentences.next() {
        Some(answer) => Headline::new(answer).and(sentences.next()).shown_by("Requests, random".to_owned()),
        None => Headline::none("random and sequential reads"),
    }
}

/// O_DIRECT with the largest cache of its own beside the page cache.
pub(super) fn cache(record: &Record) -> Headline {
    let accesses = ["zipf", "random", "mixed", "sequential", "overwrite"];
    let found = accesses.into_iter().find_map(|access| {
        let of = |way: &'static str| {
            let is_it = move |cell: &&Cell| cell.text("access") == access && cell.text("way") == way;
            record.cells.iter().filter(is_it)
        };
        let own = of("own-cache").max_by_key(|cell| cell.number("cache_bytes"))?;
        let ratio = record.ratio(of("page-cache").next()?, own, "throughput_b_s")?;
        Some((access, own.number("cache_bytes").map(size).unwrap_or_default(), ratio))
    });
    let Some((access, bytes, ratio)) = found else {
        return Headline::none("the own cache and the page cache");
    };
    let subject = format!("O_DIRECT with an own cache of {bytes}");
    let place = format!("with {access} access");
    Headline::new(stated(record, (&subject, "the page cache"), &place, ratio, None))
        .shown_by(format!("{access}: bytes"))
}

/// Share of a working set that stays in memory beside ferry and beside cp.
pub(super) fn evict(record: &Record) -> Headline {
    let least = |how: &str, copier: &str| {
        let cell = record.find(&[("use", how), ("copier", copier)])?;
        record.summary(cell, "resident_least").map(|found| found.median)
    };
    let found =
        ["left", "used"].into_iter().find_map(|how| Some((how, least(how, "auto")?, least(how, "cp")?)));
    let Some((how, ferry, cp)) = found else { return Headline::none("ferry and cp") };
    let bytes = record.parameters.get("resident").and_then(Value::as_number).map(size).unwrap_or_default();
    let what = if how == "left" { "read once" } else { "in use" };
    Headline::new(format!(
        "ferry leaves {} of a working set in memory ({bytes}, {what}; {}), cp {}",
        middle(&ferry),
        confidence(&ferry, record.scale),
        interval(&cp),
    ))
}

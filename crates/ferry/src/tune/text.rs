//! Formats a profile as tables and bars for a terminal.

use std::collections::BTreeMap;
use std::path::Path;

use ferry_lab::table::Table;
use ferry_lab::units::{figure, real, size};
use ferry_tune::{Calls, Direct, Figure, Profile};

use super::curve::{blocks, depths};
use super::page::Page;
use crate::quote::quote;
use crate::units::count;

#[cfg(test)]
mod tests;

pub(super) fn tables(folder: &Path, profile: &Profile, page: Page) -> String {
    let place = &profile.place;
    let head = format!("{}: {} on {} ({})", quote(folder), place.filesystem, place.source, place.device);
    let mut out = page.wrapped(&head, 2) + "\n\n";
    match &profile.direct {
        Some(direct) => {
            out += &format!("{}\n\n", page.wrapped("Rates are those of direct I/O (O_DIRECT).", 0));
            for part in [depths(direct, page), blocks(direct, page), page.table(&writes(direct))] {
                out += &format!("{part}\n");
            }
        }
        None => {
            let why = page.wrapped("The filesystem does not support O_DIRECT.", 0);
            out += &format!("Direct I/O\n{why}\n\n");
        }
    }
    out += &format!("{}\n{}\n", page.table(&calls(&profile.calls)), can(profile, page));
    out + &handed_over(&profile.handed_over, page)
}

/// Rates of writes. Those of reads are among the bars.
fn writes(direct: &Direct) -> Table {
    let mut table = table("Writes, random ones of 4 KiB");
    let sequential = format!("sequential, {}", size(direct.best_block));
    table.row(row(sequential, &direct.sequential_write, 1e6, "B/s"));
    let random = format!("random, {} in flight", direct.enough_depth);
    table.row(row(random, &direct.random_write, 1.0, "1/s"));
    table
}

fn calls(calls: &Calls) -> Table {
    let mut table = table("Cost of calls");
    let rows = [
        ("create a file inline", Some(&calls.inline_create)),
        ("hand a read to the ring", calls.ring_hand_over.as_ref()),
        ("hand a read to the pool", Some(&calls.pool_hand_over)),
    ];
    for (name, found) in rows {
        table.row(match found {
            Some(found) => row(name.to_owned(), found, 1e-6, "s"),
            None => vec![name.to_owned(), "no io_uring".to_owned(), String::new(), String::new()],
        });
    }
    table
}

/// Lists the filesystem's features.
fn can(profile: &Profile, page: Page) -> String {
    let can = &profile.can;
    let has = |there: bool| if there { "yes" } else { "no" };
    let aligned = match (can.direct_memory_alignment, can.direct_offset_alignment) {
        (Some(memory), Some(offset)) => {
            format!("memory to {} bytes, offsets and sizes to {}", count(memory.into()), count(offset.into()))
        }
        _ if profile.direct.is_none() => "no direct requests".to_owned(),
        _ => "not reported".to_owned(),
    };
    let lines = [
        format!("files that share blocks (reflink): {}", has(can.reflink)),
        format!("uncached reads and writes (RWF_DONTCACHE): {}", has(can.dontcache)),
        format!("alignment of direct requests: {aligned}"),
    ];
    let lines = lines.map(|line| page.wrapped(&line, 2) + "\n");
    format!("Features of the filesystem\n{}", lines.concat())
}

/// Lists the operations by the way in which the kernel runs them.
fn handed_over(found: &BTreeMap<String, String>, page: Page) -> String {
    let mut out = "How the kernel runs requests of a ring\n".to_owned();
    if found.is_empty() {
        return out + &page.wrapped("unknown: this needs io_uring and permission to trace", 0) + "\n";
    }
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (operation, way) in found {
        ways.entry(way).or_default().push(operation);
    }
    for (way, operations) in ways {
        out += &format!("{}\n", page.wrapped(&format!("{way}: {}", operations.join(", ")), 2));
    }
    out
}

fn table(title: &str) -> Table {
    Table::new(title, &["", "median", "lowest", "highest", "runs"])
}

fn row(name: String, found: &Figure, scale: f64, unit: &str) -> Vec<String> {
    let value = |value: f64| figure(value * scale, unit);
    let runs = real(found.runs.into());
    vec![name, value(found.median), value(found.low), value(found.high), figure(runs, "")]
}

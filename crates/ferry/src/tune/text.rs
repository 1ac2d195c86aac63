//! Formats a profile as tables for a terminal.

use std::collections::BTreeMap;
use std::path::Path;

use ferry_lab::table::Table;
use ferry_lab::units::{figure, real, size};
use ferry_tune::{Calls, Direct, Figure, Profile};

use crate::quote::quote;
use crate::units::count;

pub(super) fn tables(folder: &Path, profile: &Profile) -> String {
    let place = &profile.place;
    let mut out =
        format!("{}: {} on {} ({})\n\n", quote(folder), place.filesystem, place.source, place.device);
    match &profile.direct {
        Some(direct) => {
            for table in [rates(direct), depths(direct), blocks(direct)] {
                out += &format!("{}\n", table.text());
            }
        }
        None => out += "Direct I/O\nThe filesystem does not support O_DIRECT.\n\n",
    }
    out += &format!("{}\n{}", calls(&profile.calls).text(), can(profile));
    out + &handed_over(&profile.handed_over)
}

fn rates(direct: &Direct) -> Table {
    let mut table = table("Direct I/O", "");
    let block = size(direct.best_block);
    let depth = direct.enough_depth;
    for (way, found) in [("reads", &direct.sequential_read), ("writes", &direct.sequential_write)] {
        table.row(row(format!("sequential {way}, blocks of {block}"), found, 1e6, "B/s"));
    }
    for (way, found) in [("reads", &direct.random_read), ("writes", &direct.random_write)] {
        table.row(row(format!("random {way}, 4 KiB, {depth} in flight"), found, 1.0, "1/s"));
    }
    table
}

fn depths(direct: &Direct) -> Table {
    let mut table = table("Random reads of 4 KiB by depth", "in flight");
    let deepest = direct.depths.last().map(|found| found.depth);
    for found in &direct.depths {
        let mark = if found.depth != direct.enough_depth {
            ""
        } else if deepest == Some(found.depth) {
            // The deepest queue tried: a deeper one might be faster.
            " (enough, or too few)"
        } else {
            " (enough)"
        };
        table.row(row(format!("{}{mark}", found.depth), &found.iops, 1.0, "1/s"));
    }
    table
}

fn blocks(direct: &Direct) -> Table {
    let mut table = table("Sequential reads by block size", "block");
    for found in &direct.blocks {
        let mark = if found.bytes == direct.best_block { " (best)" } else { "" };
        table.row(row(format!("{}{mark}", size(found.bytes)), &found.mb_per_s, 1e6, "B/s"));
    }
    table
}

fn calls(calls: &Calls) -> Table {
    let mut table = table("Cost of calls", "");
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

/// Formats the filesystem's features as sentences.
fn can(profile: &Profile) -> String {
    let can = &profile.can;
    let has = |there: bool| if there { "yes" } else { "no" };
    let aligned = match (can.direct_memory_alignment, can.direct_offset_alignment) {
        (Some(memory), Some(offset)) => {
            format!("memory to {} bytes, offsets and sizes to {}", count(memory.into()), count(offset.into()))
        }
        _ if profile.direct.is_none() => "no direct requests".to_owned(),
        _ => "not reported".to_owned(),
    };
    format!(
        "Features of the filesystem\nfiles that share blocks (reflink): {}\nuncached reads and writes (RWF_DONTCACHE): {}\nalignment of direct requests: {aligned}\n\n",
        has(can.reflink),
        has(can.dontcache),
    )
}

/// Lists the operations by the way in which the kernel runs them.
fn handed_over(found: &BTreeMap<String, String>) -> String {
    let mut out = "How the kernel runs requests of a ring\n".to_owned();
    if found.is_empty() {
        return out + "unknown: this needs io_uring and permission to trace\n";
    }
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (operation, way) in found {
        ways.entry(way).or_default().push(operation);
    }
    for (way, operations) in ways {
        out += &format!("{way}: {}\n", operations.join(", "));
    }
    out
}

fn table(title: &str, first: &str) -> Table {
    Table::new(title, &[first, "median", "lowest", "highest", "runs"])
}

fn row(name: String, found: &Figure, scale: f64, unit: &str) -> Vec<String> {
    let value = |value: f64| figure(value * scale, unit);
    let runs = real(found.runs.into());
    vec![name, value(found.median), value(found.low), value(found.high), figure(runs, "")]
}

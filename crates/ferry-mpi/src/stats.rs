//! `--stats`: totals of all ranks.

use std::io::{self, Write as _};
use std::time::Duration;

use ferry::job::{Stats, SyncDone};
use ferry_cluster::Totals;
use serde::Serialize;

/// Totals that are printed at the end.
pub(crate) struct Shown {
    pub(crate) stats: Stats,
    pub(crate) ranks: u32,
    pub(crate) took: Duration,
}

/// Totals as JSON; names that `ferry cp --stats=json` has, too, mean the same.
#[derive(Serialize)]
struct Report {
    entries: u64,
    files: u64,
    directories: u64,
    symlinks: u64,
    hard_links: u64,
    specials: u64,
    kept: u64,
    failed: u64,
    bytes: u64,
    wall_seconds: f64,
    ranks: u32,
}

/// Prints totals.
///
/// # Errors
/// They can't be written.
pub(crate) fn print(totals: &Totals, shown: &Shown) -> io::Result<()> {
    let Totals { entries, files, directories, symlinks, hard_links, specials, kept, bytes, failed, .. } =
        *totals;
    let wall_seconds = shown.took.as_secs_f64();
    match shown.stats {
        Stats::Text => {
            let rows = [
                ("entries", entries),
                ("files", files),
                ("directories", directories),
                ("symlinks", symlinks),
                ("hard links", hard_links),
                ("special files", specials),
                ("kept", kept),
                ("bytes", bytes),
                ("failed", failed),
                ("ranks", shown.ranks.into()),
            ];
            print_rows(&rows, wall_seconds)
        }
        Stats::Json => {
            let ranks = shown.ranks;
            let report = Report {
                entries,
                files,
                directories,
                symlinks,
                hard_links,
                specials,
                kept,
                failed,
                bytes,
                wall_seconds,
                ranks,
            };
            print_json(&report)
        }
    }
}

/// Totals of a sync as JSON.
#[derive(Serialize)]
struct SyncReport {
    created: u64,
    replaced: u64,
    attributes: u64,
    deleted: u64,
    failed: u64,
    bytes: u64,
    wall_seconds: f64,
    ranks: u32,
}

/// Prints totals of both steps of a sync: of the copies by all ranks, and of what rank 0 has done alone.
///
/// # Errors
/// They can't be written.
pub(crate) fn print_sync(copied: &Totals, alone: &SyncDone, shown: &Shown) -> io::Result<()> {
    let Totals { made, files, symlinks, hard_links, specials, bytes, .. } = *copied;
    let SyncDone { created, replaced, attributes, deleted, bytes: bytes_alone, failed } = *alone;
    let created = created + made + files + symlinks + hard_links + specials;
    let (bytes, wall_seconds, ranks) = (bytes + bytes_alone, shown.took.as_secs_f64(), shown.ranks);
    match shown.stats {
        Stats::Text => {
            let rows = [
                ("created", created),
                ("replaced", replaced),
                ("attributes", attributes),
                ("deleted", deleted),
                ("bytes", bytes),
                ("failed", failed),
                ("ranks", ranks.into()),
            ];
            print_rows(&rows, wall_seconds)
        }
        Stats::Json => print_json(&SyncReport {
            created,
            replaced,
            attributes,
            deleted,
            failed,
            bytes,
            wall_seconds,
            ranks,
        }),
    }
}

/// Prints totals to standard error.
fn print_rows(rows: &[(&str, u64)], wall_seconds: f64) -> io::Result<()> {
    let mut text: String = rows.iter().map(|(name, value)| format!("{name:<13} {value:>16}\n")).collect();
    text += &format!("{:<13} {wall_seconds:>16.3}\n", "seconds");
    io::stderr().write_all(text.as_bytes())
}

/// Prints totals to standard output.
fn print_json(report: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(report)?;
    writeln!(io::stdout(), "{line}")
}

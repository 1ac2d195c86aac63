//! Labels of rows: the tree, the filesystem, and the state of the cache.

use ferry_tree::workload::{Preset, Sizes, Workload};

use crate::record::{Cell, Record};
use crate::units::{plain, real, size};

/// Returns a row's label: `3,905 files of 4 KiB, ext4 in RAM, warm`.
pub(super) fn label(record: &Record, cell: &Cell) -> String {
    let place = &record.machine.place;
    let medium = if place.in_memory { "in RAM" } else { "on disk" };
    let mut parts = vec![
        tree(&cell.text("tree"), cell.number("levels")),
        format!("{} {medium}", if place.filesystem == "xfs" { "XFS" } else { &place.filesystem }),
        cell.text("cache"),
    ];
    match record.parameters.get("copy-as").map(ToString::to_string).as_deref() {
        Some("archive") => parts.push("-a".to_owned()),
        Some("shared") => {}
        _ => parts.push("--reflink=never".to_owned()),
    }
    parts.join(", ")
}

/// Describes a tree by its files. It may have fewer levels than its preset.
fn tree(name: &str, levels: Option<u64>) -> String {
    let Ok(preset) = name.parse::<Preset>() else { return name.to_owned() };
    let workload = preset.workload(0);
    let depth = levels.unwrap_or(workload.depth);
    let workload = Workload { depth, ..workload };
    let count = workload.file_count();
    let files = if count == 1 { "one file".to_owned() } else { format!("{} files", plain(real(count))) };
    let sizes = match workload.sizes {
        Sizes::Fixed(bytes) => format!(" of {}", binary(bytes)),
        Sizes::Uniform { most, .. } => format!(" of up to {}", binary(most)),
        Sizes::LogNormal { .. } => " of mixed sizes".to_owned(),
    };
    let folder = if count > 1 && depth == 0 { " in one folder" } else { "" };
    format!("{files}{sizes}{folder}")
}

/// `4 KiB`.
fn binary(bytes: u64) -> String {
    let text = size(bytes);
    match text.char_indices().last() {
        Some((end, unit @ ('K' | 'M' | 'G'))) => format!("{} {unit}iB", &text[..end]),
        Some(_) | None => format!("{text} B"),
    }
}

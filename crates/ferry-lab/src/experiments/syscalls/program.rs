//! The documents' program `dfs`: the tree that it copies, its cells, and its calls scaled to the published tree.
//!
//! Two fibers in each folder are up to 32 at the deepest level of that tree, so many operations can share a call. Fewer
//! levels have fewer fibers. Smaller files have fewer blocks for each open(2) and close(2), which are requests, too: so only
//! files of 1 MiB are scaled.

use std::path::Path;

use ferry_tree::workload::{Preset, Sizes, Workload};

use crate::cache::State;
use crate::command::Stranger;
use crate::programs::Program;
use crate::record::{Cell, Record};
use crate::settings::Settings;
use crate::statistics::Interval;
use crate::table::Table;
use crate::units::{figure, plain, real, size};

/// Size of the files of the other trees, the largest block; and of the published tree's.
pub(super) const FILE_BYTES: u64 = 1 << 20;
/// The mode's name, and the program's.
pub(in crate::experiments) const NAME: &str = "dfs";
/// Document 000's number of files. They have 1 MiB each.
const PUBLISHED_FILES: f64 = 3905.0;
/// Levels of folders in its tree.
const PUBLISHED_LEVELS: u64 = 4;

/// The tree to copy: document 000's, with as many levels and files as large as the settings say.
pub(super) fn workload(settings: &Settings, seed: u64) -> Workload {
    Workload {
        depth: settings.number("dfs-levels"),
        sizes: Sizes::Fixed(settings.number("dfs-file-size")),
        ..Preset::Large3905.workload(seed)
    }
}

/// A cell and a command for each block size that its files fill.
pub(super) fn subjects(settings: &Settings, ferry: &Path) -> Vec<(Cell, Stranger)> {
    let (bytes, tree) = (settings.number("dfs-file-size"), workload(settings, 0));
    let fibers = Program::Dfs.usual_fibers().to_string();
    let subject = |block: u64| {
        let parameters = [("mode", NAME.into()), ("block", size(block).as_str().into())];
        let cell = Cell::new(&parameters, State::Warm)
            .with("block_bytes", block.into())
            .with("file_bytes", bytes.into())
            .with("files", tree.file_count().into())
            .with("levels", tree.depth.into());
        let block = block.to_string();
        let options = ["--stats", "--block-size", &block, "--max-fibers", &fibers];
        let words = [&["lab", "strategy", NAME], &options[..], &["{source}", "{target}"]].concat();
        (cell, Stranger::new(ferry, &words))
    };
    settings.numbers("block-sizes").into_iter().filter(|block| *block <= bytes).map(subject).collect()
}

/// Returns the number of blocks of this size in the published tree.
pub(super) fn published_blocks(block: u64) -> f64 {
    PUBLISHED_FILES * real(FILE_BYTES.div_ceil(block.max(1)))
}

/// Returns the calls for the published tree at a cell's calls a block; `None` if its tree has fewer fibers or smaller files.
pub(in crate::experiments) fn scaled(record: &Record, cell: &Cell) -> Option<Interval> {
    let blocks = published_blocks(cell.number("block_bytes")?);
    let each = record.summary(cell, "enters_per_block")?.median;
    let calls = Interval {
        middle: each.middle * blocks,
        low: each.low * blocks,
        high: each.high * blocks,
        count: each.count,
    };
    let is_published = [("levels", PUBLISHED_LEVELS), ("file_bytes", FILE_BYTES)]
        .iter()
        .all(|(name, value)| cell.number(name) == Some(*value));
    is_published.then_some(calls)
}

/// Table of the calls, a row a block size.
pub(super) fn table(record: &Record) -> Option<Table> {
    let cells = || record.cells.iter().filter(|cell| cell.text("mode") == NAME);
    let number = |name: &str| cells().next().and_then(|cell| cell.number(name)).unwrap_or_default();
    let title = format!(
        "dfs, two fibers a folder: {} files of {}, {} levels of folders",
        plain(real(number("files"))),
        size(number("file_bytes")),
        number("levels"),
    );
    let columns = ["block", "calls", "calls a file", "operations a submission", "for 3,905 files of 1 MiB"];
    let mut table = Table::new(&title, &columns);
    for cell in cells().filter(|cell| !cell.runs.is_empty()) {
        let middle = |measure: &str| record.summary(cell, measure).map(|found| found.median.middle);
        let files = real(cell.number("files").unwrap_or(1));
        let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| figure(value, ""));
        let calls = middle("ring_enters");
        table.row(vec![
            cell.text("block"),
            text(calls),
            text(calls.map(|calls| calls / files)),
            text(middle("operations_per_submission")),
            text(scaled(record, cell).map(|calls| calls.middle)),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

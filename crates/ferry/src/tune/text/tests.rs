use std::path::Path;

use super::tables;
use crate::tune::page::Page;
use crate::tune::sample::profile;

/// The tables for a folder, at this width.
fn shown(columns: usize, has_blocks: bool) -> String {
    tables(Path::new("/mnt/photos"), &profile(), Page { columns, has_blocks })
}

#[test]
fn a_profile_fits_screens_of_every_width() {
    for (columns, has_blocks, expected) in [
        (40, false, include_str!("tests/40.txt")),
        (80, true, include_str!("tests/80.txt")),
        (200, true, include_str!("tests/200.txt")),
    ] {
        let shown = shown(columns, has_blocks);
        assert_eq!(shown, expected, "{columns} columns:\n{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
    }
}

/// The profile of this test has two measurements of the chosen depth, and of the chosen block size.
#[test]
fn a_rate_of_reads_is_shown_once() {
    let shown = shown(80, true);
    for (figure, count) in [("58,900 /s", 1), ("59,200 /s", 0), ("1.45 GB/s", 1), ("1.46 GB/s", 0)] {
        assert_eq!(shown.matches(figure).count(), count, "{figure}: {shown}");
    }
}

#[test]
fn without_block_characters_bars_are_ascii() {
    // The micro sign is a unit's.
    let shown = shown(80, false).replace('µ', "u");
    assert!(shown.is_ascii() && shown.contains("  ####"), "{shown}");
}

#[test]
fn a_filesystem_without_direct_requests_has_no_bars() {
    let mut profile = profile();
    profile.direct = None;
    profile.handed_over.clear();
    let shown = tables(Path::new("/run"), &profile, Page { columns: 80, has_blocks: true });
    assert!(
        shown.contains("\n\nDirect I/O\nThe filesystem does not support O_DIRECT.\n\nCost of calls\n"),
        "{shown}"
    );
    assert!(shown.contains("unknown: this needs io_uring and permission to trace\n"), "{shown}");
    assert!(!shown.contains('█'), "{shown}");
}

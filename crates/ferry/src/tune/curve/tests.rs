use ferry_tune::{Depth, Figure};

use super::{bar, blocks, depths};
use crate::tune::page::Page;
use crate::tune::sample::{deep, profile};

const PAGE: Page = Page { columns: 80, has_blocks: false };

/// The word after the figures of each of the first rows, if there is one.
fn marks(text: &str, rows: usize) -> Vec<&str> {
    let last = |line: &str| ["chosen", "close"].into_iter().find(|mark| line.ends_with(mark));
    text.lines().skip(1).take(rows).map(|line| last(line).unwrap_or_default()).collect()
}

#[test]
fn the_chosen_one_is_beaten_by_close_ones_only() {
    let mut direct = profile().direct.unwrap();
    let rows = [(1, 91.0, 101.0), (2, 93.0, 94.0), (4, 100.0, 103.0), (8, 80.0, 85.0)];
    let row = |(depth, median, high)| Depth { depth, iops: Figure { median, low: median, high, runs: 5 } };
    direct.depths = rows.map(row).to_vec();
    // A run of it was as fast as the fastest: by the rule it is enough.
    direct.enough_depth = 1;
    assert_eq!(marks(&depths(&direct, PAGE), 4), ["chosen", "close", "close", ""]);
    let direct = profile().direct.unwrap();
    assert_eq!(marks(&blocks(&direct, PAGE), 6), ["", "", "chosen", "close", "close", ""]);
}

#[test]
fn the_deepest_queue_is_never_called_enough() {
    let text = depths(&deep().direct.unwrap(), PAGE);
    assert_eq!(marks(&text, 8), ["", "", "", "", "", "", "", "chosen"]);
    assert!(text.ends_with("\nA depth of 128 is the most that was tried: more might be faster.\n"), "{text}");
    assert!(!text.contains("enough"), "{text}");
}

#[test]
fn bars_are_as_long_as_their_share() {
    let blocks = [0.0, 0.01, 0.5, 0.52, 1.0].map(|share| bar(share, 4, true));
    assert_eq!(blocks, ["▏", "▏", "██", "██▏", "████"]);
    let ascii = [0.0, 0.3, 0.4, 1.0].map(|share| bar(share, 4, false));
    assert_eq!(ascii, ["#", "#", "##", "####"]);
}

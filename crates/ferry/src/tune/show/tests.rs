use std::path::Path;

use super::{age, text};
use crate::tune::effect::Effect;
use crate::tune::page::Page;
use crate::tune::sample::{deep, profile};

#[test]
fn ages_are_told_in_their_largest_unit() {
    let ages =
        [(0, "0 seconds"), (59, "59 seconds"), (60, "1 minute"), (7300, "2 hours"), (172_800, "2 days")];
    for (seconds, words) in ages {
        assert_eq!(age(seconds), format!("{words} ago"));
    }
}

/// Returns the text that shows a profile on a machine with two processors.
fn shown(profile: &ferry_tune::Profile, columns: usize) -> String {
    let page = Page { columns, has_blocks: true };
    text(Path::new("/p/one.toml"), profile, "2 hours ago", "in force", &Effect::of(profile, 2), page)
}

#[test]
fn a_profile_is_described_in_lines_that_fit() {
    let wide = "\
'/p/one.toml'
  ext4 on /dev/vda1 (Virtual disk, 64 GB), 00010203-0405-0607-0809-0a0b0c0d0e0f
  measured 2 hours ago (2026-11-22T12:00:00Z) by ferry 0.1.0, kernel 6.18.0
  in force
  reads 1.45 GB/s, writes 980 MB/s, blocks of 256K, 58,900 /s random reads of 4 KiB
  a depth of 16 is enough: deeper queues gain little or nothing
  copies from it run as without a profile: up to 32 cold reads are in flight, and a depth of 16 is enough";
    assert_eq!(shown(&profile(), 200), wide);
    let narrow = "\
'/p/one.toml'
  ext4 on /dev/vda1 (Virtual disk, 64
    GB),
    00010203-0405-0607-0809-0a0b0c0d0e0f
  measured 2 hours ago
    (2026-11-22T12:00:00Z) by ferry
    0.1.0, kernel 6.18.0
  in force
  reads 1.45 GB/s, writes 980 MB/s,
    blocks of 256K, 128,000 /s random
    reads of 4 KiB
  a depth of 128 is the most that was
    tried: more might be faster
  copies from it run as without a
    profile: up to 32 cold reads are in
    flight, the most for 2 processors";
    assert_eq!(shown(&deep(), 40), narrow);
    assert!(shown(&profile(), 80).lines().all(|line| line.chars().count() <= 80));
}

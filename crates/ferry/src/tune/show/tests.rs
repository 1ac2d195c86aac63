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
fn shown(profile: &ferry_tune::Profile, unused: Option<&str>, columns: usize) -> String {
    let page = Page { columns, has_blocks: true };
    text(Path::new("/p/one.toml"), profile, "2 hours ago", unused, &Effect::of(profile, 2), page)
}

#[test]
fn the_effect_on_copies_comes_first_in_lines_that_fit() {
    let wide = "\
Copies from ext4 on /dev/vda1 run as without a profile: up to 32 cold reads are in flight, and a depth of 16 is enough.
  reads 1.45 GB/s, writes 980 MB/s, blocks of 256K, 58,900 /s random reads of 4 KiB
  a depth of 16 is enough: deeper queues gain little or nothing
  measured 2 hours ago (2026-11-22T12:00:00Z) by ferry 0.1.0, kernel 6.18.0
  Virtual disk, 64 GB, 00010203-0405-0607-0809-0a0b0c0d0e0f
  kept in '/p/one.toml'";
    assert_eq!(shown(&profile(), None, 200), wide);
    let usual = "\
Copies from ext4 on /dev/vda1 run as without a profile: up to 32 cold reads are
  in flight, and a depth of 16 is enough.
  reads 1.45 GB/s, writes 980 MB/s, blocks of 256K, 58,900 /s random reads of 4
    KiB
  a depth of 16 is enough: deeper queues gain little or nothing
  measured 2 hours ago (2026-11-22T12:00:00Z) by ferry 0.1.0, kernel 6.18.0
  Virtual disk, 64 GB, 00010203-0405-0607-0809-0a0b0c0d0e0f
  kept in '/p/one.toml'";
    assert_eq!(shown(&profile(), None, 80), usual);
    let narrow = "\
Copies from ext4 on /dev/vda1 run as
  without a profile: up to 32 cold reads
  are in flight, the most for 2
  processors.
  reads 1.45 GB/s, writes 980 MB/s,
    blocks of 256K, 128,000 /s random
    reads of 4 KiB
  a depth of 128 is the most that was
    tried: more might be faster
  measured 2 hours ago
    (2026-11-22T12:00:00Z) by ferry
    0.1.0, kernel 6.18.0
  Virtual disk, 64 GB,
    00010203-0405-0607-0809-0a0b0c0d0e0f
  kept in '/p/one.toml'";
    assert_eq!(shown(&deep(), None, 40), narrow);
}

#[test]
fn a_profile_that_is_not_in_force_has_no_effect_on_copies() {
    let text = shown(&deep(), Some("it was measured on a drum, but this is a tape"), 200);
    let first = "Copies from ext4 on /dev/vda1 do not use the profile: it was measured on a drum, but this is a tape.\n";
    assert!(text.starts_with(first) && !text.contains("in flight"), "{text}");
}

use super::{Preset, Sizes, Workload};
use crate::fill::SplitMix64;

#[test]
fn presets_are_the_trees_of_the_measurements() {
    let check = |text: &str, folders, files| {
        let workload = text.parse::<Preset>().unwrap().workload(1);
        assert_eq!((workload.folder_count(), workload.file_count()), (folders, files), "{text}");
    };
    check("small", 781, 3905);
    check("wide", 19_608, 117_649);
    check("large", 156, 780);
    check("large-3905", 781, 3905);
    check("huge", 1, 1);
    check("huge:16", 1, 1);
    check("three", 1, 3);
    check("flat", 1, 50_000);
    check("deep", 2001, 2001);
    check("deep:5000", 5001, 5001);
    check("mixed", 341, 4092);
    check("empty:1000:7", 8, 1000);
}

#[test]
fn unknown_presets_are_refused() {
    for text in ["", "tiny", "small:1", "deep:x", "empty:1:0", "deep:1:2", "three:3", "huge:99999999"] {
        assert!(text.parse::<Preset>().is_err(), "{text}");
    }
    let error = "a\nb".parse::<Preset>().unwrap_err().to_string();
    assert!(error.starts_with("'a\\nb' is none of small, "), "{error}");
}

#[test]
fn log_normal_sizes_lie_around_the_median() {
    let sizes = Sizes::LogNormal { median: 8192, deviation_percent: 200, most: 1 << 20 };
    let mut numbers = SplitMix64::new(1);
    let mut drawn: Vec<u64> = (0..10_000).map(|_| sizes.draw(&mut numbers)).collect();
    drawn.sort_unstable();
    assert!((7000..9500).contains(&drawn[5000]), "median {}", drawn[5000]);
    // One standard deviation is a factor of four.
    assert!((25_000..40_000).contains(&drawn[8413]), "84% {}", drawn[8413]);
    assert!((1600..2600).contains(&drawn[1587]), "16% {}", drawn[1587]);
    assert!(drawn.iter().all(|size| *size <= 1 << 20));
}

#[test]
fn uniform_sizes_reach_both_ends() {
    let mut numbers = SplitMix64::new(2);
    let drawn: Vec<u64> = (0..100).map(|_| Sizes::Uniform { least: 3, most: 5 }.draw(&mut numbers)).collect();
    assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&5)));
}

#[test]
fn counts_of_impossible_trees_do_not_overflow() {
    let workload = Workload::plain(1000, 1000, 1000, 1, 0);
    assert_eq!((workload.folder_count(), workload.file_count()), (u64::MAX, u64::MAX));
}

#[test]
fn expected_bytes_are_about_what_is_drawn() {
    let check = |sizes: Sizes, tolerance_percent: u64| {
        let mut numbers = SplitMix64::new(3);
        let drawn: u64 = (0..20_000).map(|_| sizes.draw(&mut numbers)).sum();
        let expected = Workload { sizes, ..Workload::plain(0, 0, 20_000, 0, 1) }.expected_bytes();
        let allowed = expected / 100 * tolerance_percent;
        assert!(drawn.abs_diff(expected) <= allowed, "{sizes:?}: drawn {drawn}, expected {expected}");
    };
    check(Sizes::Fixed(4096), 0);
    check(Sizes::Uniform { least: 0, most: 3072 }, 2);
    check(Sizes::LogNormal { median: 8192, deviation_percent: 250, most: 64 << 20 }, 30);
}

use std::time::Duration;

use super::{bytes, clock, count, counted, per_second, rate, ratio, real, time};

#[test]
fn counts_are_grouped_by_thousands() {
    let pairs = [(0, "0"), (999, "999"), (1000, "1,000"), (60_123, "60,123"), (1_234_567, "1,234,567")];
    for (n, expected) in pairs {
        assert_eq!(count(n), expected);
    }
    assert_eq!(counted(1, "entry", "entries"), "1 entry");
    assert_eq!(counted(0, "entry", "entries"), "0 entries");
}

#[test]
fn bytes_have_a_unit_and_two_digits() {
    let pairs = [
        (0, "0 B"),
        (12, "12 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (8_460_000, "8.5 MB"),
        (9_949_999, "9.9 MB"),
        (9_950_000, "10 MB"),
        (851_400_000, "851 MB"),
        (999_499_999, "999 MB"),
        (999_500_000, "1.0 GB"),
        (u64::MAX, "18 EB"),
    ];
    for (n, expected) in pairs {
        assert_eq!(bytes(n), expected, "{n}");
    }
}

#[test]
fn times_are_rounded_to_what_matters() {
    let pairs = [
        (850, "850 µs"),
        (320_000, "320 ms"),
        (1_249_000, "1.2 s"),
        (59_949_000, "59.9 s"),
        (59_950_000, "0 min 59 s"),
        (125_000_000, "2 min 5 s"),
        (3_725_000_000, "1 h 2 min"),
    ];
    for (micros, expected) in pairs {
        assert_eq!(time(Duration::from_micros(micros)), expected, "{micros}");
    }
    assert_eq!(clock(Duration::from_secs(7)), "0:07");
    assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
}

#[test]
fn rates_and_ratios_survive_nothing() {
    assert_eq!(per_second(851, Duration::ZERO), None);
    assert_eq!(per_second(850, Duration::from_millis(500)), Some(1700));
    assert_eq!(rate(851_000_000, Duration::from_millis(1200)), "709 MB/s");
    assert_eq!(ratio(81, 2), Some("40.5".to_owned()));
    assert_eq!(ratio(1, 0), None);
}

#[test]
fn real_is_exact_up_to_53_bits() {
    assert!((real(1 << 52) - 4_503_599_627_370_496.0).abs() < 0.5);
    assert!((real(7) - 7.0).abs() < f64::EPSILON);
}

use super::{exact, label, step};

#[test]
fn ticks_are_at_round_times() {
    assert_eq!([step(999, 10), step(48_800_000, 4), step(0, 4)], [100, 20_000_000, 1]);
}

#[test]
fn labels_have_the_unit_of_the_scale_and_the_decimals_of_the_step() {
    for (at, step, scale, expected) in [
        (0, 20_000_000, 48_800_000, "0 ms"),
        (40_000_000, 20_000_000, 48_800_000, "40 ms"),
        (900_000, 100_000, 1_060_000, "0.9 ms"),
        (12_345_678_000, 1_000, 12_400_000_000, "12.345678 s"),
        (1_500_000_000, 500_000_000, 3_000_000_000, "1.5 s"),
        (500_020, 20, 501_000, "500.02 µs"),
        (700, 100, 999, "700 ns"),
        (7_200_000_000_000, 1_000_000_000_000, 9_000_000_000_000, "7,200 s"),
    ] {
        assert_eq!(label(at, step, scale), expected);
    }
}

#[test]
fn an_exact_time_has_the_digits_that_matter() {
    for (at, apart, expected) in [
        (15_364_470, 82_800, "15.36 ms"),
        (15_364_470, 1, "15.364470 ms"),
        (0, 133_000, "0 µs"),
        (999, 0, "999 ns"),
        (12_345_678_901, 10_000_000, "12.34 s"),
    ] {
        assert_eq!(exact(at, apart), expected);
    }
}

use super::{figure, plain, real, size};

#[test]
fn figures_have_three_digits_and_a_unit() {
    let check = |value, unit, text: &str| assert_eq!(figure(value, unit), text);
    check(0.070_123, "s", "70.1 ms");
    check(1.2345, "s", "1.23 s");
    check(0.000_012, "s", "12.0 µs");
    check(4200.0, "ns", "4.20 µs");
    check(0.0, "s", "0 s");
    check(480e6, "B/s", "480 MB/s");
    check(999.6, "B", "1.00 kB");
    check(12_345.6, "1/s", "12,346 /s");
    check(1.234, "x", "1.23");
    check(1_234_567.0, "", "1,234,567");
    check(3.0, "calls", "3 calls");
}

#[test]
fn plain_numbers_keep_what_matters() {
    assert_eq!(
        (plain(-1234.0), plain(0.0123), plain(12.34)),
        ("-1,234".into(), "0.0123".into(), "12.3".into())
    );
}

#[test]
fn sizes_are_those_of_the_command_line() {
    assert_eq!(
        (size(4096), size(1 << 20), size(1000), size(0)),
        ("4K".into(), "1M".into(), "1000".into(), "0".into())
    );
}

#[test]
fn whole_numbers_become_real_ones() {
    assert!((real(1 << 40) - 1_099_511_627_776.0).abs() < 1e-6);
}

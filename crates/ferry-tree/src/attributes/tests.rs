use super::Time;

#[test]
fn times_are_shown_in_utc() {
    let check = |seconds, expect: &str| assert_eq!(Time::new(seconds, 5).to_string(), expect);
    check(0, "1970-01-01 00:00:00.000000005 UTC");
    check(951_782_400, "2000-02-29 00:00:00.000000005 UTC");
    check(1_700_000_000, "2023-11-14 22:13:20.000000005 UTC");
    check(-1, "1969-12-31 23:59:59.000000005 UTC");
    check(-2_208_988_800, "1900-01-01 00:00:00.000000005 UTC");
}

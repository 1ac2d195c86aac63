use super::*;

#[test]
fn dates_are_those_of_the_calendar() {
    let text = |seconds| date(Time { seconds, nanoseconds: 0 });
    assert_eq!(text(0), "1970-01-01T000000Z");
    assert_eq!(text(-1), "1969-12-31T235959Z");
    assert_eq!(text(951_782_400), "2000-02-29T000000Z");
    assert_eq!(text(1_795_413_492), "2026-11-23T055812Z");
}

use super::text;

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(text(951_827_696_789), "2000-02-29T12:34:56.789Z");
    assert_eq!(text(1_785_542_399_999), "2026-07-31T23:59:59.999Z");
    assert_eq!(text(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
}

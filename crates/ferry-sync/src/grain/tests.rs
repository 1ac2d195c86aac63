use super::*;

fn time(seconds: i64, nanoseconds: u32) -> Time {
    Time { seconds, nanoseconds }
}

#[test]
fn the_granularity_follows_from_the_stored_probe() {
    let Time { seconds, .. } = Grain::PROBE;
    let stored = [
        (time(seconds, 999_999_999), 1),
        (time(seconds, 999_999_900), 100),
        (time(seconds, 999_999_000), 1_000),
        (time(seconds, 990_000_000), 10_000_000),
        (time(seconds, 0), SECOND),
        (time(seconds - 1, 0), 2 * SECOND),
    ];
    for (stored, nanoseconds) in stored {
        assert_eq!(Grain::of_stored(stored), Grain { nanoseconds }, "{stored:?}");
    }
}

#[test]
fn a_stored_time_is_the_latest_that_is_not_after_it() {
    let two_seconds = Grain { nanoseconds: 2 * SECOND };
    assert_eq!(two_seconds.stored(time(7, 5)), time(6, 0));
    assert_eq!(two_seconds.stored(time(-1, 5)), time(-2, 0));
    let hundred = Grain { nanoseconds: 100 };
    assert_eq!(hundred.stored(time(-1, 199)), time(-1, 100));
    assert_eq!(Grain::FINEST.stored(time(3, 123_456_789)), time(3, 123_456_789));
}

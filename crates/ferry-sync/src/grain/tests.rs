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
        assert_eq!(Grain::of_stored(stored), Grain::of_nanoseconds(nanoseconds), "{stored:?}");
    }
}

#[test]
fn a_stored_time_is_the_latest_that_is_not_after_it() {
    let two_seconds = Grain::of_seconds(2);
    assert_eq!(two_seconds.stored(time(7, 5)), time(6, 0));
    assert_eq!(two_seconds.stored(time(-1, 5)), time(-2, 0));
    let hundred = Grain::of_nanoseconds(100);
    assert_eq!(hundred.stored(time(-1, 199)), time(-1, 100));
    assert_eq!(Grain::FINEST.stored(time(3, 123_456_789)), time(3, 123_456_789));
}

#[test]
fn a_filesystem_that_can_not_be_asked_may_store_a_time_in_any_usual_step() {
    let set = time(7, 123_456_789);
    for found in [set, time(7, 123_456_700), time(7, 0), time(6, 0)] {
        assert!(Grain::UNKNOWN.stores(set, found), "{found:?}");
        assert_eq!(Grain::FINEST.stores(set, found), found == set);
    }
    for found in [time(7, 123_456_788), time(8, 0), time(7, 200_000_000)] {
        assert!(!Grain::UNKNOWN.stores(set, found), "{found:?}");
    }
}

#[test]
fn times_beyond_the_limits_are_stored_as_the_limits() {
    let (first, last) = (time(-2_147_483_648, 0), time(2_147_483_647, 0));
    let limited = Grain::FINEST.within(first, last);
    assert_eq!(limited.stored(time(-3_000_000_000, 5)), first);
    assert_eq!(limited.stored(time(3_000_000_000, 5)), last);
    assert_eq!(limited.stored(time(3, 5)), time(3, 5));
    // What is stored as it is shows no limit.
    assert_eq!(Grain::FINEST.within(LONG_AGO, LATE), Grain::FINEST);
}

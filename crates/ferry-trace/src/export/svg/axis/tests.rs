use super::{Axis, grouped, words};

fn ticks(began: u64, ended: u64) -> Vec<String> {
    Axis::of(began, ended).ticks().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn ticks_are_round_and_tell_times_apart() {
    assert_eq!(ticks(0, 7), ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(ticks(0, 1_000_000), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(ticks(12_345_678, 12_351_001), ["12.346", "12.347", "12.348", "12.349", "12.350", "12.351"]);
    assert_eq!(ticks(0, 90_000_000_000), ["0", "20", "40", "60", "80"]);
    // An empty period has ticks too, and the end of time is no exception.
    assert_eq!(ticks(5, 5), ["5", "6"]);
    assert!(!ticks(0, u64::MAX).is_empty() && !ticks(u64::MAX, u64::MAX).is_empty());
    assert!(Axis::of(u64::MAX, 0).place(7).is_finite());
}

#[test]
fn times_and_counts_are_written_as_people_read_them() {
    for (time, text) in [(0, "0 ns"), (999, "999 ns"), (1_500, "1.50 µs"), (23_456_000, "23.5 ms")] {
        assert_eq!(words(time), text);
    }
    assert_eq!(words(321_000_000_000), "321 s");
    assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
}

use std::time::{Duration, Instant};

use super::{Counts, History, Moment, Stop};

fn moment(counts: Counts, seconds: u64) -> Moment {
    let start = Instant::now();
    History::new(start).add(start + Duration::from_secs(seconds), counts)
}

#[test]
fn nothing_is_said_of_time_left_while_more_is_found() {
    let counts = Counts {
        entries_done: 12_034,
        entries_found: 15_200,
        bytes_done: 120_000_000,
        bytes_found: 340_000_000,
        complete: false,
    };
    let line = moment(counts, 12).line("copied");
    assert_eq!(line, "copied 12,034 of 15,200 entries found so far, 120 MB of 340 MB, 10 MB/s, 0:12 elapsed");
}

#[test]
fn time_left_is_the_longer_of_entries_and_bytes() {
    let counts =
        Counts { entries_done: 20, entries_found: 60, bytes_done: 100, bytes_found: 100, complete: true };
    assert_eq!(moment(counts, 10).left(), Some(Duration::from_secs(20)));
    assert_eq!(moment(counts, 10).permille(), 333);
    assert_eq!(moment(counts, 10).line("copied"), "copied 20 of 60 entries, 100 B, 10 B/s, about 0:20 left");
    let large = Counts { bytes_found: 1100, ..counts };
    assert_eq!(moment(large, 10).left(), Some(Duration::from_secs(100)));
}

#[test]
fn one_large_file_is_judged_by_its_bytes() {
    let counts =
        Counts { entries_done: 0, entries_found: 1, bytes_done: 500, bytes_found: 1000, complete: true };
    assert_eq!(moment(counts, 5).left(), Some(Duration::from_secs(5)));
}

#[test]
fn nothing_done_tells_nothing_of_time_left() {
    let counts = Counts { entries_found: 5, complete: true, ..Counts::default() };
    assert_eq!(moment(counts, 1).left(), None);
    assert_eq!(
        moment(Counts::default(), 0).line("copied"),
        "copied 0 of 0 entries found so far, 0 B of 0 B, no time, 0:00 elapsed"
    );
}

#[test]
fn rates_are_those_of_the_last_moments() {
    let start = Instant::now();
    let mut history = History::new(start);
    let mut last = None;
    for second in 1..=200 {
        let bytes_done = if second > 100 { (second - 100) * 1000 } else { 0 };
        let counts = Counts { bytes_done, ..Counts::default() };
        last = Some(history.add(start + Duration::from_secs(second), counts));
    }
    let last = last.unwrap();
    assert_eq!((last.window, last.bytes), (Duration::from_secs(50), 50_000));
}

#[test]
fn a_stop_ends_a_wait_at_once() {
    let stop = Stop::default();
    assert!(!stop.within(Duration::from_millis(1)));
    stop.now();
    let start = Instant::now();
    assert!(stop.within(Duration::from_secs(60)));
    assert!(start.elapsed() < Duration::from_secs(10));
}

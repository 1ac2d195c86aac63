use std::time::{Duration, Instant};

use super::{Counts, Found, History, Moment, Stop};

fn moment(counts: Counts, seconds: u64) -> Moment {
    let start = Instant::now();
    History::new(start).add(start + Duration::from_secs(seconds), counts)
}

#[test]
fn nothing_is_said_of_time_left_while_more_is_found() {
    let found = Found { entries: 15_200, bytes: 340_000_000, complete: false };
    let counts = Counts { entries: 12_034, bytes: 120_000_000, found: Some(found) };
    let moment = moment(counts, 12);
    assert_eq!(moment.left(), None);
    let line = "copied 12,034 of 15,200 entries found so far, 120 MB of 340 MB, 10 MB/s, 0:12 elapsed";
    assert_eq!(moment.line("copied"), line);
}

#[test]
fn time_left_is_the_longer_of_entries_and_bytes() {
    let found = Found { entries: 60, bytes: 100, complete: true };
    let counts = Counts { entries: 20, bytes: 100, found: Some(found) };
    assert_eq!(moment(counts, 10).left(), Some(Duration::from_secs(20)));
    assert_eq!(moment(counts, 10).permille(), 333);
    assert_eq!(moment(counts, 10).line("copied"), "copied 20 of 60 entries, 100 B, 10 B/s, about 0:20 left");
    let large = Counts { found: Some(Found { bytes: 1100, ..found }), ..counts };
    assert_eq!(moment(large, 10).left(), Some(Duration::from_secs(100)));
}

#[test]
fn one_large_file_is_judged_by_its_bytes() {
    let found = Found { entries: 1, bytes: 1000, complete: true };
    let counts = Counts { entries: 0, bytes: 500, found: Some(found) };
    assert_eq!(moment(counts, 5).left(), Some(Duration::from_secs(5)));
}

#[test]
fn nothing_done_tells_nothing_of_time_left() {
    let found = Found { entries: 5, bytes: 0, complete: true };
    let counts = Counts { found: Some(found), ..Counts::default() };
    assert_eq!(moment(counts, 1).left(), None);
    assert_eq!(moment(counts, 1).line("copied"), "copied 0 of 5 entries, 0 B, 0 B/s, 0:01 elapsed");
}

#[test]
fn what_is_not_counted_is_not_shown() {
    let counts = Counts { entries: 1000, bytes: 5_000_000, found: None };
    assert_eq!(moment(counts, 2).line("compared"), "compared 1,000 entries, 5.0 MB, 2.5 MB/s, 0:02 elapsed");
}

#[test]
fn rates_are_those_of_the_last_moments() {
    let start = Instant::now();
    let mut history = History::new(start);
    let mut last = None;
    for second in 1..=200 {
        let bytes = if second > 100 { (second - 100) * 1000 } else { 0 };
        let counts = Counts { bytes, ..Counts::default() };
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

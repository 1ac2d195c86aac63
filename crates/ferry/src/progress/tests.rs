use std::time::{Duration, Instant};

use super::{All, Counts, ENTRY, History, Moment, Stop};

fn moment(counts: Counts, seconds: u64) -> Moment {
    let start = Instant::now();
    History::new(start).add(start + Duration::from_secs(seconds), counts)
}

#[test]
fn there_is_no_percentage_while_the_work_is_unknown() {
    let counts = Counts { entries: 12_034, bytes: 120_000_000, ..Counts::default() };
    let facts = moment(counts, 12).facts();
    assert_eq!((facts.percent, facts.left, facts.bytes), (None, None, (120_000_000, None)));
}

#[test]
fn an_entry_counts_as_some_bytes() {
    // Half of the entries, and half of the bytes.
    let all = Some(All { entries: 40, bytes: Some(200), is_estimate: false });
    let counts = Counts { entries: 20, bytes: 60, passed: 40, all, moves_bytes: true };
    let facts = moment(counts, 10).facts();
    assert_eq!((facts.percent, facts.left), (Some(50), Some(Duration::from_secs(10))));
    // A large file is still to be copied.
    let counts = Counts {
        all: Some(All { entries: 20, bytes: Some(20 * ENTRY * 3 + 100), is_estimate: false }),
        ..counts
    };
    let facts = moment(counts, 10).facts();
    assert_eq!((facts.percent, facts.left), (Some(25), Some(Duration::from_millis(29_997))));
}

#[test]
fn without_sizes_entries_alone_count() {
    let counts = Counts {
        entries: 10,
        bytes: 1 << 40,
        passed: 0,
        moves_bytes: false,
        all: Some(All { entries: 40, bytes: None, is_estimate: false }),
    };
    let facts = moment(counts, 10).facts();
    assert_eq!((facts.percent, facts.left), (Some(25), Some(Duration::from_secs(30))));
}

#[test]
fn a_source_that_grows_is_never_more_than_whole() {
    let counts = Counts {
        entries: 50,
        bytes: 900,
        passed: 0,
        moves_bytes: true,
        all: Some(All { entries: 40, bytes: Some(200), is_estimate: false }),
    };
    let facts = moment(counts, 10).facts();
    assert_eq!((facts.percent, facts.left), (Some(100), Some(Duration::ZERO)));
}

#[test]
fn nothing_done_tells_nothing_of_time_left() {
    let counts =
        Counts { all: Some(All { entries: 5, bytes: Some(0), is_estimate: false }), ..Counts::default() };
    let facts = moment(counts, 1).facts();
    assert_eq!((facts.percent, facts.left), (Some(0), None));
    let nothing =
        Counts { all: Some(All { entries: 0, bytes: Some(0), is_estimate: false }), ..Counts::default() };
    assert_eq!(moment(nothing, 1).facts().percent, None);
}

#[test]
fn the_text_has_the_figures_of_the_line() {
    let counts =
        Counts { entries: 1_204, bytes: 200_000_000, passed: 61_000_000, all: None, moves_bytes: true };
    assert_eq!(counts.text(), "1,204 entries, 261 MB");
    let whole =
        Counts { all: Some(All { entries: 2_811, bytes: Some(629_000_000), is_estimate: false }), ..counts };
    assert_eq!(whole.text(), "1,204/2,811 entries, 261/629 MB");
    for counts in [counts, whole] {
        let line = super::line::plain(&moment(counts, 1).facts(), 80);
        assert!(counts.text().split(", ").all(|part| line.contains(part)), "{line}");
    }
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

#[test]
fn entries_alone_give_no_percentage_of_bytes() {
    let all = Some(All { entries: 40, bytes: None, is_estimate: false });
    let counts = Counts { entries: 20, bytes: 60, passed: 0, all, moves_bytes: true };
    let facts = moment(counts, 10).facts();
    assert_eq!((facts.percent, facts.left, facts.entries), (None, None, (20, Some(40))));
}

//! Recordings: arbitrary bytes are refused in one line, or read, checked, summarised and drawn without hanging or
//! panicking.
#![no_main]

use std::io;

use ferry_trace::answer::Answer;
use ferry_trace::check::{check, counts};
use ferry_trace::export::{html, perfetto, svg};
use ferry_trace::timeline::Timeline;
use ferry_trace::{Summary, Trace, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let trace = match read::read(bytes) {
        Err(why) => {
            let why = why.to_string();
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
            return;
        }
        Ok(trace) => trace,
    };
    assert!(check(&trace).len() <= 100);
    let total: u64 =
        counts(&trace).into_iter().filter(|(name, _)| name == "operations").map(|(_, n)| n).sum();
    assert_eq!(total, trace.operations.len() as u64);
    let summary = Summary::of(&trace, 60);
    assert!(summary.routes.iter().all(|route| route.times.total <= summary.time()));
    if let Some(devices) = &summary.devices {
        assert_eq!(devices.count(), trace.device_requests.len() as u64);
        assert!(devices.both <= devices.time.min(devices.operations) && devices.time <= trace.about.took);
    }
    let answer = Answer::of(&trace, &summary, 60);
    assert!(answer.in_flight.iter().all(|its| its.time <= trace.about.took));
    draw(&trace);
});

fn draw(trace: &Trace) {
    for written in
        [svg(trace, &mut io::sink()), perfetto(trace, &mut io::sink()), html(trace, &mut io::sink())]
    {
        written.expect("a sink takes everything");
    }
    let timeline = Timeline::of(trace);
    for row in &timeline.rows {
        let (first, rest) = (0..timeline.took / 2, timeline.took / 2..timeline.took);
        for piece in [first, rest] {
            let lasted = row.parts(&piece).iter().map(|part| part.time).max().unwrap_or(0);
            // Without a depth, nothing in a piece of time lasts longer than the piece.
            assert!(row.peak().is_some() || lasted <= piece.end - piece.start);
            assert!(row.items(&piece, 10).len() <= 10);
        }
    }
    for item in timeline.longest.iter().take(10) {
        let (began, ended) = ferry_trace::timeline::extent(trace, *item).expect("it is there");
        assert!(began <= ended);
    }
}

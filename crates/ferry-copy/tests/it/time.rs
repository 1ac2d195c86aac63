//! The reported time of a copy excludes closing the kernel's counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferry_copy::{Options, Progress};
use ferry_io::counting::{Count, Event};

use crate::told::Told;

/// Number of runs; the fastest counts, because other work delays some.
const TIMES: usize = 5;

/// Shortest time to close a tracepoint's counter: the last close waits for all processors.
fn closing() -> Option<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let count = Count::of_programs(Event::KernelWorkerHandover).ok()?;
        let begun = Instant::now();
        drop(count);
        least = least.min(begun.elapsed());
    }
    Some(least)
}

#[test]
fn closing_the_counters_is_not_in_the_time_of_a_copy() {
    let Some(closing) = closing() else { return eprintln!("SKIP: tracepoints can't be counted here") };
    let options = ferry_io::Options { observe: true, ..ferry_io::Options::default() };
    let took = || {
        let observer = Arc::new(Told::default());
        let copied = ferry_copy::run_from(
            ferry_io::Paths::new(),
            Vec::new(),
            &Options::default(),
            &options,
            Arc::<Progress>::default(),
            observer,
        );
        copied.unwrap().wall
    };
    let least = (0..TIMES).map(|_| took()).min().unwrap();
    // Closing within 5 ms can't be distinguished from a copy of nothing.
    assert!(least < (closing / 2).max(Duration::from_millis(5)), "{least:?}, and closing takes {closing:?}");
}

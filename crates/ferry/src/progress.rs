//! Progress display: a bar on a terminal, otherwise one line a second.
//!
//! A thread reads the counters ten times a second and draws. It starts only if progress may be shown. It
//! waits on a condition variable, so a short run ends at once. A percentage and the time left are shown once all work
//! is known: `census.rs` counts it ahead of the copy, `line.rs` lays out the line.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::layout::Screen;
use crate::output::{Output, lock};
use line::Facts;

pub(crate) mod census;
pub(crate) mod ending;
mod line;
#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum When {
    /// On a terminal, after half a second.
    #[default]
    Auto,
    /// After a tenth of a second on a terminal; otherwise a line a second.
    Always,
    Never,
}

impl When {
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("auto", Self::Auto), ("always", Self::Always), ("never", Self::Never)];
}

/// Work done, and all of it where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) entries: u64,
    /// Bytes moved.
    pub(crate) bytes: u64,
    /// Bytes that need not be moved.
    pub(crate) passed: u64,
    pub(crate) all: Option<All>,
    /// Set if the work is to move bytes: then entries alone give no percentage.
    pub(crate) moves_bytes: bool,
}

impl Counts {
    /// Formats `1,204/2,811 entries, 261/629 MB`, as the line of progress has them.
    pub(crate) fn text(&self) -> String {
        let Self { entries, bytes, passed, all, moves_bytes: _ } = *self;
        let entries = line::entries_of((entries, all.map(|all| all.entries)));
        format!("{entries}, {}", line::bytes_of((bytes + passed, all.and_then(|all| all.bytes))))
    }
}

/// All work, including what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct All {
    pub(crate) entries: u64,
    /// `None` if only entries were counted.
    pub(crate) bytes: Option<u64>,
    /// Set if the number of bytes is an estimate.
    pub(crate) is_estimate: bool,
}

const PATIENCE: Duration = Duration::from_millis(500);
/// Time before the work is counted: shorter copies are not slowed down.
const COUNT_DELAY: Duration = Duration::from_millis(500);
const BAR_PERIOD: Duration = Duration::from_millis(100);
const LINE_PERIOD: Duration = Duration::from_secs(1);
/// Number of samples that a rate covers.
const WINDOW: usize = 50;
/// Bytes whose copying takes about as long as what else is to be done for an entry.
const ENTRY: u64 = 64 << 10;

pub(crate) struct Indicator {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Option<Counts>>>,
}

impl Indicator {
    /// Starts the display if `when` asks for it.
    pub(crate) fn start(
        when: When,
        counts: impl Fn() -> Counts + Send + 'static,
        output: Arc<Output>,
    ) -> Self {
        let stop = Arc::new(Stop::default());
        let terminal = std::io::stderr().is_terminal();
        let delay = match when {
            When::Auto if terminal => PATIENCE,
            When::Always => BAR_PERIOD,
            When::Auto | When::Never => return Self { stop, thread: None },
        };
        let show = {
            let stop = Arc::clone(&stop);
            let start = Instant::now();
            move || {
                let history = History::new(start);
                if stop.within(delay) {
                    return (when == When::Always).then(&counts);
                }
                Some(if terminal {
                    draw_bar(&counts, history, &output, &stop)
                } else {
                    print_lines(&counts, history, &output, &stop)
                })
            }
        };
        // Progress is optional: a thread that cannot start is no error.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Self { stop, thread }
    }

    /// Removes the display, and returns the counts of its last state; `None` if it was not shown.
    pub(crate) fn stop(self) -> Option<Counts> {
        self.stop.now();
        self.thread.and_then(|thread| thread.join().ok().flatten())
    }
}

fn draw_bar(counts: &impl Fn() -> Counts, mut history: History, output: &Output, stop: &Stop) -> Counts {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
    output.show(Some(bar.clone()));
    let mut is_over = false;
    let last = loop {
        // A full line would make some terminals scroll.
        let columns = Screen::of(std::io::stderr()).unwrap_or(Screen::USUAL).columns - 1;
        let counts = counts();
        let line = line::with_bar(&history.add(Instant::now(), counts).facts(), columns);
        if is_over {
            // Drawn however little time has passed, so that the state shown last is the one that is returned.
            bar.abandon_with_message(line);
            break counts;
        }
        bar.set_message(line);
        bar.tick();
        is_over = stop.within(BAR_PERIOD);
    };
    output.show(None);
    bar.finish_and_clear();
    last
}

fn print_lines(counts: &impl Fn() -> Counts, mut history: History, output: &Output, stop: &Stop) -> Counts {
    let mut wait = LINE_PERIOD - BAR_PERIOD;
    // A call begins to count the work, so that the first line has all of it.
    if !stop.within(COUNT_DELAY - BAR_PERIOD) {
        counts();
        wait = LINE_PERIOD - COUNT_DELAY;
    }
    while !stop.within(wait) {
        wait = LINE_PERIOD;
        output.error(&line::plain(&history.add(Instant::now(), counts()).facts(), Screen::USUAL.columns));
    }
    counts()
}

/// Flag that a thread can wait for with a time limit.
#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn now(&self) {
        *lock(&self.stopped) = true;
        self.changed.notify_all();
    }

    /// Waits up to `limit` and returns true if the flag was set.
    fn within(&self, limit: Duration) -> bool {
        let stopped = lock(&self.stopped);
        let waited = self.changed.wait_timeout_while(stopped, limit, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Recent samples, from which the current rate is computed.
struct History {
    start: Instant,
    samples: VecDeque<(Instant, Counts)>,
}

impl History {
    fn new(start: Instant) -> Self {
        Self { start, samples: VecDeque::from([(start, Counts::default())]) }
    }

    fn add(&mut self, now: Instant, counts: Counts) -> Moment {
        let &(since, before) = self.samples.front().unwrap_or(&(self.start, Counts::default()));
        if self.samples.len() == WINDOW {
            self.samples.pop_front();
        }
        self.samples.push_back((now, counts));
        Moment {
            counts,
            elapsed: now - self.start,
            window: now - since,
            entries: counts.entries.saturating_sub(before.entries),
            bytes: counts.bytes.saturating_sub(before.bytes),
            passed: counts.passed.saturating_sub(before.passed),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    counts: Counts,
    elapsed: Duration,
    /// Time in which `entries`, `bytes` and `passed` were done.
    window: Duration,
    entries: u64,
    bytes: u64,
    passed: u64,
}

impl Moment {
    fn facts(&self) -> Facts {
        let Counts { entries, bytes, passed, all, moves_bytes } = self.counts;
        let bytes = bytes + passed;
        // Bytes count only where all of them are known.
        let work = |entries: u64, bytes: u64| match all.and_then(|all| all.bytes) {
            Some(_) => u128::from(entries) * u128::from(ENTRY) + u128::from(bytes),
            None => u128::from(entries),
        };
        let done = work(entries, bytes);
        // The source may have grown.
        let known = all.filter(|all| all.bytes.is_some() || !moves_bytes);
        let whole = known.map(|all| work(all.entries, all.bytes.unwrap_or(0)).max(done));
        let recent = work(self.entries, self.bytes + self.passed);
        let left = whole.and_then(|whole| ((whole - done) * self.window.as_millis()).checked_div(recent));
        let left = left.and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis);
        Facts {
            percent: whole.and_then(|whole| (done * 100).checked_div(whole)),
            is_estimate: all.is_some_and(|all| all.is_estimate),
            bytes: (bytes, all.and_then(|all| all.bytes)),
            entries: (entries, all.map(|all| all.entries)),
            rate: (self.bytes, self.window),
            left,
            elapsed: self.elapsed,
        }
    }
}

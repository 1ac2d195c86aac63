//! Progress display: a bar on a terminal, otherwise one line a second.
//!
//! A thread reads the counters ten times a second and draws. It starts only if progress may be shown. It
//! waits on a condition variable, so a short run ends at once. The time left is shown only after the walk has
//! found every entry.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{Output, lock};
use crate::units::{bytes, clock, count, counted, rate};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum When {
    /// On a terminal, after half a second.
    #[default]
    Auto,
    /// From the start, also without a terminal.
    Always,
    Never,
}

impl When {
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("auto", Self::Auto), ("always", Self::Always), ("never", Self::Never)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// Work found so far, if it is counted.
    pub(crate) found: Option<Found>,
}

/// Work found so far, including work that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) entries: u64,
    /// Bytes of the files started.
    pub(crate) bytes: u64,
    /// True after the last entry was found.
    pub(crate) complete: bool,
}

const PATIENCE: Duration = Duration::from_millis(500);
const BAR_PERIOD: Duration = Duration::from_millis(100);
const LINE_PERIOD: Duration = Duration::from_secs(1);
/// Number of samples that a rate covers.
const WINDOW: usize = 50;
/// Length of the bar in steps.
const FULL: u64 = 1000;

pub(crate) struct Indicator {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<bool>>,
}

impl Indicator {
    /// Starts the display if `when` asks for it; `verb` is the past participle to print, such as `copied`.
    pub(crate) fn start(
        when: When,
        verb: &'static str,
        counts: impl Fn() -> Counts + Send + 'static,
        output: Arc<Output>,
    ) -> Self {
        let stop = Arc::new(Stop::default());
        let terminal = std::io::stderr().is_terminal();
        let delay = match when {
            When::Auto if terminal => PATIENCE,
            When::Always => Duration::ZERO,
            When::Auto | When::Never => return Self { stop, thread: None },
        };
        let show = {
            let stop = Arc::clone(&stop);
            let start = Instant::now();
            move || {
                if !delay.is_zero() && stop.within(delay) {
                    return false;
                }
                let history = History::new(start);
                if terminal {
                    draw_bar(verb, &counts, history, &output, &stop);
                } else {
                    print_lines(verb, &counts, history, &output, &stop);
                }
                true
            }
        };
        // Progress is optional: a thread that cannot start is no error.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Self { stop, thread }
    }

    /// Removes the display and returns true if it was shown.
    pub(crate) fn stop(self) -> bool {
        self.stop.now();
        self.thread.is_some_and(|thread| thread.join().unwrap_or(false))
    }
}

fn draw_bar(verb: &str, counts: &impl Fn() -> Counts, mut history: History, output: &Output, stop: &Stop) {
    let bar = ProgressBar::with_draw_target(Some(FULL), ProgressDrawTarget::stderr());
    let style =
        |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style("{spinner} {wide_msg}"));
    output.show(Some(bar.clone()));
    let mut complete = false;
    loop {
        let now = history.add(Instant::now(), counts());
        bar.set_message(now.line(verb));
        if now.complete().is_some() && !complete {
            complete = true;
            bar.set_style(style("[{bar:20}] {wide_msg}").progress_chars("=> "));
        }
        bar.set_position(now.permille());
        if stop.within(BAR_PERIOD) {
            break;
        }
    }
    output.show(None);
    bar.finish_and_clear();
}

fn print_lines(verb: &str, counts: &impl Fn() -> Counts, mut history: History, output: &Output, stop: &Stop) {
    while !stop.within(LINE_PERIOD) {
        output.error(&history.add(Instant::now(), counts()).line(verb));
    }
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
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    counts: Counts,
    elapsed: Duration,
    /// Time in which `entries` and `bytes` were done.
    window: Duration,
    entries: u64,
    bytes: u64,
}

impl Moment {
    fn complete(&self) -> Option<Found> {
        self.counts.found.filter(|found| found.complete)
    }

    /// Estimates the time left, if all entries are known.
    ///
    /// The sizes of files not started are unknown. So this takes the longer of two estimates: remaining bytes
    /// of the files started, and remaining entries, each at its own rate.
    fn left(&self) -> Option<Duration> {
        let found = self.complete()?;
        let rest = |found: u64, done: u64, recent: u64| match found.saturating_sub(done) {
            0 => Some(0),
            rest => (u128::from(rest) * self.window.as_millis()).checked_div(u128::from(recent)),
        };
        let entries = rest(found.entries, self.counts.entries, self.entries);
        let bytes = rest(found.bytes, self.counts.bytes, self.bytes);
        let milliseconds = match (entries, bytes) {
            (Some(entries), Some(bytes)) => entries.max(bytes),
            // No entry was completed recently, but bytes were: one large file.
            (None, Some(bytes)) if bytes > 0 => bytes,
            (None, _) | (_, None) => return None,
        };
        u64::try_from(milliseconds).ok().map(Duration::from_millis)
    }

    fn permille(&self) -> u64 {
        let Some(left) = self.left() else { return 0 };
        let (elapsed, whole) = (self.elapsed.as_millis(), (self.elapsed + left).as_millis());
        u64::try_from((elapsed * u128::from(FULL)).checked_div(whole).unwrap_or(0)).unwrap_or(FULL)
    }

    fn line(&self, verb: &str) -> String {
        let Counts { entries, bytes: moved, found } = self.counts;
        let (rate, elapsed) = (rate(self.bytes, self.window), format!("{} elapsed", clock(self.elapsed)));
        let Some(found) = found else {
            let done = counted(entries, "entry", "entries");
            return format!("{verb} {done}, {}, {rate}, {elapsed}", bytes(moved));
        };
        let (done, all) = (count(entries), counted(found.entries, "entry", "entries"));
        if found.complete {
            let left = self.left().map_or(elapsed, |left| format!("about {} left", clock(left)));
            format!("{verb} {done} of {all}, {}, {rate}, {left}", bytes(moved))
        } else {
            let (moved, met) = (bytes(moved), bytes(found.bytes));
            format!("{verb} {done} of {all} found so far, {moved} of {met}, {rate}, {elapsed}")
        }
    }
}

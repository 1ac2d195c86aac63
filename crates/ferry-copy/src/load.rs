//! `--max-load`: pauses a run while other programs wait for I/O.
//!
//! The kernel counts the time in which tasks wait for I/O (/proc/pressure/io, Documentation/accounting/psi.rst), and the
//! time that a device takes for reads (Documentation/block/stat.rst). It does not count by program, and a run's own
//! requests count, too. So the run holds them back for a moment: each fiber waits at [`Gate::pass`] before its next entry
//! or its next piece of a large file. Others' waiting is measured then. If it takes up more of the time than is permitted,
//! the run stays paused and measures again.
//!
//! Requests in flight would count as others' load: 64 fibers with a piece each keep a disk of 100 MB/s busy for longer than a
//! second. So pieces are counted ([`InFlight`]), and a window begins once none is left, or after [`LONGEST`].
//!
//! No fiber drives the [`Policy`]: the fibers that come to the gate take its steps, one reading for each window. It gets
//! the time and the readings, so its tests need neither.
//!
//! Limits: the write-back of pages that the run has written goes on meanwhile, and counts as others' I/O. So do the calls of
//! entries in flight that take longer than [`SETTLE`], which are not counted: on a slow device, many small files at once can
//! make the run pause without others. Requests that do not come to the gate go on: the rest of a long listing, the attributes
//! of a folder at its end, syncing.

use std::fmt;
use std::num::NonZeroU8;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ferry_io::Result;

use crate::mutex::lock;

/// Time from a measurement to the next.
const PERIOD: Duration = Duration::from_secs(2);
/// Time for own requests in flight to complete, and from one look at them to the next.
const SETTLE: Duration = Duration::from_millis(30);
/// Length of a window; the first one includes [`SETTLE`].
const WINDOW: Duration = Duration::from_millis(150);
/// Longest time without work, and longest time that pieces in flight delay a measurement.
const LONGEST: Duration = Duration::from_secs(2);
/// Time for work after the longest pause, so that every run ends some day.
const WORK: Duration = Duration::from_millis(250);
/// Bytes of a large file between two passes. One such piece is within [`SETTLE`] on a disk of 100 MB/s.
pub(crate) const PIECE: u64 = 2 << 20;

/// A run's pauses so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pauses {
    /// Number of times that the run was paused because others waited.
    pub count: u64,
    /// Total time of these pauses. It does not include the first window of each, in which others are measured.
    pub time: Duration,
    /// Number of measurements.
    pub measured: u64,
}

/// Total times that grow while others use or wait for I/O. The one that has grown most counts.
pub type Waited = [Duration; 3];

/// Reads the totals; `None` if they can't be read.
type Reader = Box<dyn Fn() -> Option<Waited> + Send + Sync>;

/// The place where a run's fibers wait while it is held back.
pub struct Gate {
    policy: Mutex<Policy>,
    waited: Reader,
}

impl Gate {
    /// Returns a gate for a run that pauses while others wait for more than `percent` of the time. `waited` returns totals
    /// that count since any moment in the past.
    pub fn new(percent: NonZeroU8, waited: impl Fn() -> Option<Waited> + Send + Sync + 'static) -> Self {
        Self { policy: Mutex::new(Policy::new(percent)), waited: Box::new(waited) }
    }

    /// Waits until the run may go on, if there is a gate.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub async fn pass(gate: Option<&Self>) -> Result<()> {
        Self::begin(gate).await.map(drop)
    }

    /// Waits like [`Self::pass`]. What follows counts as in flight until the result is dropped, which must not wait for the
    /// gate again.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub async fn begin(gate: Option<&Self>) -> Result<Option<InFlight<'_>>> {
        match gate {
            // Boxed: its state would be part of every entry's.
            Some(gate) => Box::pin(gate.wait()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the pauses so far.
    #[must_use]
    pub fn pauses(&self) -> Pauses {
        lock(&self.policy).pauses
    }

    async fn wait(&self) -> Result<InFlight<'_>> {
        loop {
            let time = {
                let mut policy = lock(&self.policy);
                match policy.step(ferry_io::now(), &self.waited) {
                    Step::Work => {
                        policy.in_flight += 1;
                        return Ok(InFlight(self));
                    }
                    Step::Wait(time) => time,
                }
            };
            ferry_io::sleep(time).await?;
        }
    }
}

/// A piece that has passed a gate. It ends when this is dropped.
#[must_use = "the piece is in flight for as long as this is held"]
pub struct InFlight<'a>(&'a Gate);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        lock(&self.0.policy).in_flight -= 1;
    }
}

impl fmt::Debug for InFlight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").finish_non_exhaustive()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Next step of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Work,
    /// Come again after this time.
    Wait(Duration),
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The next caller begins a measurement.
    Due,
    /// Works for this time.
    Working {
        since: Instant,
        time: Duration,
    },
    /// Own requests end.
    Settling {
        held: Instant,
    },
    Measuring(Window),
}

/// A measurement under way.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Beginning of the first window: the run is held back since, and for [`SETTLE`] before.
    begun: Instant,
    since: Instant,
    length: Duration,
    /// The totals at its beginning.
    waited: Waited,
    /// Set if the window before has shown that others wait.
    is_pause: bool,
}

/// Decides when a run works and when it waits.
#[derive(Debug)]
struct Policy {
    percent: NonZeroU8,
    state: State,
    pauses: Pauses,
    /// Pieces that have passed and not ended.
    in_flight: u64,
}

impl Policy {
    fn new(percent: NonZeroU8) -> Self {
        Self { percent, state: State::Due, pauses: Pauses::default(), in_flight: 0 }
    }

    /// Returns what a caller does at this time. `waited` is called once at most.
    fn step(&mut self, now: Instant, waited: impl FnOnce() -> Option<Waited>) -> Step {
        let left = |since: Instant, time: Duration| time.saturating_sub(now.saturating_duration_since(since));
        let left = match self.state {
            State::Due => Duration::ZERO,
            State::Working { since, time } => left(since, time),
            State::Settling { held } if self.in_flight == 0 => left(held, SETTLE),
            State::Settling { held } => left(held, LONGEST).min(SETTLE),
            State::Measuring(window) => left(window.since, window.length),
        };
        match self.state {
            State::Working { .. } if !left.is_zero() => Step::Work,
            State::Due | State::Working { .. } => self.hold(now),
            State::Settling { .. } | State::Measuring(_) if !left.is_zero() => Step::Wait(left),
            State::Settling { .. } => self.begin(now, waited()),
            State::Measuring(window) => self.end(now, window, waited()),
        }
    }

    fn hold(&mut self, now: Instant) -> Step {
        self.state = State::Settling { held: now };
        Step::Wait(SETTLE)
    }

    fn work(&mut self, now: Instant, time: Duration) -> Step {
        self.state = State::Working { since: now, time };
        Step::Work
    }

    fn measure(&mut self, window: Window) -> Step {
        self.state = State::Measuring(window);
        Step::Wait(window.length)
    }

    /// Begins the first window.
    fn begin(&mut self, now: Instant, waited: Option<Waited>) -> Step {
        // Without a measurement there is no reason to wait.
        let Some(waited) = waited else { return self.work(now, PERIOD) };
        self.pauses.measured += 1;
        let length = WINDOW.saturating_sub(SETTLE);
        self.measure(Window { begun: now, since: now, length, waited, is_pause: false })
    }

    /// Ends a window: the run works, or stays paused for another.
    fn end(&mut self, now: Instant, window: Window, waited: Option<Waited>) -> Step {
        let time = now.saturating_duration_since(window.since);
        if window.is_pause {
            self.pauses.time += time;
        }
        let Some(waited) = waited else { return self.work(now, PERIOD) };
        let grown = waited.iter().zip(window.waited).map(|(now, before)| now.saturating_sub(before));
        if !self.is_exceeded(grown.max().unwrap_or_default(), time) {
            return self.work(now, PERIOD);
        }
        if SETTLE + now.saturating_duration_since(window.begun) + WINDOW > LONGEST {
            return self.work(now, WORK);
        }
        self.pauses.count += u64::from(!window.is_pause);
        self.measure(Window { since: now, length: WINDOW, waited, is_pause: true, ..window })
    }

    /// Returns true if others waited for more of the time than is permitted.
    fn is_exceeded(&self, waited: Duration, time: Duration) -> bool {
        // The total may be read a moment later than the time.
        waited.min(time).as_micros() * 100 > time.as_micros() * u128::from(self.percent.get())
    }
}

#[cfg(test)]
mod tests;

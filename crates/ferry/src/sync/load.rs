//! `--max-load`: lowers the priorities, reads how long programs wait for I/O, and reports the pauses.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferry_copy::{Gate, Pauses};
use ferry_io::{Cause, priority};

use crate::output::{Output, describe};
use crate::units::time;

/// Waiting for I/O in the whole system. The file of a control group shows its own programs only.
const PRESSURE: &str = "/proc/pressure/io";
/// The file has some 100 bytes.
const MOST_BYTES: u64 = 4096;

/// A run that yields to other programs.
pub(super) struct Yielding {
    begun: Instant,
    /// Missing if the kernel does not show who waits.
    gate: Option<Arc<Gate>>,
}

impl Yielding {
    /// Lowers the priorities of this thread, and so of those that it starts later. Failures are reported.
    pub(super) fn begin(percent: NonZeroU8, program: &str, output: &Output) -> Self {
        let warn = |text: String| output.error(&format!("{program}: warning: {text}"));
        let lowered = [("processor", priority::yield_processors()), ("I/O", priority::yield_devices())];
        for (what, lowered) in lowered {
            if let Err(errno) = lowered {
                warn(format!("cannot lower the {what} priority: {}", Cause::Errno(errno)));
            }
        }
        let gate = match waited() {
            Ok(_) => Some(Arc::new(Gate::new(percent, || waited().ok()))),
            Err(error) => {
                let why = describe(&error);
                warn(format!("cannot read '{PRESSURE}': {why}; --max-load only lowers the priorities"));
                None
            }
        };
        Self { begun: Instant::now(), gate }
    }

    pub(super) fn gate(&self) -> Option<Arc<Gate>> {
        self.gate.clone()
    }

    /// Returns the pauses so far.
    pub(super) fn pauses(&self) -> Pauses {
        self.gate.as_ref().map(|gate| gate.pauses()).unwrap_or_default()
    }

    /// Returns the line about the pauses; `None` if there were none.
    pub(super) fn closing(&self) -> Option<String> {
        closing(self.pauses(), self.begun.elapsed())
    }
}

fn closing(pauses: Pauses, all: Duration) -> Option<String> {
    let paused = (pauses.count > 0).then(|| time(pauses.time))?;
    Some(format!("paused {paused} of {} because other programs waited for I/O", time(all)))
}

/// Returns the total time in which some task has waited for I/O.
fn waited() -> Result<Duration> {
    let mut text = String::new();
    File::open(PRESSURE)?.take(MOST_BYTES).read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| Error::new(ErrorKind::InvalidData, "it has no total of 'some'"))
}

/// Parses the file: the total of its first line, `some`, in microseconds (Documentation/accounting/psi.rst).
fn parse(text: &str) -> Option<Duration> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let (some, _) = text.split_once('\n')?;
    let mut words = some.strip_prefix("some ")?.split(' ');
    for average in ["avg10=", "avg60=", "avg300="] {
        let (whole, hundredths) = words.next()?.strip_prefix(average)?.split_once('.')?;
        if !is_number(whole) || !is_number(hundredths) {
            return None;
        }
    }
    let total = words.next()?.strip_prefix("total=").filter(|total| is_number(total))?;
    if words.next().is_some() {
        return None;
    }
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests;

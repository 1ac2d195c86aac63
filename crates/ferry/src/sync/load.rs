//! `--max-load`: lowers the priorities, reads how long programs wait for I/O and how long devices take for reads, and
//! reports the pauses.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::num::NonZeroU8;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
    /// `places` are on the devices that it reads and writes.
    pub(super) fn begin(percent: NonZeroU8, program: &str, output: &Output, places: [&Path; 2]) -> Self {
        let warn = |text: String| output.error(&format!("{program}: warning: {text}"));
        let lowered = [("processor", priority::yield_processors()), ("I/O", priority::yield_devices())];
        for (what, lowered) in lowered {
            if let Err(errno) = lowered {
                warn(format!("cannot lower the {what} priority: {}", Cause::Errno(errno)));
            }
        }
        let gate = match pressure() {
            Ok(_) => {
                let devices = places.map(device_of);
                Some(Arc::new(Gate::new(percent, move || {
                    let [source, target] = &devices;
                    let read = |device: &Option<PathBuf>| device.as_deref().and_then(reading);
                    let [of_source, of_target] =
                        [source, target].map(|device| read(device).unwrap_or_default());
                    Some([pressure().ok()?, of_source, of_target])
                })))
            }
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

fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the statistics of the device that a place is on; `None` if it is on none. A place that does not exist yet is
/// where its folder is.
fn device_of(place: &Path) -> Option<PathBuf> {
    let found = std::path::absolute(place).ok()?.ancestors().find_map(|at| std::fs::metadata(at).ok())?;
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
    path.exists().then_some(path)
}

/// Returns the total time that a device has taken for reads, of all at once (Documentation/block/stat.rst). Writes are no
/// measure of others, because what this run has written is written back meanwhile.
fn reading(device: &Path) -> Option<Duration> {
    parse_reading(&text_of(device).ok()?)
}

/// The fourth number: milliseconds.
fn parse_reading(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().nth(3)?.parse().ok().map(Duration::from_millis)
}

/// Returns the total time in which tasks have waited for I/O.
fn pressure() -> Result<Duration> {
    let text = text_of(PRESSURE.as_ref())?;
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

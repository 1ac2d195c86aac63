//! The times that a filesystem can store.

use ferry_io::Time;

#[cfg(test)]
mod tests;

const SECOND: u64 = 1_000_000_000;

/// Granularity and limits of a filesystem's modification times, found by setting some and reading them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grain {
    /// Nanoseconds between two times that can be stored: 1, 100, 1,000, 1 or 2 seconds, and others.
    nanoseconds: u64,
    /// First time that can be stored.
    first: Time,
    /// Last time that can be stored.
    last: Time,
    /// Set if nothing is known of the filesystem: a time may be stored in any of the usual steps.
    is_unknown: bool,
}

/// Usual steps of stored times, in nanoseconds.
const STEPS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 1_000_000, 10_000_000, SECOND, 2 * SECOND];

/// Times that no filesystem with limits can store: years -29719 and 33658.
pub(crate) const LONG_AGO: Time = Time { seconds: -1_000_000_000_000, nanoseconds: 0 };
pub(crate) const LATE: Time = Time { seconds: 1_000_000_000_000, nanoseconds: 0 };

impl Grain {
    /// A filesystem that stores nanoseconds, and every time.
    pub(crate) const FINEST: Self = Self::of_nanoseconds(1);

    /// A filesystem that can't be asked, over a network or in user space for example.
    pub(crate) const UNKNOWN: Self = Self { is_unknown: true, ..Self::FINEST };

    /// The time to set when a filesystem is asked. Its seconds and nanoseconds are odd in every place.
    pub(crate) const PROBE: Time = Time { seconds: 1_234_567_899, nanoseconds: 999_999_999 };

    /// A filesystem that stores multiples of this many seconds.
    pub(crate) const fn of_seconds(seconds: u64) -> Self {
        Self::of_nanoseconds(seconds * SECOND)
    }

    /// A filesystem that stores multiples of this many nanoseconds.
    pub(crate) const fn of_nanoseconds(nanoseconds: u64) -> Self {
        let first = Time { seconds: i64::MIN, nanoseconds: 0 };
        let last = Time { seconds: i64::MAX, nanoseconds: 0 };
        Self { nanoseconds, first, last, is_unknown: false }
    }

    /// Sets the limits, as they were stored for [`LONG_AGO`] and [`LATE`]. A time that was stored as it is shows none.
    #[must_use]
    pub(crate) fn within(self, first: Time, last: Time) -> Self {
        let first = if first > LONG_AGO { first } else { self.first };
        let last = if last < LATE { last } else { self.last };
        Self { first, last, ..self }
    }

    /// Derives the granularity from the time that was stored for [`Self::PROBE`].
    pub(crate) fn of_stored(stored: Time) -> Self {
        let is_it = |step: &&u64| Self::of_nanoseconds(**step).stored(Self::PROBE) == stored;
        STEPS.iter().find(is_it).map_or(Self::FINEST, |&nanoseconds| Self::of_nanoseconds(nanoseconds))
    }

    /// Returns true if a file with the time `found` may have been given `time`.
    pub(crate) fn stores(self, time: Time, found: Time) -> bool {
        let is_stored = |step: u64| Self::of_nanoseconds(step).stored(time) == found;
        self.stored(time) == found || self.is_unknown && STEPS.into_iter().any(is_stored)
    }

    /// Returns the time that the filesystem stores for `time`: the latest that is not after it, within its limits.
    pub(crate) fn stored(self, time: Time) -> Time {
        if time < self.first {
            return self.first;
        }
        if time > self.last {
            return self.last;
        }
        if self.nanoseconds < SECOND {
            let past = u64::from(time.nanoseconds) % self.nanoseconds;
            let past = u32::try_from(past).unwrap_or_default();
            return Time { nanoseconds: time.nanoseconds - past, ..time };
        }
        let seconds = i64::try_from(self.nanoseconds / SECOND).unwrap_or(1);
        Time { seconds: time.seconds - time.seconds.rem_euclid(seconds), nanoseconds: 0 }
    }
}

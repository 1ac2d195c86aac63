//! `--bwlimit`: a rate limit on the bytes written, over all workers.
//!
//! A token bucket, kept as the time at which everything requested so far is paid. A fiber waits until its bytes are
//! paid before it writes them, so a run never exceeds its rate. Time lost in listing or opening may be made up for by a
//! tenth of a second. Shared extents move no bytes and cost nothing.

use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ferry_io::Result;

use crate::mutex::lock;

/// Time that a run may make up for.
const BURST: Duration = Duration::from_millis(100);
/// Pieces of a large file in a second: waits stay short, and calls large.
const PIECES: u64 = 20;
/// Bounds on a piece, in bytes.
const SMALLEST: u64 = 4 << 10;
const LARGEST: u64 = 8 << 20;

/// The bucket.
pub(crate) struct Pace {
    /// Bytes a second.
    rate: NonZeroU64,
    /// Time at which all requests are paid; `None` before the first.
    paid: Mutex<Option<Instant>>,
}

impl Pace {
    /// Returns a bucket that fills at a rate in bytes a second.
    pub(crate) fn new(rate: NonZeroU64) -> Self {
        Self { rate, paid: Mutex::new(None) }
    }

    /// Returns the bytes of a large file that are moved at once.
    pub(crate) fn piece(&self) -> u64 {
        (self.rate.get() / PIECES).clamp(SMALLEST, LARGEST)
    }

    /// Waits until this many bytes may be written.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(crate) async fn pay(&self, bytes: u64) -> Result<()> {
        let now = ferry_io::now();
        let until = self.reserve(bytes, now);
        match until.checked_duration_since(now) {
            Some(wait) if !wait.is_zero() => ferry_io::sleep(wait).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the time at which this many more bytes are paid.
    fn reserve(&self, bytes: u64, now: Instant) -> Instant {
        let mut paid = lock(&self.paid);
        let oldest = now.checked_sub(BURST).unwrap_or(now);
        let from = paid.map_or(now, |paid| paid.max(oldest));
        // An overflow leaves the time as it is.
        let until = from.checked_add(self.time_of(bytes)).unwrap_or(from);
        *paid = Some(until);
        until
    }

    fn time_of(&self, bytes: u64) -> Duration {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate.get());
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u64) -> Pace {
        Pace::new(NonZeroU64::new(rate).unwrap())
    }

    #[test]
    fn bytes_are_paid_before_they_go() {
        let (pace, now) = (pace(1000), Instant::now());
        assert_eq!(pace.reserve(500, now), now + Duration::from_millis(500));
        assert_eq!(pace.reserve(250, now), now + Duration::from_millis(750));
    }

    #[test]
    fn no_more_than_a_tenth_of_a_second_is_made_up_for() {
        let (pace, now) = (pace(1000), Instant::now());
        pace.reserve(1, now);
        let later = now + Duration::from_secs(60);
        assert_eq!(pace.reserve(1000, later), later + Duration::from_millis(900));
    }

    #[test]
    fn pieces_are_neither_tiny_nor_huge() {
        assert_eq!(pace(1).piece(), 4 << 10);
        assert_eq!(pace(20 << 20).piece(), 1 << 20);
        assert_eq!(pace(u64::MAX).piece(), 8 << 20);
    }
}

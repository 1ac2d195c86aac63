//! `--bwlimit`: how many bytes a second go to the target, of all workers together.
//!
//! A token bucket, kept as the moment at which everything asked for so far is paid. Whoever is about to write waits until
//! his bytes are, too, so that a run never gets ahead of its rate; what it fell behind, in listing or opening, it may
//! make up for by a tenth of a second at most. What is shared with the source moves no bytes and costs nothing.

use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ferry_io::Result;

use crate::copier::lock;

/// What a run may make up for.
const BURST: Duration = Duration::from_millis(100);
/// Pieces a second of a large file: the waits are short, and the calls still large.
const PIECES: u64 = 20;
/// The smallest and the largest piece.
const SMALLEST: u64 = 4 << 10;
const LARGEST: u64 = 8 << 20;

/// The bucket.
pub(crate) struct Pace {
    /// Bytes a second.
    rate: NonZeroU64,
    /// When all that was asked for is paid; `None` before anything was.
    paid: Mutex<Option<Instant>>,
}

impl Pace {
    /// For so many bytes a second.
    pub(crate) fn new(rate: NonZeroU64) -> Self {
        Self { rate, paid: Mutex::new(None) }
    }

    /// The bytes of a large file that are moved at once.
    pub(crate) fn piece(&self) -> u64 {
        (self.rate.get() / PIECES).clamp(SMALLEST, LARGEST)
    }

    /// Waits until so many bytes may go.
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

    /// When so many more bytes are paid.
    fn reserve(&self, bytes: u64, now: Instant) -> Instant {
        let mut paid = lock(&self.paid);
        let oldest = now.checked_sub(BURST).unwrap_or(now);
        let from = paid.map_or(now, |paid| paid.max(oldest));
        // Later than time can tell is late enough.
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

//! Changing behaviour of a simulated device: how much is cached, and which calls block.

use super::chance::Chance;
use crate::choose::Way;
use crate::route::SLOW;

/// Behaviour of a device, which changes during a run. Probabilities are in millionths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Character {
    /// Probability that requested data is not cached.
    pub(super) misses: u32,
    /// Probability that a call blocks, drawn apart from misses.
    pub(super) waits: u32,
}

impl Character {
    /// Probability that the behaviour changes before a call, in millionths.
    pub(super) const CHANGES: u32 = 4_000;

    /// Minimum duration of a blocking call, in nanoseconds.
    pub(super) fn least_wait_ns() -> u64 {
        u64::from(SLOW.subsec_nanos()) + 1
    }

    /// Upper bound of the duration of other calls, in nanoseconds.
    pub(super) fn most_at_once_ns() -> u64 {
        u64::from(SLOW.subsec_nanos()) / 2
    }

    /// Time of a way to move a mebibyte of a large file, in nanoseconds. It follows from the probabilities, so each change
    /// of the behaviour changes which way is the fastest.
    pub(super) fn pace_of(&self, way: Way) -> u64 {
        let drawn = u64::from(self.misses) * 31 + u64::from(self.waits) * 7 + way as u64 * 2_654_435_761;
        250_000 + drawn % 750_000
    }

    /// Draws the two probabilities independently: a device may also report misses and yet answer at once.
    pub(super) fn draw(chance: &mut Chance) -> Self {
        const MISSES: [u32; 6] = [0, 20_000, 200_000, 500_000, 900_000, 1_000_000];
        const WAITS: [u32; 5] = [0, 5_000, 100_000, 400_000, 900_000];
        let mut one_of = |among: &[u32]| {
            let at = usize::try_from(chance.below(among.len() as u64)).unwrap_or_default();
            among.get(at).copied().unwrap_or_default()
        };
        Self { misses: one_of(&MISSES), waits: one_of(&WAITS) }
    }
}

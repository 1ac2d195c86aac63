//! What a simulated device is like for a while: what is in memory, and what waits.

use super::chance::Chance;
use crate::route::SLOW;

/// A device's behaviour, which changes while a run lasts. Chances are in millionths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Character {
    /// Chance that something asked for is not in memory.
    pub(super) misses: u32,
    /// Chance that a call which may wait does, though it was not asked or is known not to be in memory.
    pub(super) waits: u32,
}

impl Character {
    /// Chance that a call finds a device changed.
    pub(super) const CHANGES: u32 = 4_000;

    /// A call that waits takes at least so long, in nanoseconds.
    pub(super) fn least_wait_ns() -> u64 {
        u64::from(SLOW.subsec_nanos()) + 1
    }

    /// A call that does not wait takes less.
    pub(super) fn most_at_once_ns() -> u64 {
        u64::from(SLOW.subsec_nanos()) / 2
    }

    /// All in memory, some of it, nothing; or a filesystem that says so and answers at once.
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

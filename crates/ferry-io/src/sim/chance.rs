//! Chance from a seed: the same seed gives the same sequence, on every machine.

/// A splitmix64 generator: 64 bits of state, good enough to choose orders and sizes.
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`, or zero if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The high half of the product: all but unbiased for the small numbers that are asked for.
        let product = u128::from(self.next()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// True in `per_million` of a million cases.
    pub(super) fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    /// A part of `size`: at least 1, at most all of it.
    pub(super) fn part_of(&mut self, size: usize) -> usize {
        let part = self.below(size as u64) + 1;
        usize::try_from(part).unwrap_or(size).min(size)
    }
}

/// Spreads the bits of a number.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number made of `bytes`, the same for the same bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    }))
}

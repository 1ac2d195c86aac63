//! Random numbers from a seed: equal seeds give equal sequences on every machine.

/// A splitmix64 generator. Its 64 bits of state suffice to choose orders and sizes.
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

    /// Returns a number below `end`, or zero if `end` is zero.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The high half of the product: nearly unbiased for small `end`.
        let product = u128::from(self.next()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// Returns true with a probability of `per_million` millionths.
    pub(super) fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    /// Returns a part of `size`: at least 1, at most all of it.
    pub(super) fn part_of(&mut self, size: usize) -> usize {
        let part = self.below(size as u64) + 1;
        usize::try_from(part).unwrap_or(size).min(size)
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    }))
}

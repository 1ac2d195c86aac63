//! Reproducible numbers and file contents from a 64-bit seed.

/// SplitMix64's increment: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's output function (Steele, Lea and Flood, 2014): spreads `state` over all 64 bits.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// Derives an independent seed for part `index`.
#[must_use]
pub fn derive(seed: u64, index: u64) -> u64 {
    mix(mix(seed).wrapping_add(STEP).wrapping_add(index.wrapping_mul(STEP)))
}

/// Fills `bytes` with the content at `offset` of the file with this `seed`. Each part can be made without the
/// others.
pub fn fill(seed: u64, offset: u64, bytes: &mut [u8]) {
    let base = mix(seed);
    let mut word = offset / 8;
    let skip = usize::try_from(offset % 8).unwrap_or(0);
    let mut rest = bytes;
    if skip > 0 {
        let size = rest.len().min(8 - skip);
        let (head, tail) = rest.split_at_mut(size);
        head.copy_from_slice(&word_at(base, word)[skip..skip + size]);
        rest = tail;
        word += 1;
    }
    let mut chunks = rest.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&word_at(base, word));
        word += 1;
    }
    let tail = chunks.into_remainder();
    let size = tail.len();
    tail.copy_from_slice(&word_at(base, word)[..size]);
}

fn word_at(base: u64, index: u64) -> [u8; 8] {
    mix(base.wrapping_add(index.wrapping_mul(STEP))).to_le_bytes()
}

/// A small random number generator: a seed yields the same numbers on every machine and in every version.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0. The bias of the remainder is negligible here.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64().checked_rem(limit).unwrap_or(0)
    }

    /// Returns an index below `limit`.
    pub fn index(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        usize::try_from(self.below(limit)).unwrap_or(0)
    }

    /// Returns true in `percent` of a hundred calls on average.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests;

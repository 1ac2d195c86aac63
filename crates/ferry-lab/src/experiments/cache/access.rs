//! Access patterns. The same seed and round give the same requests for every method.

use ferry_tree::fill::{SplitMix64, derive};

use crate::schedule::order;
use crate::units::{real, real_count};

/// Bytes of a random request, and of a cache block for them.
pub(super) const RANDOM: u64 = 4096;
/// Share of writes among mixed requests.
const WRITES_PERCENT: u64 = 30;

/// An access pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads of the whole file in order.
    Sequential,
    /// Writes of the whole file in order.
    Overwrite,
    /// Reads at random offsets.
    Random,
    /// Reads by Zipf's law: the n-th most popular block is read in proportion to 1/n.
    Zipf,
    /// Reads and writes at random offsets.
    Mixed,
}

impl Access {
    pub(super) const ALL: [(&'static str, Self); 5] = [
        ("sequential", Self::Sequential),
        ("overwrite", Self::Overwrite),
        ("random", Self::Random),
        ("zipf", Self::Zipf),
        ("mixed", Self::Mixed),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, access)| access)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, access)| *access == self).map_or("", |(name, _)| name)
    }

    /// Returns true if it covers the whole file once, in order.
    pub(super) fn is_sequential(self) -> bool {
        matches!(self, Self::Sequential | Self::Overwrite)
    }

    /// Returns true if it writes.
    pub(super) fn writes(self) -> bool {
        matches!(self, Self::Overwrite | Self::Mixed)
    }
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: u64,
    pub(super) writes: bool,
}

/// All requests of one access pattern to one file.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) access: Access,
    /// Bytes of a request.
    pub(super) size: u64,
    count: u64,
    places: u64,
    seed: u64,
    /// For Zipf's law: cumulative popularity.
    sums: Vec<f64>,
    /// For Zipf's law: the block with each rank.
    popular: Vec<usize>,
}

impl Plan {
    /// Requests of `block` bytes if sequential, otherwise `count` of [`RANDOM`] bytes.
    pub(super) fn new(access: Access, file_bytes: u64, block: u64, count: u64, seed: u64) -> Self {
        let size = if access.is_sequential() { block } else { RANDOM };
        let places = file_bytes / size;
        let count = if access.is_sequential() { places } else { count };
        let (mut sums, mut popular) = (Vec::new(), Vec::new());
        if access == Access::Zipf {
            let mut sum = 0.0;
            sums.extend((1..=places).map(|n| {
                sum += 1.0 / real(n);
                sum
            }));
            // Popular blocks are scattered over the file.
            popular = order(seed, places, sums.len());
        }
        Self { access, size, count, places, seed, sums, popular }
    }

    /// Returns the requests of a round.
    pub(super) fn steps(&self, round: u64) -> impl Iterator<Item = Step> + '_ {
        let mut numbers = SplitMix64::new(derive(self.seed, round));
        (0..self.count).map(move |index| {
            let place = match self.access {
                Access::Sequential | Access::Overwrite => index,
                Access::Random | Access::Mixed => numbers.below(self.places),
                Access::Zipf => self.drawn(&mut numbers),
            };
            let writes = match self.access {
                Access::Overwrite => true,
                Access::Mixed => numbers.percent(WRITES_PERCENT),
                Access::Sequential | Access::Random | Access::Zipf => false,
            };
            Step { at: place * self.size, writes }
        })
    }

    fn drawn(&self, numbers: &mut SplitMix64) -> u64 {
        const PARTS: usize = 1 << 52;
        let all = self.sums.last().copied().unwrap_or(0.0);
        let at = real_count(numbers.index(PARTS)) / real_count(PARTS) * all;
        let rank = self.sums.partition_point(|&sum| sum <= at);
        self.popular.get(rank).and_then(|&place| u64::try_from(place).ok()).unwrap_or(0)
    }
}

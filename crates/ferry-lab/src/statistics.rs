//! Medians, spread, outliers and intervals: what a handful of runs says, and how surely.
//!
//! Everything is about medians: run times have a floor and a long tail, so means say little. Intervals are
//! percentile bootstraps from a seed, so the same record always gives the same words.

use ferry_tree::fill::SplitMix64;

use crate::units::real_count;

#[cfg(test)]
mod tests;

/// How many times figures are drawn anew for an interval.
const RESAMPLES: usize = 2000;
/// What an interval leaves out on each side, in thousandths: 95 % are within.
const TAIL_PERMILLE: usize = 25;
/// So many deviations from the median make an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER: f64 = 3.5;
/// The median deviation of a normal distribution, of its standard deviation.
const NORMAL_MAD: f64 = 0.6745;

/// A middle value and what surrounds it with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The median.
    pub middle: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether it lies above `value` as a whole.
    #[must_use]
    pub fn is_above(&self, value: f64) -> bool {
        self.low > value
    }

    /// Whether it lies below `value` as a whole.
    #[must_use]
    pub fn is_below(&self, value: f64) -> bool {
        self.high < value
    }

    /// Half its width, of its middle.
    #[must_use]
    pub fn relative_width(&self) -> f64 {
        if self.middle == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.middle.abs() }
    }
}

/// What a cell's figures say.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many figures there are.
    pub count: usize,
    /// The median and its interval.
    pub median: Interval,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// A quarter is smaller.
    pub p25: f64,
    /// A quarter is larger.
    pub p75: f64,
    /// The median distance from the median.
    pub mad: f64,
    /// Which figures lie far from all others, by index.
    pub outliers: Vec<usize>,
}

impl Summary {
    /// Summarises figures; `None` of none.
    #[must_use]
    pub fn of(figures: &[f64], seed: u64) -> Option<Self> {
        let sorted = sorted(figures);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = percentile(&sorted, 500);
        let mad = median(&figures.iter().map(|figure| (figure - middle).abs()).collect::<Vec<_>>());
        Some(Self {
            count: figures.len(),
            median: bootstrap(figures, seed),
            min,
            max,
            p25: percentile(&sorted, 250),
            p75: percentile(&sorted, 750),
            mad,
            outliers: outliers(figures, middle, mad),
        })
    }

    /// The distance between the quarters, of the median.
    #[must_use]
    pub fn relative_spread(&self) -> f64 {
        if self.median.middle == 0.0 { 0.0 } else { (self.p75 - self.p25) / self.median.middle.abs() }
    }
}

/// The middle of the figures, 0 of none.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    percentile(&sorted(figures), 500)
}

/// The figure below which `permille` thousandths of the sorted figures lie, between two of them if need be (type 7 of
/// Hyndman and Fan, as in R and NumPy). 0 of none.
#[must_use]
pub fn percentile(sorted: &[f64], permille: usize) -> f64 {
    let position = sorted.len().saturating_sub(1) * permille.min(1000);
    let (index, part) = (position / 1000, real_count(position % 1000) / 1000.0);
    let below = sorted.get(index).copied().unwrap_or(0.0);
    let above = sorted.get(index + 1).copied().unwrap_or(below);
    below + (above - below) * part
}

/// The median of `other / base`, pair by pair: each pair was taken in the same round, so what disturbed the machine
/// then disturbed both. `None` without pairs.
#[must_use]
pub fn ratio(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    let ratios: Vec<f64> =
        pairs.iter().filter(|(base, _)| *base > 0.0).map(|(base, other)| other / base).collect();
    (!ratios.is_empty()).then(|| bootstrap(&ratios, seed))
}

/// The median, and where the medians of figures drawn from these with replacement lie.
fn bootstrap(figures: &[f64], seed: u64) -> Interval {
    let middle = median(figures);
    if figures.len() < 2 {
        return Interval { middle, low: middle, high: middle };
    }
    let mut numbers = SplitMix64::new(seed);
    let mut drawn = vec![0.0; figures.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| figures[numbers.index(figures.len())]);
            drawn.sort_by(f64::total_cmp);
            percentile(&drawn, 500)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let (low, high) = (percentile(&medians, TAIL_PERMILLE), percentile(&medians, 1000 - TAIL_PERMILLE));
    Interval { middle, low, high }
}

fn outliers(figures: &[f64], middle: f64, mad: f64) -> Vec<usize> {
    if mad == 0.0 || figures.len() < 5 {
        return Vec::new();
    }
    let is_far = |figure: &f64| NORMAL_MAD * (figure - middle).abs() / mad > OUTLIER;
    figures.iter().enumerate().filter(|(_, figure)| is_far(figure)).map(|(index, _)| index).collect()
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

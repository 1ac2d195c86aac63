//! Statistics of a few runs: medians, spread, outliers, confidence intervals.
//!
//! Run times have a floor and a long tail, so medians are used instead of means. Intervals are percentile bootstraps
//! with a seed, so that a record always gives the same result.

use ferry_tree::fill::SplitMix64;

use crate::units::real_count;

#[cfg(test)]
mod tests;

/// Number of resamples for an interval.
const RESAMPLES: usize = 2000;
/// Part of the resamples outside the interval on each side: a 95 % interval.
const TAIL_PERMILLE: usize = 25;
/// Outliers are farther than this many deviations from the median (Iglewicz and Hoaglin, 1993).
const OUTLIER: f64 = 3.5;
/// Ratio of the median absolute deviation to the standard deviation in a normal distribution.
const NORMAL_MAD: f64 = 0.6745;

/// A median with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The median.
    pub middle: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of figures.
    pub count: usize,
}

/// With fewer figures, all of them lie on one side by chance about as often as the interval allows.
const FEWEST: usize = 5;

impl Interval {
    /// Returns true if the interval lies above `value` and has enough figures.
    #[must_use]
    pub fn is_above(&self, value: f64) -> bool {
        self.is_enough() && self.low > value
    }

    /// Returns true if the interval lies below `value` and has enough figures.
    #[must_use]
    pub fn is_below(&self, value: f64) -> bool {
        self.is_enough() && self.high < value
    }

    /// Returns true if there are enough figures for a conclusion.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.count >= FEWEST
    }

    /// Returns half the width, relative to the median.
    #[must_use]
    pub fn relative_width(&self) -> f64 {
        if self.middle == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.middle.abs() }
    }
}

/// Statistics of a cell's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of figures.
    pub count: usize,
    /// The median and its interval.
    pub median: Interval,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// 25th percentile.
    pub p25: f64,
    /// 75th percentile.
    pub p75: f64,
    /// Median absolute deviation.
    pub mad: f64,
    /// Indexes of the outliers.
    pub outliers: Vec<usize>,
}

impl Summary {
    /// Returns the statistics, or `None` without figures.
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

    /// Returns the interquartile range, relative to the median.
    #[must_use]
    pub fn relative_spread(&self) -> f64 {
        if self.median.middle == 0.0 { 0.0 } else { (self.p75 - self.p25) / self.median.middle.abs() }
    }
}

/// Returns the median, or 0 without figures.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    percentile(&sorted(figures), 500)
}

/// Returns a percentile of sorted figures, in thousandths, with interpolation (type 7 of Hyndman and Fan, as in R and
/// NumPy). 0 without figures.
#[must_use]
pub fn percentile(sorted: &[f64], permille: usize) -> f64 {
    let position = sorted.len().saturating_sub(1) * permille.min(1000);
    let (index, part) = (position / 1000, real_count(position % 1000) / 1000.0);
    let below = sorted.get(index).copied().unwrap_or(0.0);
    let above = sorted.get(index + 1).copied().unwrap_or(below);
    below + (above - below) * part
}

/// Returns the median of `other / base` over all pairs, or `None` without pairs. A pair belongs to one round, so a
/// disturbance affects both of its figures.
#[must_use]
pub fn ratio(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    let ratios: Vec<f64> =
        pairs.iter().filter(|(base, _)| *base > 0.0).map(|(base, other)| other / base).collect();
    (!ratios.is_empty()).then(|| bootstrap(&ratios, seed))
}

/// The median, and the interval of the medians of resamples.
fn bootstrap(figures: &[f64], seed: u64) -> Interval {
    let middle = median(figures);
    if figures.len() < 2 {
        return Interval { middle, low: middle, high: middle, count: figures.len() };
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
    Interval { middle, low, high, count: figures.len() }
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

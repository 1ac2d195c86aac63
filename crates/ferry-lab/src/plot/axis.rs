//! One axis of figures: where it begins and ends, its ticks, and its unit.

use crate::units::plain;

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// True if there are zeros. They have no logarithm and are drawn before the powers.
    has_zero: bool,
    /// Positions and labels of the ticks.
    pub(super) ticks: Vec<(f64, String)>,
    /// Unit of the tick labels.
    pub(super) unit: String,
}

/// Ratio of the largest to the smallest figure from which the axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 25.0;
/// So much of an axis of powers is left for zeros.
const ZERO_SHARE: f64 = 0.1;
/// Approximate number of steps.
const TICKS: f64 = 6.0;

impl Axis {
    /// An axis for these figures: from nothing on, or over powers of ten if they differ much.
    pub(super) fn of(figures: &[f64], unit: &str) -> Self {
        let figures = || figures.iter().copied().filter(|figure| figure.is_finite());
        let high = figures().fold(0.0, f64::max);
        let low = figures().fold(f64::INFINITY, f64::min);
        let least = figures().filter(|figure| *figure > 0.0).fold(f64::INFINITY, f64::min);
        if low >= 0.0 && least.is_finite() && high / least >= LOGARITHMIC_FROM {
            return Self::powers(least, high, low <= 0.0, unit);
        }
        let (factor, unit) = scaled(high, unit);
        if high <= 0.0 || !low.is_finite() {
            return Self {
                low: 0.0,
                high: 1.0,
                logarithmic: false,
                has_zero: false,
                ticks: vec![(0.0, "0".to_owned())],
                unit,
            };
        }
        Self::steps(low.min(0.0), high, factor, unit)
    }

    /// An axis for ratios: it contains zero and one, and is never logarithmic, so that bars can stand on it.
    pub(super) fn of_ratios(ratios: &[f64]) -> Self {
        let ratios = ratios.iter().copied().filter(|ratio| ratio.is_finite());
        Self::steps(0.0, ratios.fold(1.0, f64::max), 1.0, String::new())
    }

    fn steps(low: f64, high: f64, factor: f64, unit: String) -> Self {
        let step = nice((high - low) / factor / TICKS) * factor;
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        let mut ticks = Vec::new();
        let mut at = low;
        while at <= high + step / 2.0 {
            ticks.push((at, short(at / factor)));
            at += step;
        }
        Self { low, high, logarithmic: false, has_zero: false, ticks, unit }
    }

    fn powers(low: f64, high: f64, has_zero: bool, unit: &str) -> Self {
        // Thousands of thousandths would be hard to read.
        let (factor, unit) = scaled(if matches!(unit, "" | "1/s") { low.min(1.0) } else { high }, unit);
        let decades = (high / low).log10();
        let parts: &[f64] = if decades < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        let mut decade = 10_f64.powf((low / factor).log10().floor());
        while decade * factor <= high * 10.0 {
            ticks.extend(parts.iter().map(|part| decade * part * factor));
            decade *= 10.0;
        }
        let from = ticks.iter().copied().filter(|tick| *tick <= low * 1.0001).fold(f64::NAN, f64::max);
        let to = ticks.iter().copied().filter(|tick| *tick >= high * 0.9999).fold(f64::NAN, f64::min);
        let (low, high) = (if from.is_nan() { low } else { from }, if to.is_nan() { high } else { to });
        ticks.retain(|tick| (low * 0.9999..=high * 1.0001).contains(tick));
        let zero = has_zero.then(|| (0.0, "0".to_owned()));
        let ticks = ticks.into_iter().map(|tick| (tick, short(tick / factor)));
        let ticks = zero.into_iter().chain(ticks).collect();
        Self { low, high, logarithmic: true, has_zero, ticks, unit }
    }

    /// Returns a figure's position, from 0 to 1.
    pub(super) fn place(&self, figure: f64) -> f64 {
        if !self.has_zero {
            return self.among(figure);
        }
        if figure <= 0.0 { 0.0 } else { ZERO_SHARE + (1.0 - ZERO_SHARE) * self.among(figure) }
    }

    fn among(&self, figure: f64) -> f64 {
        let (low, high, figure) = if self.logarithmic {
            (self.low.log10(), self.high.log10(), figure.max(self.low).log10())
        } else {
            (self.low, self.high, figure)
        };
        if high > low { (figure - low) / (high - low) } else { 0.5 }
    }

    /// Returns the axis title: the measure, its unit, and a note if the axis is logarithmic.
    pub(super) fn title(&self, measure: &str) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        format!("{measure}{unit}{}", if self.logarithmic { ", logarithmic" } else { "" })
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|part| part * power)
        .find(|nice| *nice >= step * 0.999)
        .unwrap_or(power * 10.0)
}

/// Returns the axis's unit: its size in base units, and its name.
fn scaled(high: f64, unit: &str) -> (f64, String) {
    let choose = |units: &[(f64, &str)]| {
        let found = units.iter().rev().find(|(factor, _)| high >= *factor).or(units.first());
        found.map_or((1.0, unit.to_owned()), |(factor, name)| (*factor, (*name).to_owned()))
    };
    match unit {
        "s" => choose(&[(1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]),
        "ns" => choose(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
        "B" => choose(&[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]),
        "B/s" => choose(&[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")]),
        "1/s" => choose(&[(1.0, "per second"), (1e3, "thousand per second"), (1e6, "million per second")]),
        "x" => (1.0, "times".to_owned()),
        "" => choose(&[(1.0, ""), (1e3, "thousand"), (1e6, "million")]),
        other => (1.0, other.to_owned()),
    }
}

/// As few digits as it takes.
fn short(value: f64) -> String {
    if value >= 1000.0 {
        return plain(value);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

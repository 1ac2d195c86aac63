//! The size of an effect here, compared with the size that a document states.

use crate::statistics::Interval;

/// Size of an effect, compared with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The interval contains a figure that rounds to the published one.
    AsPublished,
    /// The effect is smaller here.
    Smaller,
    /// The effect is larger here.
    Larger,
}

/// Direction in which a figure moves if the effect grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    Up,
    Down,
    /// The finding is that there is no effect, or it has no size.
    None,
}

impl Growth {
    /// Growth of an effect that lies between two limits. Around 1, there is no effect.
    pub(super) fn between(least: f64, most: f64) -> Self {
        if least >= 1.0 {
            Self::Up
        } else if most <= 1.0 {
            Self::Down
        } else {
            Self::None
        }
    }
}

/// Compares a figure with the published one.
pub(super) fn compared(found: &Interval, published: &str, growth: Growth) -> Option<Size> {
    let (low, high) = range(published)?;
    let (is_below, is_above) = (found.high < low, found.low > high);
    match growth {
        Growth::None => None,
        Growth::Up | Growth::Down if !is_below && !is_above => Some(Size::AsPublished),
        Growth::Up if is_below => Some(Size::Smaller),
        Growth::Down if is_above => Some(Size::Smaller),
        Growth::Up | Growth::Down => Some(Size::Larger),
    }
}

/// Returns the figures that round to a published figure, or to one of a published range: `1.15-1.20`.
pub(super) fn range(published: &str) -> Option<(f64, f64)> {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, '.' | ',');
    let numbers = published.split(|char| !is_part(char)).filter(|word| !word.is_empty());
    let ends = numbers.map(rounded).collect::<Option<Vec<(f64, f64)>>>()?;
    Some((ends.first()?.0, ends.last()?.1))
}

/// Returns the figures that round to this one. Zeros at the end of a whole number count as rounded.
fn rounded(word: &str) -> Option<(f64, f64)> {
    let digits = word.replace(',', "");
    let value: f64 = digits.parse().ok()?;
    let half = match digits.split_once('.') {
        Some((_, decimals)) => 0.5 / power_of_ten(decimals.len()),
        None => 0.5 * power_of_ten(digits.len() - digits.trim_end_matches('0').len()),
    };
    Some((value - half, value + half))
}

fn power_of_ten(exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * 10.0)
}

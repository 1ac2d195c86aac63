//! Chooses units and decimals of times, on the axis and in the details.

use ferry_trace::model::Nanos;

use crate::units::count;

#[cfg(test)]
mod tests;

const UNITS: [(Nanos, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];

/// Rounds the distance of ticks up, so that `length` has at most `most` of them.
pub(super) fn step(length: Nanos, most: u16) -> Nanos {
    let least = length / Nanos::from(most.max(1)) + 1;
    let mut unit: Nanos = 1;
    loop {
        if let Some(step) = [1, 2, 5].into_iter().map(|n| unit.saturating_mul(n)).find(|step| *step >= least)
        {
            return step;
        }
        unit = unit.saturating_mul(10);
    }
}

/// Formats a time in the largest unit within `scale`, with the decimals that steps of this length need.
pub(super) fn label(at: Nanos, step: Nanos, scale: Nanos) -> String {
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| *unit <= scale).unwrap_or((1, "ns"));
    let digits = unit.ilog10();
    let places = (0..digits).find(|places| step.is_multiple_of(unit / 10_u64.pow(*places))).unwrap_or(digits);
    let whole = count(at / unit);
    if places == 0 {
        return format!("{whole} {name}");
    }
    let (rest, width) = (at % unit / (unit / 10_u64.pow(places)), places as usize);
    format!("{whole}.{rest:0width$} {name}")
}

/// Formats a time with the digits that distinguish it from times `apart` from it.
pub(super) fn exact(at: Nanos, apart: Nanos) -> String {
    label(at, 10_u64.pow(apart.max(1).ilog10()), at.max(apart))
}

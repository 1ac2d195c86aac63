//! A period across the picture: ticks and formatting of times.

#[cfg(test)]
mod tests;

use super::canvas::{Anchor, Canvas, LEFT, RIGHT, real};
use crate::model::Nanos;

const STEPS: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
}

impl Axis {
    pub(super) fn of(began: Nanos, ended: Nanos) -> Self {
        let ended = ended.max(began.saturating_add(1));
        Self { began: began.min(ended - 1), ended }
    }

    pub(super) fn length(self) -> Nanos {
        self.ended - self.began
    }

    /// Horizontal position of a time, clamped to the edges.
    pub(super) fn place(self, at: Nanos) -> f64 {
        let at = at.clamp(self.began, self.ended) - self.began;
        LEFT + (RIGHT - LEFT) * real(at) / real(self.length())
    }

    fn ticks(self) -> Vec<(Nanos, String)> {
        let step = self.step();
        let (scale, digits) = scale(self.ended, step);
        let first = self.began.div_ceil(step).saturating_mul(step);
        let times = std::iter::successors(Some(first), |at| at.checked_add(step));
        let times = times.take_while(|at| *at <= self.ended);
        times.map(|at| (at, format!("{:.digits$}", real(at) / real(scale.0)))).collect()
    }

    /// Distance of ticks: 1, 2 or 5 times a power of ten.
    fn step(self) -> Nanos {
        let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
        let mut steps = powers.flat_map(|power| [1, 2, 5].map(|part: u64| part.saturating_mul(power)));
        steps.find(|step| self.length() / step <= STEPS).unwrap_or(u64::MAX)
    }

    /// Draws rules from `top` to `bottom` with their labels.
    pub(super) fn draw(self, canvas: &mut Canvas, top: f64, bottom: f64) {
        let ticks = self.ticks();
        let ((_, unit), _) = scale(self.ended, self.step());
        let last = ticks.len().saturating_sub(1);
        for (index, (at, text)) in ticks.iter().enumerate() {
            let x = self.place(*at);
            canvas.path("rule", [(x, top), (x, bottom)]);
            let text = if index == last { format!("{text} {unit}") } else { text.clone() };
            let anchor = if x > RIGHT - 24.0 { Anchor::End } else { Anchor::Middle };
            canvas.text(
                (if x > RIGHT - 24.0 { RIGHT } else { x }, bottom + 14.0),
                "faint small",
                anchor,
                &text,
            );
        }
        canvas.path("axis", [(LEFT, bottom), (RIGHT, bottom)]);
    }
}

/// Unit for times up to `high`, and the number of digits that distinguish steps of `step`.
fn scale(high: Nanos, step: Nanos) -> ((u64, &'static str), usize) {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let unit = units.into_iter().find(|(scale, _)| high >= *scale).unwrap_or((1, "ns"));
    let mut digits = 0;
    let mut least = unit.0;
    while least > 1 && !step.is_multiple_of(least) {
        least /= 10;
        digits += 1;
    }
    (unit, digits)
}

/// A time with three digits: `2.31 ms`.
pub(super) fn words(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let Some((scale, unit)) = units.into_iter().find(|(scale, _)| time >= *scale) else {
        return format!("{time} ns");
    };
    let value = real(time) / real(scale);
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// A count with commas: `12,345`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

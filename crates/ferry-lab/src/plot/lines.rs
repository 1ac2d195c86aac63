//! Plots medians over a parameter: one line for each series, with whiskers for the confidence intervals and the name
//! at the line's end.

use super::axis::Axis;
use super::picture::{Line, Plot, Room};
use super::svg::{Anchor, Svg, width};
use crate::statistics::Interval;
use crate::units::real_count;

const HEIGHT: f64 = 360.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 300.0;
const LEFT: f64 = 64.0;
/// Series are drawn so far beside each other at most, and all of them within so much, or those with the same figures
/// would hide each other.
const SHIFT: f64 = 5.0;
const SHIFTS: f64 = 24.0;
/// Names are at least so far apart.
const LABEL_DISTANCE: f64 = 15.0;

pub(super) fn draw(plot: &Plot, room: Room, parameter: &str, lines: &[Line]) -> Svg {
    let mut svg = Svg::new(room.width(), HEIGHT);
    let more = svg.title(&plot.title);
    svg.grow(more);
    let (top, bottom) = (TOP + more, BOTTOM + more);
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let figures: Vec<f64> = points().flat_map(|(_, _, found)| shown(found)).collect();
    let axis = Axis::of(&figures, &plot.unit);
    let labels = lines.iter().map(|line| width(&line.label)).fold(40.0, f64::max);
    let right = (room.width() - labels * 1.06 - 24.0).max(room.width() / 2.0);
    let y = |figure: f64| bottom - axis.place(figure) * (bottom - top);
    let places = Places::of(points().map(|(at, text, _)| (*at, text.as_str())));
    let x = |at: f64| LEFT + 14.0 + places.place(at) * (right - LEFT - 28.0);

    svg.text((8.0, 38.0 + more), "faint", Anchor::Start, &axis.title(&plot.measure));
    for (tick, text) in &axis.ticks {
        svg.rule("rule", (LEFT, y(*tick)), (right, y(*tick)));
        svg.text((LEFT - 8.0, y(*tick) + 4.0), "faint", Anchor::End, text);
    }
    svg.rule("axis", (LEFT, bottom), (right, bottom));
    for (at, text) in &places.all {
        svg.rule("axis", (x(*at), bottom), (x(*at), bottom + 4.0));
        svg.text((x(*at), bottom + 18.0), "faint", Anchor::Middle, text);
    }
    svg.text((f64::midpoint(LEFT, right), bottom + 40.0), "faint", Anchor::Middle, &named(parameter));
    for (series, line) in lines.iter().enumerate() {
        let count = real_count(lines.len());
        let shift = (real_count(series) - (count - 1.0) / 2.0) * SHIFT.min(SHIFTS / count);
        let x = |at: f64| x(at) + shift;
        let points: Vec<(f64, f64)> =
            line.points.iter().map(|(at, _, found)| (x(*at), y(found.middle))).collect();
        svg.stroke("line", series, &points);
        for (at, _, found) in &line.points {
            let x = x(*at);
            if found.is_enough() {
                svg.stroke("whisker", series, &[(x, y(found.low)), (x, y(found.high))]);
                for end in [found.low, found.high] {
                    svg.stroke("whisker", series, &[(x - 3.0, y(end)), (x + 3.0, y(end))]);
                }
            }
            svg.mark((x, y(found.middle)), series);
        }
    }
    for (series, at, label) in apart(lines, &y, (top, bottom)) {
        svg.label((right + 10.0, at + 4.0), series, label);
    }
    svg
}

/// The figures of a point that are drawn.
fn shown(found: &Interval) -> [f64; 2] {
    if found.is_enough() { [found.low, found.high] } else { [found.middle; 2] }
}

/// Returns a parameter's words and unit: `block size (bytes)`.
pub(super) fn named(parameter: &str) -> String {
    let name = parameter.replace('_', " ");
    name.strip_suffix(" bytes").map(|what| format!("{what} size (bytes)")).unwrap_or(name)
}

/// Positions of the names: at their lines' ends, moved apart where these are close.
fn apart<'l>(
    lines: &'l [Line],
    y: &impl Fn(f64) -> f64,
    (top, bottom): (f64, f64),
) -> Vec<(usize, f64, &'l str)> {
    let end = |(series, line): (usize, &'l Line)| {
        let (_, _, last) = line.points.last()?;
        Some((series, y(last.middle), line.label.as_str()))
    };
    let mut labels: Vec<_> = lines.iter().enumerate().filter_map(end).collect();
    labels.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut least = top;
    for label in &mut labels {
        label.1 = label.1.max(least);
        least = label.1 + LABEL_DISTANCE;
    }
    let mut most = bottom + 8.0;
    for label in labels.iter_mut().rev() {
        label.1 = label.1.min(most);
        most = label.1 - LABEL_DISTANCE;
    }
    labels
}

/// The values of the parameter, side by side: they are powers of two, or few.
struct Places<'a> {
    all: Vec<(f64, &'a str)>,
}

impl<'a> Places<'a> {
    fn of(values: impl Iterator<Item = (f64, &'a str)>) -> Self {
        let mut all: Vec<(f64, &str)> = values.collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        all.dedup_by(|one, other| one.0.total_cmp(&other.0).is_eq());
        Self { all }
    }

    /// From 0 to 1, on a scale of powers where there is no 0.
    fn place(&self, at: f64) -> f64 {
        let (Some(first), Some(last)) = (self.all.first(), self.all.last()) else { return 0.5 };
        let scale = |value: f64| if first.0 > 0.0 { value.log2() } else { value };
        let (low, high) = (scale(first.0), scale(last.0));
        if high > low { (scale(at) - low) / (high - low) } else { 0.5 }
    }
}

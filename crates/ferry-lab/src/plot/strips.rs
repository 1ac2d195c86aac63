//! A row a cell: dots, the median, its interval, and the median's figure beside them.

use super::axis::Axis;
use super::svg::{Anchor, Svg, width};
use super::{Plot, Strip};
use crate::units::{figure, real_count};

const WIDTH: f64 = 720.0;
const TOP: f64 = 40.0;
const ROW: f64 = 28.0;
const BOTTOM: f64 = 44.0;
const WIDEST_LABEL: f64 = 260.0;

pub(super) fn draw(plot: &Plot, strips: &[Strip]) -> Svg {
    let labels = strips.iter().map(|strip| width(&strip.label)).fold(60.0, f64::max).min(WIDEST_LABEL);
    let figures: Vec<f64> = strips.iter().flat_map(|strip| strip.figures.iter().copied()).collect();
    let values = strips.iter().map(|strip| width(&value(plot, strip))).fold(40.0, f64::max);
    let (left, right) = (labels + 16.0, WIDTH - values - 20.0);
    let bottom = TOP + real_count(strips.len()) * ROW;
    let axis = Axis::of(&figures, &plot.unit);
    let x = |figure: f64| left + axis.place(figure) * (right - left);

    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    svg.text((8.0, 20.0), "title", Anchor::Start, &plot.title);
    for (tick, text) in &axis.ticks {
        svg.rule("rule", (x(*tick), TOP), (x(*tick), bottom));
        svg.text((x(*tick), bottom + 16.0), "faint", Anchor::Middle, text);
    }
    svg.rule("axis", (left, bottom), (right, bottom));
    svg.text(
        (f64::midpoint(left, right), bottom + 36.0),
        "faint",
        Anchor::Middle,
        &axis.title(&plot.measure),
    );
    for (row, strip) in strips.iter().enumerate() {
        let y = TOP + (real_count(row) + 0.5) * ROW;
        svg.text((left - 10.0, y + 4.0), "", Anchor::End, &shortened(&strip.label));
        let median = strip.summary.median;
        svg.stroke("interval", row, &[(x(median.low) - 1.0, y), (x(median.high) + 1.0, y)]);
        for (index, figure) in strip.figures.iter().enumerate() {
            // Runs of the same time would hide each other: every other one is a little higher.
            let shift = real_count(index % 3) * 5.0 - 5.0;
            svg.dot((x(*figure), y + shift), row);
        }
        svg.stroke("median", row, &[(x(median.middle), y - 10.0), (x(median.middle), y + 10.0)]);
        svg.text((right + 12.0, y + 4.0), "value", Anchor::Start, &value(plot, strip));
    }
    svg
}

fn value(plot: &Plot, strip: &Strip) -> String {
    figure(strip.summary.median.middle, &plot.unit)
}

/// A label that fits its column.
fn shortened(label: &str) -> String {
    if width(label) <= WIDEST_LABEL {
        return label.to_owned();
    }
    let kept: String = label.chars().take(36).collect();
    kept + "…"
}

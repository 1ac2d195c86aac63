//! A row a cell: dots, the median, its interval, and the median's figure beside them, or above them where room is
//! narrow.

use super::axis::Axis;
use super::picture::{Plot, Room, Strip};
use super::svg::{Anchor, Svg, width};
use crate::units::{figure, real_count};

const TOP: f64 = 40.0;
const ROW: f64 = 28.0;
/// A row with a line of text above the dots.
const HIGH_ROW: f64 = 42.0;
/// So much is free beside the dots where texts are above them, for half of the axis's first and last figures.
const MARGIN: f64 = 24.0;
const BOTTOM: f64 = 44.0;
const WIDEST_LABEL: f64 = 260.0;

pub(super) fn draw(plot: &Plot, room: Room, strips: &[Strip]) -> Svg {
    let is_narrow = room == Room::Narrow;
    let labels = strips.iter().map(|strip| width(&strip.label)).fold(60.0, f64::max).min(WIDEST_LABEL);
    let figures: Vec<f64> = strips.iter().flat_map(|strip| strip.figures.iter().copied()).collect();
    let values = strips.iter().map(|strip| width(&value(plot, strip))).fold(40.0, f64::max);
    let (left, right, height) = if is_narrow {
        (MARGIN, room.width() - MARGIN, HIGH_ROW)
    } else {
        (labels + 16.0, room.width() - values - 20.0, ROW)
    };
    let rows = real_count(strips.len()) * height;
    let axis = Axis::of(&figures, &plot.unit);
    let x = |figure: f64| left + axis.place(figure) * (right - left);

    let mut svg = Svg::new(room.width(), TOP + rows + BOTTOM);
    let top = TOP + svg.title(&plot.title);
    svg.grow(top - TOP);
    let bottom = top + rows;
    for (tick, text) in &axis.ticks {
        svg.rule("rule", (x(*tick), top), (x(*tick), bottom));
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
        let y = top + real_count(row + 1) * height - ROW / 2.0;
        if is_narrow {
            svg.text((8.0, y - 15.0), "", Anchor::Start, &shortened(&strip.label));
            svg.text((room.width() - 8.0, y - 15.0), "value", Anchor::End, &value(plot, strip));
        } else {
            svg.text((left - 10.0, y + 4.0), "", Anchor::End, &shortened(&strip.label));
            svg.text((right + 12.0, y + 4.0), "value", Anchor::Start, &value(plot, strip));
        }
        let median = strip.summary.median;
        if median.is_enough() {
            svg.stroke("interval", row, &[(x(median.low) - 1.0, y), (x(median.high) + 1.0, y)]);
        }
        for (index, figure) in strip.figures.iter().enumerate() {
            // Runs of the same time would hide each other: every other one is a little higher.
            let shift = real_count(index % 3) * 5.0 - 5.0;
            svg.dot((x(*figure), y + shift), row);
        }
        svg.stroke("median", row, &[(x(median.middle), y - 10.0), (x(median.middle), y + 10.0)]);
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

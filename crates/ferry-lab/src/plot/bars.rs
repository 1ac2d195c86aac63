//! A row for each ratio: a bar from zero with its interval, a diamond and a stroke as marks, and a line at one.

use super::axis::Axis;
use super::picture::{Bar, Plot, Room};
use super::svg::{Anchor, Svg, width};
use crate::table::measured;
use crate::units::{figure, real_count};

const TOP: f64 = 40.0;
/// Height of one line of the legend.
const LEGEND: f64 = 20.0;
/// A row: a line of text above the bar.
const ROW: f64 = 38.0;
const HEIGHT: f64 = 12.0;
const MARGIN: f64 = 12.0;
const BOTTOM: f64 = 44.0;
/// Colours. The first mark's colour also selects its shape, a diamond.
const BAR: usize = 0;
const STROKE: usize = 1;
const DIAMOND: usize = 3;
const INTERVAL: usize = 7;

pub(super) fn draw(plot: &Plot, room: Room, names: &[String; 3], bars: &[Bar]) -> Svg {
    let values = bars.iter().map(|bar| width(&figure(bar.ratio.middle, "x"))).fold(28.0, f64::max);
    let (left, right) = (MARGIN, room.width() - MARGIN - values - 10.0);
    let ratios: Vec<f64> = bars
        .iter()
        .flat_map(|bar| [Some(bar.ratio.high), bar.marks[0], bar.marks[1]].into_iter().flatten())
        .collect();
    let axis = Axis::of_ratios(&ratios);
    let x = |ratio: f64| left + axis.place(ratio) * (right - left);

    let rows = real_count(bars.len()) * ROW;
    let mut svg = Svg::new(room.width(), TOP + rows + BOTTOM);
    let titles = svg.title(&plot.title);
    let legend = legend(&mut svg, room, names, TOP + titles);
    svg.grow(titles + legend);
    let top = TOP + titles + legend;
    let bottom = top + rows;
    for (tick, text) in &axis.ticks {
        svg.rule("rule", (x(*tick), top), (x(*tick), bottom));
        svg.text((x(*tick), bottom + 16.0), "faint", Anchor::Middle, text);
    }
    svg.rule("axis", (left, bottom), (right, bottom));
    let title = axis.title(&plot.measure);
    svg.text((f64::midpoint(left, right), bottom + 36.0), "faint", Anchor::Middle, &title);
    for (row, bar) in bars.iter().enumerate() {
        let y = top + real_count(row) * ROW;
        let middle = y + 18.0 + HEIGHT / 2.0;
        svg.text((left, y + 13.0), "", Anchor::Start, &fitting(&bar.label, right - left));
        svg.bar((left, y + 18.0), x(bar.ratio.middle) - left, HEIGHT, BAR);
        if bar.ratio.is_enough() {
            svg.stroke("whisker", INTERVAL, &[(x(bar.ratio.low), middle), (x(bar.ratio.high), middle)]);
        }
        // Beside the bars only, because it would cross their labels.
        svg.rule("axis", (x(1.0), middle - 7.0), (x(1.0), middle + 7.0));
        if let Some(at) = bar.marks[1].map(x) {
            svg.stroke("median", STROKE, &[(at, middle - 9.0), (at, middle + 9.0)]);
        }
        if let Some(at) = bar.marks[0].map(x) {
            svg.mark((at, middle), DIAMOND);
        }
        let value = figure(bar.ratio.middle, "x");
        svg.text((room.width() - MARGIN, middle + 4.0), "value", Anchor::End, &value);
    }
    svg
}

/// Draws the names beside their shapes, in as many lines as they need. Returns the height.
fn legend(svg: &mut Svg, room: Room, names: &[String; 3], top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top);
    for (index, name) in names.iter().enumerate() {
        let advance = 18.0 + width(name) + 18.0;
        if x > MARGIN && x + advance > room.width() {
            (x, y) = (MARGIN, y + LEGEND);
        }
        match index {
            0 => svg.bar((x, y - HEIGHT / 2.0), HEIGHT, HEIGHT, BAR),
            1 => svg.mark((x + 6.0, y), DIAMOND),
            _ => svg.stroke("median", STROKE, &[(x + 6.0, y - 8.0), (x + 6.0, y + 8.0)]),
        }
        svg.text((x + 18.0, y + 4.0), "", Anchor::Start, name);
        x += advance;
    }
    y - top + LEGEND
}

/// Shortens a text that is wider than `room`.
fn fitting(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for char in text.chars() {
        if width(&kept) + width("m…") > room {
            break;
        }
        kept.push(char);
    }
    kept + "…"
}

/// Describes each row for screen readers.
pub(super) fn words(names: &[String; 3], bars: &[Bar]) -> Vec<String> {
    let of_bar = |bar: &Bar| {
        let mut words = format!("{}: {} {}", bar.label, names[0], measured(&bar.ratio, "x"));
        for (name, mark) in names.iter().skip(1).zip(bar.marks) {
            if let Some(ratio) = mark {
                words += &format!(", {name} {}", figure(ratio, "x"));
            }
        }
        words
    };
    bars.iter().map(of_bar).collect()
}

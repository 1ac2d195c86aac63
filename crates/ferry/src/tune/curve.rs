//! Rates by depth and by block size as bars, and which of them are chosen.
//!
//! The chosen one is the smallest that [is enough](is_enough). Another that is enough, or whose median is
//! not below that of the chosen one, is close.

use ferry_lab::units::{figure, real_count, size};
use ferry_tune::measure::is_enough;
use ferry_tune::{Direct, Figure};

use super::page::Page;

#[cfg(test)]
mod tests;

/// Fewest columns in which the ranges of the figures are shown, too.
const WIDE: usize = 72;
/// Most columns of a row: longer bars are harder to read.
const MOST: usize = 100;
/// Fewest columns of a full bar.
const LEAST_BAR: usize = 8;

/// A rate, in the unit of its curve, and what it was measured with.
struct Row {
    label: String,
    rate: Figure,
    is_chosen: bool,
}

struct Curve {
    title: &'static str,
    unit: &'static str,
    rows: Vec<Row>,
}

/// Draws the rates of random reads by the number in flight.
pub(super) fn depths(direct: &Direct, page: Page) -> String {
    let row = |found: &ferry_tune::Depth| Row {
        label: found.depth.to_string(),
        rate: found.iops,
        is_chosen: found.depth == direct.enough_depth,
    };
    let rows = direct.depths.iter().map(row).collect();
    let curve = Curve { title: "Random reads of 4 KiB by reads in flight", unit: "1/s", rows };
    format!("{}{}\n", curve.text(page), page.wrapped(&format!("A depth of {}.", enough(direct)), 0))
}

/// Draws the bandwidths of sequential reads by block size.
pub(super) fn blocks(direct: &Direct, page: Page) -> String {
    let row = |found: &ferry_tune::Block| Row {
        label: size(found.bytes),
        rate: scaled(&found.mb_per_s, 1e6),
        is_chosen: found.bytes == direct.best_block,
    };
    let rows = direct.blocks.iter().map(row).collect();
    let curve = Curve { title: "Sequential reads by block size", unit: "B/s", rows };
    let words = format!("{} is chosen: the others gain little or nothing.", size(direct.best_block));
    format!("{}{}\n", curve.text(page), page.wrapped(&words, 0))
}

/// Random reads a second at the chosen depth. The profile has another measurement of the same rate, which would contradict
/// the bars by chance.
pub(super) fn random_read(direct: &Direct) -> f64 {
    let chosen = direct.depths.iter().find(|found| found.depth == direct.enough_depth);
    chosen.map_or(direct.random_read, |found| found.iops).median
}

/// Bytes a second of sequential reads with the chosen block size.
pub(super) fn sequential_read(direct: &Direct) -> f64 {
    let chosen = direct.blocks.iter().find(|found| found.bytes == direct.best_block);
    scaled(&chosen.map_or(direct.sequential_read, |found| found.mb_per_s), 1e6).median
}

/// Completes a sentence that begins with "a depth of" and has no full stop yet.
pub(super) fn enough(direct: &Direct) -> String {
    let depth = direct.enough_depth;
    if direct.depths.last().is_some_and(|deepest| deepest.depth == depth) {
        format!("{depth} is the most that was tried: more might be faster")
    } else {
        format!("{depth} is enough: deeper queues gain little or nothing")
    }
}

fn scaled(figure: &Figure, scale: f64) -> Figure {
    let Figure { median, low, high, runs } = *figure;
    Figure { median: median * scale, low: low * scale, high: high * scale, runs }
}

impl Curve {
    fn text(&self, page: Page) -> String {
        let medians = || self.rows.iter().map(|row| row.rate.median);
        let most = medians().fold(0.0, f64::max);
        let chosen = self.rows.iter().find(|row| row.is_chosen).map_or(f64::INFINITY, |row| row.rate.median);
        let has_ranges = page.columns >= WIDE;
        let range = |rate: &Figure| {
            if has_ranges { format!("  {}", between(rate.low, rate.high, self.unit)) } else { String::new() }
        };
        let rows: Vec<[String; 4]> = self
            .rows
            .iter()
            .map(|row| {
                let rate = &row.rate;
                let mark = if row.is_chosen {
                    "  chosen"
                } else if is_enough(rate, most) || rate.median >= chosen {
                    "  close"
                } else {
                    ""
                };
                [row.label.clone(), figure(rate.median, self.unit), range(rate), mark.to_owned()]
            })
            .collect();
        let widest = |index: usize| rows.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
        let [label, value, range, mark] = [0, 1, 2, 3].map(widest);
        let bars = page.columns.min(MOST).saturating_sub(label + 2 + 2 + value + range + mark).max(LEAST_BAR);
        let heading = if has_ranges { ", median and range" } else { "" };
        let mut out = format!("{}{heading}\n", self.title);
        for (cells, median) in rows.iter().zip(medians()) {
            let share = if most > 0.0 { median / most } else { 0.0 };
            let bar = bar(share, bars, page.has_blocks);
            let [name, rate, span, note] = cells;
            let line = format!("{name:>label$}  {bar:<bars$}  {rate:>value$}{span:>range$}{note}");
            out += &format!("{}\n", line.trim_end());
        }
        out
    }
}

/// Formats `1.41 to 1.49 GB/s`.
fn between(low: f64, high: f64, unit: &str) -> String {
    let [low, high] = [low, high].map(|value| figure(value, unit));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Draws a bar for a share from 0 to 1 of `width` characters. No bar is empty, because no rate is 0.
fn bar(share: f64, width: usize, has_blocks: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let steps = if has_blocks { EIGHTHS.len() } else { 1 };
    let all = width * steps;
    let is_within = |count: &usize| real_count(*count) <= share * real_count(all) + 0.5;
    let filled = (1..=all).rev().find(is_within).unwrap_or(1);
    if has_blocks { "█".repeat(filled / steps) + EIGHTHS[filled % steps] } else { "#".repeat(filled) }
}

//! Plots of records, as SVG: a dot for each run, medians with their intervals, and labels beside the series. There is
//! no interval of too few runs.
//!
//! Plotting libraries add backends, fonts and legends, but lack colours as CSS variables (dark mode), labels beside
//! lines and text for screen readers; hence own code. The colours are Okabe and Ito's, which colour-blind people can
//! distinguish. Marks also differ in shape.

mod axis;
mod bars;
mod lines;
mod picture;
mod strips;
mod svg;

use crate::record::{Cell, Record};
use crate::statistics::Interval;
use crate::table::measured;
use crate::units::{plain, real, size};

use self::picture::Room;
pub use self::picture::{Bar, Line, Plot, PlotKind, Strip};
pub use self::svg::STYLE;

#[cfg(test)]
mod tests;

impl Plot {
    /// Returns a plot with a row for each of `cells` that has figures. Labels omit `prefix`.
    #[must_use]
    pub fn strips<'r>(
        record: &Record,
        title: &str,
        measure: &str,
        prefix: &str,
        cells: impl IntoIterator<Item = &'r Cell>,
    ) -> Self {
        let strip = |cell: &Cell| {
            let label = cell.name.strip_prefix(prefix).unwrap_or(&cell.name).to_owned();
            let summary = record.summary(cell, measure)?;
            Some(Strip { label, figures: cell.figures(measure), summary })
        };
        Self::new(record, title, measure, PlotKind::Strips(cells.into_iter().filter_map(strip).collect()))
    }

    /// Medians over the number `parameter` of these cells, a line for each series. If all cells have the same number,
    /// there is a row for each series instead.
    #[must_use]
    pub fn lines<'r>(
        record: &Record,
        title: &str,
        measure: &str,
        parameter: &str,
        series: impl Fn(&Cell) -> String,
        cells: impl IntoIterator<Item = &'r Cell>,
    ) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        let mut strips = Vec::new();
        for cell in cells {
            let (Some(number), Some(summary)) = (cell.number(parameter), record.summary(cell, measure))
            else {
                continue;
            };
            let text = if parameter.ends_with("bytes") { size(number) } else { plain(real(number)) };
            let point = (real(number), text, summary.median);
            let label = series(cell);
            strips.push(Strip { label: label.clone(), figures: cell.figures(measure), summary });
            match lines.iter_mut().find(|line| line.label == label) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { label, points: vec![point] }),
            }
        }
        let mut numbers = lines.iter().flat_map(|line| line.points.iter().map(|(at, ..)| *at));
        let first = numbers.next();
        if numbers.all(|at| first == Some(at)) {
            return Self::new(record, title, measure, PlotKind::Strips(strips));
        }
        lines.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        Self::new(record, title, measure, PlotKind::Lines { parameter: parameter.to_owned(), lines })
    }

    fn new(record: &Record, title: &str, measure: &str, kind: PlotKind) -> Self {
        let known = record.measure(measure);
        Self {
            title: title.to_owned(),
            measure: known.map(|measure| measure.about.clone()).unwrap_or_default(),
            unit: known.map(|measure| measure.unit.clone()).unwrap_or_default(),
            kind,
        }
    }

    /// Returns true if there are no figures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            PlotKind::Strips(strips) => strips.is_empty(),
            PlotKind::Lines { lines, .. } => lines.is_empty(),
            PlotKind::Bars { bars, .. } => bars.is_empty(),
        }
    }

    /// Returns true if there are enough figures for an interval.
    fn has_intervals(&self) -> bool {
        match &self.kind {
            PlotKind::Strips(strips) => strips.iter().any(|strip| strip.summary.median.is_enough()),
            PlotKind::Lines { lines, .. } => {
                lines.iter().flat_map(|line| &line.points).any(|(_, _, found)| found.is_enough())
            }
            PlotKind::Bars { bars, .. } => bars.iter().any(|bar| bar.ratio.is_enough()),
        }
    }

    /// Returns the plot for a page with [`STYLE`], once for wide screens and once for phones; the style shows one of
    /// them.
    #[must_use]
    pub fn svg(&self) -> String {
        self.draw(Room::Wide, false) + &self.draw(Room::Narrow, false)
    }

    /// Returns the plot as a standalone file.
    #[must_use]
    pub fn file(&self) -> String {
        self.draw(Room::Wide, true)
    }

    fn draw(&self, room: Room, alone: bool) -> String {
        let picture = match &self.kind {
            PlotKind::Strips(strips) => strips::draw(self, room, strips),
            PlotKind::Lines { parameter, lines } => lines::draw(self, room, parameter, lines),
            PlotKind::Bars { names, bars } => bars::draw(self, room, names, bars),
        };
        picture.finish(room.class(), &self.title, &self.words(), alone)
    }

    /// Returns a description for screen readers.
    #[must_use]
    pub fn words(&self) -> String {
        let text = |interval: &Interval| measured(interval, &self.unit);
        let parts: Vec<String> = match &self.kind {
            PlotKind::Strips(strips) => strips
                .iter()
                .map(|strip| format!("{} {}", strip.label, text(&strip.summary.median)))
                .collect(),
            PlotKind::Lines { parameter, lines } => lines
                .iter()
                .map(|line| {
                    let name = lines::named(parameter);
                    let points =
                        line.points.iter().map(|(_, at, interval)| format!("{at}: {}", text(interval)));
                    format!("{} by {name} {}", line.label, points.collect::<Vec<_>>().join(", "))
                })
                .collect(),
            PlotKind::Bars { names, bars } => bars::words(names, bars),
        };
        let what = if self.has_intervals() { "medians and 95 % intervals" } else { "medians" };
        format!("{}, {what}: {}.", self.measure, parts.join("; "))
    }
}

//! Pictures of records, as SVG: every run is a dot, medians and their intervals stand out, and each series is named
//! where it is.
//!
//! Own code, because what a plotting library adds (backends, fonts, legends) is not wanted here, and what is wanted
//! (colours as CSS variables for dark mode, labels beside the lines, text for screen readers) is what they lack.
//! Colours are those of Okabe and Ito, which colour-blind people tell apart; marks differ in shape as well.

mod axis;
mod lines;
mod strips;
mod svg;

use crate::record::{Cell, Record};
use crate::statistics::{Interval, Summary};
use crate::units::{plain, real, size};

pub(crate) use self::svg::escaped;

#[cfg(test)]
mod tests;

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What the figures are: the measure's words.
    pub measure: String,
    /// The figures' unit.
    pub unit: String,
    /// What is drawn.
    pub kind: Kind,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A row for each cell: its runs as dots, its median and the interval.
    Strips(Vec<Strip>),
    /// Medians over a parameter, a line for each series.
    Lines {
        /// The parameter's name.
        parameter: String,
        /// The series.
        lines: Vec<Line>,
    },
}

/// One row of dots.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// The row's name.
    pub label: String,
    /// Every figure.
    pub figures: Vec<f64>,
    /// What they say.
    pub summary: Summary,
}

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub label: String,
    /// Where on the axis, how that is written, and the figure.
    pub points: Vec<(f64, String, Interval)>,
}

/// How much room a picture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// A page's or a screen's.
    Wide,
    /// A phone's: what stands beside the figures elsewhere stands above them.
    Narrow,
}

impl Room {
    fn width(self) -> f64 {
        match self {
            Self::Wide => 720.0,
            Self::Narrow => 350.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Wide => "plot wide",
            Self::Narrow => "plot narrow",
        }
    }
}

/// The style sheet: colours as variables, another set for dark backgrounds. The report has it once for all plots.
pub const STYLE: &str = include_str!("plot/style.css");

impl Plot {
    /// A row for each of these cells that has figures, named by what its name adds to `prefix`.
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
        Self::new(record, title, measure, Kind::Strips(cells.into_iter().filter_map(strip).collect()))
    }

    /// Medians over the number `parameter` of these cells, a line for each text that `series` gives. Where there is one
    /// number only it is a row for each series, as lines of one point say nothing.
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
            return Self::new(record, title, measure, Kind::Strips(strips));
        }
        lines.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        Self::new(record, title, measure, Kind::Lines { parameter: parameter.to_owned(), lines })
    }

    fn new(record: &Record, title: &str, measure: &str, kind: Kind) -> Self {
        let known = record.measure(measure);
        Self {
            title: title.to_owned(),
            measure: known.map(|measure| measure.about.clone()).unwrap_or_default(),
            unit: known.map(|measure| measure.unit.clone()).unwrap_or_default(),
            kind,
        }
    }

    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Strips(strips) => strips.is_empty(),
            Kind::Lines { lines, .. } => lines.is_empty(),
        }
    }

    /// The picture within a page that has [`STYLE`], which shows either the one for wide screens or the one for phones.
    #[must_use]
    pub fn svg(&self) -> String {
        self.draw(Room::Wide, false) + &self.draw(Room::Narrow, false)
    }

    /// The picture as a file of its own.
    #[must_use]
    pub fn file(&self) -> String {
        self.draw(Room::Wide, true)
    }

    fn draw(&self, room: Room, alone: bool) -> String {
        let picture = match &self.kind {
            Kind::Strips(strips) => strips::draw(self, room, strips),
            Kind::Lines { parameter, lines } => lines::draw(self, room, parameter, lines),
        };
        picture.finish(room.class(), &self.title, &self.words(), alone)
    }

    /// What the picture says, for those who don't see it.
    #[must_use]
    pub fn words(&self) -> String {
        let text = |interval: &Interval| {
            let middle = crate::units::figure(interval.middle, &self.unit);
            format!("{middle} ({})", crate::table::between(interval, &self.unit))
        };
        let parts: Vec<String> = match &self.kind {
            Kind::Strips(strips) => strips
                .iter()
                .map(|strip| format!("{} {}", strip.label, text(&strip.summary.median)))
                .collect(),
            Kind::Lines { parameter, lines } => lines
                .iter()
                .map(|line| {
                    let name = lines::named(parameter);
                    let points =
                        line.points.iter().map(|(_, at, interval)| format!("{at}: {}", text(interval)));
                    format!("{} by {name} {}", line.label, points.collect::<Vec<_>>().join(", "))
                })
                .collect(),
        };
        format!("{}, medians and 95 % intervals: {}.", self.measure, parts.join("; "))
    }
}

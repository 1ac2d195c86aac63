//! The parts of a picture, before it is drawn.

use crate::statistics::{Interval, Summary};

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Title of the picture.
    pub title: String,
    /// Words of the measure.
    pub measure: String,
    /// The figures' unit.
    pub unit: String,
    /// Kind of plot, with its figures.
    pub kind: PlotKind,
}

/// Kinds of plots.
#[derive(Debug, Clone, PartialEq)]
pub enum PlotKind {
    /// A row for each cell: its runs as dots, its median and the interval.
    Strips(Vec<Strip>),
    /// Medians over a parameter, a line for each series.
    Lines {
        /// The parameter's name.
        parameter: String,
        /// The series.
        lines: Vec<Line>,
    },
    /// Ratios to one: a bar for each row, with marks.
    Bars {
        /// Names of the bars and of the two kinds of marks.
        names: [String; 3],
        /// The rows.
        bars: Vec<Bar>,
    },
}

/// One bar and its marks.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The row's name.
    pub label: String,
    /// Length of the bar, with its interval.
    pub ratio: Interval,
    /// Positions of the marks; `None` if a mark has no figure.
    pub marks: [Option<f64>; 2],
}

/// One row of dots.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// The row's name.
    pub label: String,
    /// Every figure.
    pub figures: Vec<f64>,
    /// Summary of the figures.
    pub summary: Summary,
}

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub label: String,
    /// Points: position on the axis, its label, and the figure.
    pub points: Vec<(f64, String, Interval)>,
}

/// Room in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// A page's or a screen's.
    Wide,
    /// A phone's: what stands beside the figures elsewhere stands above them.
    Narrow,
}

impl Room {
    pub(super) fn width(self) -> f64 {
        match self {
            Self::Wide => 720.0,
            Self::Narrow => 350.0,
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Wide => "plot wide",
            Self::Narrow => "plot narrow",
        }
    }
}

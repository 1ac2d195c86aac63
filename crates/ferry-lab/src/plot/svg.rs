//! Writes SVG: shapes with classes, escaped text, and a description for screen readers.

use std::fmt::Write;

use ferry_trace::export::escaped;

/// The style sheet: colours as variables, another set for dark backgrounds. The report has it once for all plots.
pub const STYLE: &str = include_str!("style.css");

/// A picture being drawn.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Baseline of the title's first line, and the distance between its lines.
const TITLE: f64 = 20.0;
const TITLE_LINE: f64 = 18.0;

/// Position of a text relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.push(&format!(
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// A title of as many lines as it needs; gives how much room those after the first took.
    pub(super) fn title(&mut self, text: &str) -> f64 {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                // It is set bold, in 14 pixels.
                Some(line) if width(line) * 1.25 + width(word) * 1.25 < self.width - 16.0 => {
                    line.push(' ');
                    line.push_str(word);
                }
                Some(_) | None => lines.push(word.to_owned()),
            }
        }
        let mut y = TITLE;
        for line in &lines {
            self.text((8.0, y), "title", Anchor::Start, line);
            y += TITLE_LINE;
        }
        y - TITLE - TITLE_LINE
    }

    /// Makes it higher.
    pub(super) fn grow(&mut self, by: f64) {
        self.height += by;
    }

    pub(super) fn label(&mut self, (x, y): (f64, f64), colour: usize, text: &str) {
        let text = escaped(text);
        self.push(&format!(
            r#"<text x="{x:.1}" y="{y:.1}" style="fill:var(--c{});font-weight:600">{text}</text>"#,
            colour % 8
        ));
    }

    pub(super) fn rule(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(&format!(r#"<path class="{class}" d="M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"/>"#));
    }

    pub(super) fn stroke(&mut self, class: &str, colour: usize, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            // Writing to a String can't fail.
            write!(path, "{command}{x:.1} {y:.1}").unwrap_or_default();
        }
        self.push(&format!(r#"<path class="{class}" style="stroke:var(--c{})" d="{path}"/>"#, colour % 8));
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), colour: usize) {
        self.push(&format!(
            r#"<circle class="dot" style="fill:var(--c{})" cx="{x:.1}" cy="{y:.1}" r="3"/>"#,
            colour % 8
        ));
    }

    /// A pale bar, on which marks are visible.
    pub(super) fn bar(&mut self, (x, y): (f64, f64), width: f64, height: f64, colour: usize) {
        self.push(&format!(
            r#"<rect style="fill:var(--c{});fill-opacity:.6" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#,
            colour % 8
        ));
    }

    /// A mark whose shape, too, says which series it is.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), series: usize) {
        let path = match series % 4 {
            0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
            1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
            2 => format!("M{x:.1} {:.1}l5 9h-10z", y - 5.5),
            _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        };
        self.push(&format!(r#"<path style="fill:var(--c{})" d="{path}"/>"#, series % 8));
    }

    fn push(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    pub(super) fn finish(self, class: &str, title: &str, words: &str, alone: bool) -> String {
        let Self { width, height, body } = self;
        let (title, words) = (escaped(title), escaped(words));
        let (space, style) = if alone {
            (r#" xmlns="http://www.w3.org/2000/svg""#, format!("<style>{}</style>\n", STYLE))
        } else {
            ("", String::new())
        };
        format!(
            "<svg{space} class=\"{class}\" role=\"img\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\">\n<title>{title}</title>\n<desc>{words}</desc>\n{style}<rect class=\"paper\" \
             width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
        )
    }
}

/// About how wide a text of 12 pixels is.
pub(super) fn width(text: &str) -> f64 {
    crate::units::real_count(text.chars().count()) * 6.9
}

//! SVG elements with classes, escaped text, and a description for screen readers.

use crate::export::xml::escaped;

/// Colours as variables, with variants for dark backgrounds and for paper.
const STYLE: &str = include_str!("style.css");

/// Width of the picture: that of a document's column, in pixels.
pub(super) const WIDTH: f64 = 720.0;
/// Left and right edge of the area where times are drawn, in pixels.
pub(super) const LEFT: f64 = 44.0;
pub(super) const RIGHT: f64 = 708.0;

/// A picture being drawn. Lengths are pixels.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
}

#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(super) fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.push(&format!(
            "<text x=\"{}\" y=\"{}\" class=\"{class}\"{anchor}>{}</text>",
            short(x),
            short(y),
            escaped(text)
        ));
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.push(&format!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            short(x),
            short(y),
            short(width),
            short(height)
        ));
    }

    /// A polyline, or an area if its class is filled.
    pub(super) fn path(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            path.push(if path.is_empty() { 'M' } else { 'L' });
            path += &short(x);
            path.push(' ');
            path += &short(y);
        }
        self.push(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    fn push(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    pub(super) fn finish(self, (width, height): (f64, f64), title: &str, words: &str) -> String {
        let (width, height) = (short(width), short(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">\n<title>{}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
            escaped(title),
            escaped(words),
            self.body
        )
    }
}

/// Rounds to tenths of a pixel.
fn short(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

pub(super) fn real(n: u64) -> f64 {
    let half = |bits: u64| f64::from(u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX));
    half(n >> 32) * 4_294_967_296.0 + half(n)
}

pub(super) fn count(n: usize) -> f64 {
    real(n as u64)
}

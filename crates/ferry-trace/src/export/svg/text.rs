//! Text cut to the width of a line, by upper bounds of the letters' widths.

use super::canvas::WIDTH;

/// Room of a line, in units of its letters' size.
pub(super) const ROOM: f64 = (WIDTH - 16.0) / 12.0;
/// Room of a line of the title, whose letters are larger.
const TITLE_ROOM: f64 = (WIDTH - 16.0) / 14.0;

/// The title in one or two lines; the rest is left out.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    let within = fitting(text, TITLE_ROOM);
    if within == text.len() {
        return vec![text.to_owned()];
    }
    let end = text.get(..within).and_then(|line| line.rfind(' ')).unwrap_or(within);
    let (line, rest) = text.split_at(end);
    vec![line.to_owned(), cut(rest.trim_start(), TITLE_ROOM)]
}

pub(super) fn shortened(text: &str) -> String {
    cut(text, ROOM)
}

pub(super) fn cut(text: &str, room: f64) -> String {
    if fitting(text, room) == text.len() {
        return text.to_owned();
    }
    let within = fitting(text, room - width('…'));
    text.chars().take(text.get(..within).map_or(0, |kept| kept.chars().count())).chain(['…']).collect()
}

fn fitting(text: &str, room: f64) -> usize {
    let mut taken = 0.0;
    let first_beyond = text.char_indices().find(|(_, letter)| {
        taken += width(*letter);
        taken > room
    });
    first_beyond.map_or(text.len(), |(at, _)| at)
}

/// Maximum width of a letter in units of its size, in the widest of the fonts in the style, in bold.
fn width(letter: char) -> f64 {
    match letter {
        ' ' | '\'' | ',' | '.' | ':' | ';' | 'f' | 'i' | 'j' | 'l' | 'r' | 't' | '-' | '/' | '!' | '|'
        | '(' | ')' => 0.5,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.11,
        letter if letter.is_ascii_uppercase() || "=+<>#&".contains(letter) => 0.85,
        letter if letter.is_ascii() => 0.72,
        _ => 1.11,
    }
}

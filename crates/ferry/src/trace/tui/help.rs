//! Draws the help: keys, then symbols, in as many columns and pages as the terminal needs.

use ferry_io::Route;
use ferry_trace::model::{Cause, IDLE, SubmitReason};
use ferry_trace::timeline::Class;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::keys::BINDINGS;
use super::palette::{Palette, sign};
use super::put::put;
use crate::trace::reasons::because;

/// Columns of a line and of the gap behind it.
const COLUMN: u16 = 37;

/// A line of the help.
enum Line {
    Title(&'static str),
    Text(String),
    Sign(Class, String),
}

/// Draws a page, or the last one; returns the number of pages.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, palette: Palette, page: usize) -> usize {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let (columns, rows) = (usize::from((area.width / COLUMN).max(1)), usize::from(area.height.max(2) - 1));
    let lines = lines();
    let pages = lines.len().div_ceil(columns * rows);
    let page = page.min(pages - 1);
    let title = if pages == 1 {
        "Keys (any key returns)".to_owned()
    } else {
        format!("Keys {}/{pages} (any key: next, q: back)", page + 1)
    };
    put(buffer, area, 0, 0, &title, bold);
    let shown = lines.chunks(rows).skip(page * columns).take(columns);
    for (lines, x) in shown.zip((0..).step_by(usize::from(COLUMN))) {
        for (y, line) in (1..area.height).zip(lines) {
            match line {
                Line::Title(text) => put(buffer, area, x, y, text, bold),
                Line::Text(text) => put(buffer, area, x, y, text, Style::new()),
                Line::Sign(class, text) => {
                    put(buffer, area, x, y, sign(*class).encode_utf8(&mut [0; 4]), palette.style(*class));
                    put(buffer, area, x + 2, y, text, Style::new());
                }
            }
        }
    }
    pages
}

fn lines() -> Vec<Line> {
    let keys = BINDINGS.iter().map(|binding| Line::Text(format!("{:<10} {}", binding.names, binding.what)));
    let head = [
        Line::Text(String::new()),
        Line::Title("Symbols"),
        Line::Text("of the largest part of a cell".to_owned()),
        Line::Text("bold: a cell with several".to_owned()),
    ];
    let routes = Route::ALL.map(|route| (Class::Route(route), route.name().to_owned()));
    let states =
        [(Class::Idle, IDLE), (Class::Awake, "awake"), (Class::Device, "requests of a block device")];
    let states = states.map(|(class, name)| (class, name.to_owned()));
    let batches = [SubmitReason::Full, SubmitReason::Idle, SubmitReason::Forced].map(|why| {
        let (name, meaning) = because(why);
        (Class::SubmitReason(why), format!("{name}: {meaning}"))
    });
    let causes = Cause::ALL.map(|cause| (Class::Cause(cause), cause.name().to_owned()));
    let signs = routes.into_iter().chain(states).chain(batches).chain(causes);
    keys.chain(head).chain(signs.map(|(class, text)| Line::Sign(class, text))).collect()
}

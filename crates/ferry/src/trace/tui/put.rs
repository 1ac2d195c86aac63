//! Puts text into a terminal's buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::trace::figures::printable;

/// Draws text up to the right edge, without control characters.
pub(super) fn put(buffer: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) {
    let width = usize::from(area.width.saturating_sub(x));
    buffer.set_stringn(area.x + x, area.y + y, printable(text), width, style);
}

//! Draws the timeline into a terminal's buffer.

use ferry_trace::model::Nanos;
use ferry_trace::timeline::{Class, Part, Row, RowKind};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::palette::{Palette, sign};
use super::put::put;
use super::scale::{label, step};
use super::view::View;
use super::{detail, help};
use crate::trace::figures::{command_line, time};
use crate::units::count;

/// Fewest columns of a wide terminal. On a narrower one, labels are cut and details are broken into more lines.
const WIDE: u16 = 60;
/// Columns of the rows' labels on a wide terminal, and on a narrow one.
const LABELS: (u16, u16) = (18, 12);
/// Lines of details on a wide terminal, and the most on a narrow one.
const DETAILS: (u16, u16) = (5, 8);
/// Rows that more lines of details leave.
const ROWS: u16 = 3;
/// Number of other lines: title, axis, rule, status.
const OTHERS: u16 = 4;
/// Fewest columns and lines.
const LEAST: (u16, u16) = (LABELS.1 + 20, OTHERS + DETAILS.0 + 1);
/// Columns for a tick of the axis with its time.
const TICK: u16 = 14;

/// Places of everything on the screen.
#[derive(Clone, Copy)]
struct Layout {
    area: Rect,
    labels: u16,
    details: u16,
}

impl Layout {
    fn of(area: Rect) -> Self {
        if area.width >= WIDE {
            return Self { area, labels: LABELS.0, details: DETAILS.0 };
        }
        let details = area.height.saturating_sub(OTHERS + ROWS).clamp(DETAILS.0, DETAILS.1);
        Self { area, labels: LABELS.1, details }
    }
}

pub(super) fn draw(view: &mut View, palette: Palette, frame: &mut Frame) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("the timeline needs {} x {} characters", LEAST.0, LEAST.1);
        put(buffer, area, 0, 0, &text, Style::new());
        return;
    }
    let layout = Layout::of(area);
    view.resize(area.width - layout.labels, area.height - OTHERS - layout.details);
    if let Some(page) = view.help {
        view.help_pages = help::draw(buffer, area, palette, page);
        return;
    }
    put(buffer, area, 0, 0, &head(view), Style::new().add_modifier(Modifier::BOLD));
    axis(view, palette, buffer, layout);
    let rows = view.timeline.rows.iter().enumerate().skip(view.top).take(usize::from(view.height));
    for (line, (index, row)) in (2..).zip(rows) {
        draw_row(view, palette, buffer, &Placed { row, index, layout, line });
    }
    let rule = area.height - layout.details - 2;
    put(buffer, area, 0, rule, &"─".repeat(usize::from(area.width)), palette.faint());
    let details = detail::lines(view, usize::from(area.width));
    for (line, text) in (rule + 1..area.height - 1).zip(details) {
        put(buffer, area, 0, line, &text, Style::new());
    }
    let last = last_line(view, usize::from(area.width));
    put(buffer, area, 0, area.height - 1, &last, Style::new().add_modifier(Modifier::REVERSED));
}

fn head(view: &View) -> String {
    let lost = view.trace.lost;
    let lost = lost.program.saturating_add(lost.kernel);
    let lost = if lost > 0 { format!("LOST: {} events; ", count(lost)) } else { String::new() };
    let (took, length) = (time(view.timeline.took), time(view.window.end - view.window.start));
    format!("{lost}{length} of {took}: {}", command_line(&view.trace.about.command))
}

fn last_line(view: &View, width: usize) -> String {
    /// Keys, and the order in which they are left out on a narrow terminal; those without a number stay.
    const KEYS: [(&str, Option<u8>); 9] = [
        ("←→ move", Some(6)),
        ("↑↓ row", Some(5)),
        ("+ - zoom", Some(4)),
        ("0 all", Some(0)),
        ("Tab next", Some(1)),
        ("> < by length", Some(3)),
        ("/ search", Some(2)),
        ("? help", None),
        ("q quit", None),
    ];
    if view.is_typing {
        let room = width.saturating_sub(2);
        let hidden = view.search.chars().count().saturating_sub(room);
        let end: String = view.search.chars().skip(hidden).collect();
        return format!("/{end}_   Enter searches, Esc cancels");
    }
    if !view.message.is_empty() {
        return view.message.clone();
    }
    let line = |from: u8| {
        let kept = KEYS.iter().filter(|(_, rank)| rank.is_none_or(|rank| rank >= from));
        kept.map(|(text, _)| *text).collect::<Vec<_>>().join("  ")
    };
    (0..7).map(line).find(|line| line.chars().count() <= width).unwrap_or_else(|| line(7))
}

/// Draws the times above the rows and the cursor's position.
fn axis(view: &View, palette: Palette, buffer: &mut Buffer, layout: Layout) {
    let Layout { area, labels, .. } = layout;
    let step = step(view.window.end - view.window.start, view.cells / TICK);
    let first = view.window.start.div_ceil(step);
    let mut free = 0;
    for tick in (first..).map(|index| index.saturating_mul(step)).take_while(|tick| *tick < view.window.end) {
        let (cell, text) = (view.cell_of(tick), format!("│{}", label(tick, step, view.window.end)));
        let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        if cell >= free && cell.saturating_add(width) <= view.cells {
            put(buffer, area, labels + cell, 1, &text, palette.faint());
            free = cell + width + 1;
        }
    }
    put(buffer, area, labels + view.cell_of(view.cursor), 1, "▼", Style::new());
}

struct Placed<'r> {
    row: &'r Row,
    index: usize,
    layout: Layout,
    line: u16,
}

fn draw_row(view: &View, palette: Palette, buffer: &mut Buffer, placed: &Placed) {
    let Placed { row, index, layout: Layout { area, labels, .. }, line } = *placed;
    let is_current = index == view.row;
    let style = if is_current { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    put(buffer, area, 0, line, &row_label(view, index, row, usize::from(labels) - 1), style);
    let cursor = view.cell_of(view.cursor);
    for cell in 0..view.cells {
        let piece = view.cell(cell);
        let (symbol, mut style) = drawn(row, &row.parts(&piece), piece.end - piece.start, palette);
        if is_current && cell == cursor {
            style = style.add_modifier(Modifier::REVERSED);
        }
        if symbol != ' ' || is_current && cell == cursor {
            put(buffer, area, labels + cell, line, symbol.encode_utf8(&mut [0; 4]), style);
        }
    }
}

/// Label of a row in up to `room` characters; the first row of a thread has its name.
fn row_label(view: &View, index: usize, row: &Row, room: usize) -> String {
    let before = index.checked_sub(1).and_then(|index| view.timeline.rows.get(index));
    let is_first = index == view.top || before.is_none_or(|before| before.thread != row.thread);
    let name = detail::name(row.kind);
    let with = |peak: &str| match (is_first, row.kind) {
        (true, RowKind::Calls | RowKind::Pool | RowKind::Awake) => detail::thread(view.trace, row.thread),
        (
            true,
            RowKind::Ring | RowKind::Submissions | RowKind::TaskWork | RowKind::Requests | RowKind::Device,
        ) => {
            let thread: String = detail::thread(view.trace, row.thread).chars().take(8).collect();
            format!("{thread} {name}{peak}")
        }
        (false, _) => format!("  {name}{peak}"),
    };
    let whole = with(&row.peak().map(|peak| format!(" ≤ {}", count(peak))).unwrap_or_default());
    // A number is left out rather than cut.
    if whole.chars().count() <= room { whole } else { with("").chars().take(room).collect() }
}

/// Symbol and style of a cell of this length.
fn drawn(row: &Row, parts: &[Part], length: Nanos, palette: Palette) -> (char, Style) {
    let is_of_rest = |part: &&Part| part.class == Class::Idle;
    let Some(main) = parts.iter().filter(|part| !is_of_rest(part)).max_by_key(|part| (part.time, part.count))
    else {
        let idle: Nanos = parts.iter().map(|part| part.time).sum();
        let is_idle = idle.saturating_mul(2) > length;
        return (if is_idle { sign(Class::Idle) } else { ' ' }, palette.style(Class::Idle));
    };
    let style = palette.style(main.class);
    if let Class::SubmitReason(_) | Class::Cause(_) = main.class {
        // Prefer the longest part to the most numerous; the details show all.
        let all: usize = parts.iter().map(|part| part.count).sum();
        let style = if all > 1 { style.add_modifier(Modifier::BOLD) } else { style };
        return (sign(main.class), style);
    }
    let time: Nanos = parts.iter().filter(|part| !is_of_rest(part)).map(|part| part.time).sum();
    let full = length.saturating_mul(row.peak().unwrap_or(1).max(1));
    let eighths = (u128::from(time) * 8).div_ceil(u128::from(full.max(1)));
    (['▁', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][usize::try_from(eighths).unwrap_or(8).min(8)], style)
}

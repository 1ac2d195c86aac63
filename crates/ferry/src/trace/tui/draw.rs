//! Draws the timeline into a terminal's buffer.

use ferry_io::Route;
use ferry_trace::model::{Cause, IDLE, Nanos, SubmitReason};
use ferry_trace::timeline::{Class, Part, Row, RowKind};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::detail;
use super::keys::BINDINGS;
use super::palette::{Palette, sign};
use super::view::View;
use crate::trace::figures::{command_line, time};
use crate::trace::text::{because, printable};
use crate::units::count;

/// Width of the rows' labels in characters.
const LABELS: u16 = 18;
/// Number of lines for details.
const DETAILS: u16 = 5;
/// Number of other lines: title, axis, rule, details, status.
const OTHERS: u16 = DETAILS + 4;
const LEAST: (u16, u16) = (LABELS + 20, OTHERS + 1);

pub(super) fn draw(view: &mut View, palette: Palette, frame: &mut Frame) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        put(
            buffer,
            area,
            0,
            0,
            &format!("the timeline needs {} x {} characters", LEAST.0, LEAST.1),
            Style::new(),
        );
        return;
    }
    view.resize(area.width - LABELS, area.height - OTHERS);
    if view.shows_help {
        return help(buffer, area, palette);
    }
    put(buffer, area, 0, 0, &head(view), Style::new().add_modifier(Modifier::BOLD));
    axis(view, palette, buffer, area);
    let rows = view.timeline.rows.iter().enumerate().skip(view.top).take(usize::from(view.height));
    for (line, (index, row)) in (2..).zip(rows) {
        draw_row(view, palette, buffer, &Placed { row, index, area, line });
    }
    let rule = area.height - DETAILS - 2;
    put(buffer, area, 0, rule, &"─".repeat(usize::from(area.width)), palette.faint());
    for (line, text) in (rule + 1..area.height - 1).zip(detail::lines(view, usize::from(area.width))) {
        put(buffer, area, 0, line, &text, Style::new());
    }
    put(buffer, area, 0, area.height - 1, &last_line(view), Style::new().add_modifier(Modifier::REVERSED));
}

/// Draws text up to the right edge, without control characters.
fn put(buffer: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) {
    let width = usize::from(area.width.saturating_sub(x));
    buffer.set_stringn(area.x + x, area.y + y, printable(text), width, style);
}

fn head(view: &View) -> String {
    let lost = view.trace.lost;
    let lost = lost.program.saturating_add(lost.kernel);
    let lost = if lost > 0 { format!("LOST: {} events; ", count(lost)) } else { String::new() };
    let (took, length) = (time(view.timeline.took), time(view.window.end - view.window.start));
    format!("{lost}{length} of {took}: {}", command_line(&view.trace.about.command))
}

fn last_line(view: &View) -> String {
    if view.is_typing {
        return format!("/{}_   Enter searches, Esc cancels", view.search);
    }
    if !view.message.is_empty() {
        return view.message.clone();
    }
    "←→ move  ↑↓ row  + - zoom  0 all  Tab next  > < by length  / search  ? help  q quit".to_owned()
}

/// Draws the times above the rows and the cursor's position.
fn axis(view: &View, palette: Palette, buffer: &mut Buffer, area: Rect) {
    let length = view.window.end - view.window.start;
    let step = step(length, view.cells / 14);
    let first = view.window.start.div_ceil(step);
    let mut free = 0;
    for tick in (first..).map(|index| index.saturating_mul(step)).take_while(|tick| *tick < view.window.end) {
        let (cell, text) = (view.cell_of(tick), format!("│{}", label(tick, step)));
        let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        if cell >= free && cell.saturating_add(width) <= view.cells {
            put(buffer, area, LABELS + cell, 1, &text, palette.faint());
            free = cell + width + 1;
        }
    }
    put(buffer, area, LABELS + view.cell_of(view.cursor), 1, "▼", Style::new());
}

/// Rounds the distance of ticks up, so that `length` has at most `most` of them.
fn step(length: Nanos, most: u16) -> Nanos {
    let least = length / Nanos::from(most.max(1)) + 1;
    let mut unit: Nanos = 1;
    loop {
        if let Some(step) = [1, 2, 5].into_iter().map(|n| unit.saturating_mul(n)).find(|step| *step >= least)
        {
            return step;
        }
        unit = unit.saturating_mul(10);
    }
}

/// Formats a time with as many decimals as steps of this length need.
fn label(at: Nanos, step: Nanos) -> String {
    let units: [(Nanos, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| *unit <= step.saturating_mul(100)).unwrap_or((1, "ns"));
    let (whole, rest) = (count(at / unit), at % unit);
    let places = (0..3).find(|places| step.is_multiple_of((unit / 10_u64.pow(*places)).max(1))).unwrap_or(3);
    if places == 0 || unit == 1 {
        return format!("{whole} {name}");
    }
    let rest = rest / (unit / 10_u64.pow(places)).max(1);
    let width = usize::try_from(places).unwrap_or(3);
    format!("{whole}.{rest:0width$} {name}")
}

struct Placed<'r> {
    row: &'r Row,
    index: usize,
    area: Rect,
    line: u16,
}

fn draw_row(view: &View, palette: Palette, buffer: &mut Buffer, placed: &Placed) {
    let Placed { row, index, area, line } = *placed;
    let is_current = index == view.row;
    let style = if is_current { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    let text = row_label(view, index, row);
    put(buffer, area, 0, line, &text.chars().take(usize::from(LABELS) - 1).collect::<String>(), style);
    let cursor = view.cell_of(view.cursor);
    for cell in 0..view.cells {
        let piece = view.cell(cell);
        let (symbol, mut style) = drawn(row, &row.parts(&piece), piece.end - piece.start, palette);
        if is_current && cell == cursor {
            style = style.add_modifier(Modifier::REVERSED);
        }
        if symbol != ' ' || is_current && cell == cursor {
            put(buffer, area, LABELS + cell, line, symbol.encode_utf8(&mut [0; 4]), style);
        }
    }
}

/// Label of a row; the first row of a thread has its name.
fn row_label(view: &View, index: usize, row: &Row) -> String {
    let before = index.checked_sub(1).and_then(|index| view.timeline.rows.get(index));
    let is_first = index == view.top || before.is_none_or(|before| before.thread != row.thread);
    let peak = row.peak().map(|peak| format!(" ≤ {}", count(peak))).unwrap_or_default();
    let name = detail::name(row.kind);
    match (is_first, row.kind) {
        (true, RowKind::Calls | RowKind::Pool | RowKind::Awake) => detail::thread(view.trace, row.thread),
        (true, RowKind::Ring | RowKind::Submissions | RowKind::TaskWork | RowKind::Requests) => {
            let thread: String = detail::thread(view.trace, row.thread).chars().take(8).collect();
            format!("{thread} {name}{peak}")
        }
        (false, _) => format!("  {name}{peak}"),
    }
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

/// Draws the keys in two columns, and the symbols below them.
fn help(buffer: &mut Buffer, area: Rect, palette: Palette) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    put(buffer, area, 0, 0, "Keys (any key returns)", bold);
    let (left, right) = BINDINGS.split_at(BINDINGS.len().div_ceil(2));
    for (x, bindings) in [(0, left), (area.width / 2, right)] {
        for (y, binding) in (1..area.height).zip(bindings) {
            put(buffer, area, x, y, &format!("{:<10} {}", binding.names, binding.what), Style::new());
        }
    }
    let begin = u16::try_from(left.len()).unwrap_or(u16::MAX).saturating_add(2);
    if begin >= area.height {
        return;
    }
    put(buffer, area, 0, begin, "Symbols (largest part of a cell; bold: several)", bold);
    let routes = Route::ALL.map(|route| (Class::Route(route), route.name()));
    let states = [(Class::Idle, IDLE), (Class::Awake, "awake")];
    let why = [SubmitReason::Full, SubmitReason::Idle, SubmitReason::Forced]
        .map(|why| (Class::SubmitReason(why), because(why)));
    let causes = Cause::ALL.map(|cause| (Class::Cause(cause), cause.name()));
    let signs: Vec<(Class, &str)> = routes.into_iter().chain(states).chain(why).chain(causes).collect();
    let each = signs.len().div_ceil(3);
    for (x, signs) in [0, area.width / 3, area.width / 3 * 2].into_iter().zip(signs.chunks(each)) {
        for (y, (class, text)) in (begin + 1..area.height).zip(signs) {
            put(buffer, area, x, y, sign(*class).encode_utf8(&mut [0; 4]), palette.style(*class));
            put(buffer, area, x + 2, y, text, Style::new());
        }
    }
}

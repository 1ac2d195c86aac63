//! A picture for documents: the depth over the whole recording, a part of it in which each operation is visible, and the
//! requests of block devices.
//!
//! Its size does not grow with the trace: the whole has [`whole::COLUMNS`] columns and at most [`whole::THREADS`]
//! threads, the part at most [`closer::MOST`] operations. It is drawn by own code because plotting libraries do not
//! draw timelines.

mod axis;
mod canvas;
mod closer;
mod devices;
mod legend;
mod spans;
mod text;
mod whole;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use self::axis::{Axis, grouped, words};
use self::canvas::{Anchor, Canvas, WIDTH, real};
use self::spans::{end, spans};
use self::text::{shortened, wrapped};
use crate::model::Trace;

/// Writes a trace as an SVG picture.
///
/// # Errors
/// Those of `out`.
pub fn svg(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    out.write_all(draw(trace).as_bytes())
}

fn draw(trace: &Trace) -> String {
    let mut canvas = Canvas::default();
    let title = title(trace);
    let mut y = 20.0;
    for (index, line) in wrapped(&title).iter().enumerate() {
        y += if index > 0 { 18.0 } else { 0.0 };
        canvas.text((8.0, y), "title", Anchor::Start, line);
    }
    let lines = lines(trace);
    for line in &lines {
        y += 17.0;
        canvas.text((8.0, y), "faint", Anchor::Start, line);
    }
    let shown = busiest(trace);
    y = legend::draw(&mut canvas, trace, y + 10.0);
    let all = Axis::of(0, end(trace));
    let window = shown.first().map(|thread| closer::window(trace, *thread, all));
    if window != Some(all) {
        y = whole::draw(&mut canvas, trace, &shown, all, y);
    }
    if let (Some(thread), Some(window)) = (shown.first(), window) {
        y = closer::draw(&mut canvas, trace, *thread, window, y);
    }
    y = devices::draw(&mut canvas, trace, all, y);
    canvas.finish((WIDTH, y + 8.0), &wrapped(&title).join(" "), &lines.join(" "))
}

/// Command with the program's name instead of its path.
fn title(trace: &Trace) -> String {
    let Some((program, arguments)) = trace.about.command.split_first() else {
        return "A recording".to_owned();
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().map(String::as_str)).collect();
    words.join(" ")
}

fn lines(trace: &Trace) -> Vec<String> {
    let about = &trace.about;
    let mut found = Vec::new();
    let has_requests_only = trace.operations.is_empty() && !trace.requests.is_empty();
    let what = if has_requests_only { "requests" } else { "operations" };
    let mut line = format!("{} {what} in {}", grouped(spans(trace).count() as u64), words(end(trace)));
    if !trace.submissions.is_empty() {
        let count = trace.submissions.len() as u64;
        let requests: u64 = trace.submissions.iter().map(|batch| u64::from(batch.requests)).sum();
        let each = real(requests) / real(count);
        line += &format!("; {} in {} submissions, {each:.1} a submission", grouped(requests), grouped(count));
    }
    found.push(line + ".");
    if !about.run.is_empty() {
        found.push(shortened(&format!("Recording of {}", about.run)));
    }
    let mut where_ = Vec::new();
    if !about.backend.is_empty() {
        where_.push(format!("backend {}", about.backend));
    }
    // The suffix of the version identifies the build.
    let kernel = about.kernel.split('-').next().unwrap_or_default();
    if !kernel.is_empty() {
        where_.push(format!("Linux {kernel}"));
    }
    if about.processors > 0 {
        let plural = if about.processors == 1 { "" } else { "s" };
        where_.push(format!("{} processor{plural}", about.processors));
    }
    found.push(shortened(&where_.join(", ")));
    let lost = trace.lost.program.saturating_add(trace.lost.kernel);
    if lost > 0 {
        found.push(format!("{} events were lost because buffers were full.", grouped(lost)));
    }
    found.retain(|line| !line.is_empty());
    found
}

/// Threads that requested operations, by number of operations, descending.
fn busiest(trace: &Trace) -> Vec<u32> {
    let mut counts = vec![0_u64; trace.threads.len()];
    for span in spans(trace) {
        if let Some(count) = counts.get_mut(span.thread as usize) {
            *count += 1;
        }
    }
    let mut order: Vec<(u64, u32)> = counts.into_iter().zip(0..).filter(|(count, _)| *count > 0).collect();
    order.sort_by_key(|(count, thread)| (std::cmp::Reverse(*count), *thread));
    order.into_iter().map(|(_, thread)| thread).collect()
}

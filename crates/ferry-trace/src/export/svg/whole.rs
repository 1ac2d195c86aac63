//! The whole recording: operations in flight by route and state as stacked areas, with submissions and idle time
//! beneath.

#[cfg(test)]
mod tests;

use ferry_io::Route;

use super::axis::{Axis, grouped, words};
use super::canvas::{Anchor, Canvas, LEFT, RIGHT, count, real};
use super::spans::{class, spans};
use super::text::shortened;
use crate::export::parts::Doing;
use crate::model::{Nanos, Trace};

/// Maximum number of threads drawn; the others are only counted.
pub(super) const THREADS: usize = 4;
/// Columns of the picture: two pixels each.
pub(super) const COLUMNS: usize = 332;
/// Heights of the parts from top to bottom, in pixels.
const AREA: f64 = 76.0;
const BARS: f64 = 22.0;
const IDLE_BAND: f64 = 6.0;

/// Number of layers: each route while waiting, in the ring, and executed.
const LAYERS: usize = Route::ALL.len() * 3;

fn layer(route: Route, doing: Doing) -> usize {
    let route = match route {
        Route::Inline => 0,
        Route::Ring => 1,
        Route::Pool => 2,
        Route::Offload => 3,
    };
    let doing = match doing {
        Doing::Runs => 0,
        Doing::InRing => 1,
        Doing::Queued | Doing::Done => 2,
    };
    route * 3 + doing
}

fn layer_class(layer: usize) -> String {
    let route = Route::ALL.get(layer / 3).map_or("", |route| route.name());
    let doing = [Doing::Runs, Doing::InRing, Doing::Queued].get(layer % 3).copied();
    format!("{route}{}", doing.map_or("", class))
}

/// Mean of something in each column of the picture.
#[derive(Clone)]
pub(super) struct Columns {
    axis: Axis,
    own: Vec<f64>,
    /// In this column and all later ones, as differences.
    on: Vec<f64>,
}

impl Columns {
    pub(super) fn of(axis: Axis) -> Self {
        Self { axis, own: vec![0.0; COLUMNS], on: vec![0.0; COLUMNS + 1] }
    }

    /// Column of a time, and its position in units of columns.
    fn place(&self, at: Nanos) -> (usize, f64) {
        let at = at.clamp(self.axis.began, self.axis.ended) - self.axis.began;
        let column = u128::from(at) * COLUMNS as u128 / u128::from(self.axis.length());
        // The end belongs to the last column.
        let column = usize::try_from(column).unwrap_or(COLUMNS).min(COLUMNS - 1);
        (column, count(COLUMNS) * real(at) / real(self.axis.length()))
    }

    /// Adds an interval at constant cost.
    pub(super) fn add(&mut self, began: Nanos, ended: Nanos) {
        let ((first, began), (last, ended)) = (self.place(began), self.place(ended.max(began)));
        if first == last {
            self.own[first] += ended - began;
        } else {
            self.own[first] += count(first + 1) - began;
            self.on[first + 1] += 1.0;
            self.on[last] -= 1.0;
            self.own[last] += ended - count(last);
        }
    }

    pub(super) fn averages(&self) -> Vec<f64> {
        let mut on = 0.0;
        let each = self.own.iter().zip(&self.on).map(|(own, change)| {
            on += change;
            (own + on).max(0.0)
        });
        each.collect()
    }
}

struct Track {
    layers: Vec<Columns>,
    idle: Columns,
    submissions: Vec<u64>,
    peaks: Vec<u64>,
}

/// Draws the threads one beneath the other, and returns the bottom.
pub(super) fn draw(canvas: &mut Canvas, trace: &Trace, threads: &[u32], axis: Axis, top: f64) -> f64 {
    let shown = threads.get(..THREADS).unwrap_or(threads);
    let tracks: Vec<Track> = shown.iter().map(|thread| track(trace, *thread, axis)).collect();
    let most = tracks.iter().flat_map(|track| &track.peaks).copied().max().unwrap_or(0).max(1);
    let batches = tracks.iter().flat_map(|track| &track.submissions).copied().max().unwrap_or(0);
    let mut y = top + 18.0;
    let heading = format!(
        "The whole recording: {}. Operations in flight: mean, and maximum as a line.",
        words(axis.length())
    );
    canvas.text((8.0, y), "head", Anchor::Start, &heading);
    y += 6.0;
    let first = y;
    let height = 20.0 + AREA + 4.0 + IDLE_BAND + if batches > 0 { BARS + 4.0 } else { 0.0 };
    axis.draw(canvas, first, first + height * count(tracks.len()));
    for (thread, track) in shown.iter().zip(&tracks) {
        let name = trace.threads.get(*thread as usize).map_or("", |thread| &thread.name);
        canvas.text((LEFT, y + 14.0), "small", Anchor::Start, &shortened(name));
        draw_track(canvas, track, (y + 20.0, most, batches));
        y += height;
    }
    y += 20.0;
    if threads.len() > shown.len() {
        let text = format!("{} more threads are not drawn.", grouped((threads.len() - shown.len()) as u64));
        y += 12.0;
        canvas.text((8.0, y), "faint", Anchor::Start, &text);
    }
    y
}

fn track(trace: &Trace, thread: u32, axis: Axis) -> Track {
    let mut layers = vec![Columns::of(axis); LAYERS];
    let mut changes: Vec<(Nanos, bool)> = Vec::new();
    for span in spans(trace).filter(|span| span.thread == thread) {
        for part in span.parts.iter().flatten() {
            if let Some(columns) = layers.get_mut(layer(span.route, part.doing)) {
                columns.add(part.began, part.ended);
            }
        }
        changes.extend([(span.began, true), (span.ended, false)]);
    }
    let mut idle = Columns::of(axis);
    for rest in trace.rests.iter().filter(|rest| rest.thread == thread) {
        idle.add(rest.began, rest.ended);
    }
    let mut submissions = vec![0; COLUMNS];
    for batch in trace.submissions.iter().filter(|batch| batch.thread == thread) {
        submissions[idle.place(batch.at).0] += 1;
    }
    changes.sort_unstable();
    let mut peaks = vec![0; COLUMNS];
    let (mut now, mut before) = (0_u64, 0);
    for (at, begins) in changes {
        let (column, _) = idle.place(at);
        // The depth at the end of a column continues into the next ones.
        for peak in peaks.get_mut(before + 1..=column).unwrap_or_default() {
            *peak = now;
        }
        before = before.max(column);
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        peaks[column] = peaks[column].max(now);
    }
    Track { layers, idle, submissions, peaks }
}

/// Draws a thread with the common maximum of operations in flight and of submissions a column.
fn draw_track(canvas: &mut Canvas, track: &Track, (top, most, batches): (f64, u64, u64)) {
    let x = |column: usize| LEFT + (RIGHT - LEFT) * count(column) / count(COLUMNS);
    let width = (RIGHT - LEFT) / count(COLUMNS);
    let bottom = top + AREA;
    let y = |figure: f64| bottom - AREA * figure / real(most);
    canvas.text((LEFT - 5.0, top + 8.0), "faint small", Anchor::End, &grouped(most));
    canvas.text((LEFT - 5.0, bottom), "faint small", Anchor::End, "0");
    canvas.path("rule", [(LEFT, bottom), (RIGHT, bottom)]);
    let mut below = vec![0.0; COLUMNS];
    for (index, columns) in track.layers.iter().enumerate() {
        let averages = columns.averages();
        if averages.iter().all(|average| *average <= 0.0) {
            continue;
        }
        let above: Vec<f64> = below.iter().zip(&averages).map(|(below, more)| below + more).collect();
        let edge = |figures: &[f64]| steps(figures, x, y);
        let shape = edge(&above).into_iter().chain(edge(&below).into_iter().rev());
        canvas.path(&layer_class(index), shape);
        below = above;
    }
    let peaks: Vec<f64> = track.peaks.iter().map(|peak| real(*peak)).collect();
    canvas.path("depth", steps(&peaks, x, y));
    for (column, share) in track.idle.averages().iter().enumerate().filter(|(_, share)| **share > 0.02) {
        let height = IDLE_BAND * share.min(1.0);
        canvas.rect("idle", (x(column), bottom + 4.0 + IDLE_BAND - height), (width, height));
    }
    if batches == 0 {
        return;
    }
    let bottom = bottom + 4.0 + IDLE_BAND + 4.0 + BARS;
    let total = grouped(track.submissions.iter().sum());
    let column = words(track.idle.axis.length() / COLUMNS as u64);
    let text = format!("{total} submissions, at most {} in {column}", grouped(batches));
    canvas.text((RIGHT, top - 6.0), "faint small", Anchor::End, &text);
    for (column, batch) in track.submissions.iter().enumerate().filter(|(_, batch)| **batch > 0) {
        let height = (BARS * real(*batch) / real(batches)).max(0.5);
        canvas.rect("submission", (x(column), bottom - height), (width, height));
    }
}

/// Corners of a step function; equal neighbours are merged.
pub(super) fn steps(figures: &[f64], x: impl Fn(usize) -> f64, y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (column, figure) in figures.iter().enumerate() {
        let height = y(*figure);
        match points.as_mut_slice() {
            // Differences below a tenth of a pixel are invisible.
            [.., before, last] if (last.1 - height).abs() < 0.05 && (before.1 - last.1).abs() < 0.05 => {
                last.0 = x(column + 1);
            }
            _ => points.extend([(x(column), height), (x(column + 1), height)]),
        }
    }
    points
}

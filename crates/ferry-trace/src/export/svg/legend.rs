//! Legend of the colours and marks that occur in the picture.

use ferry_io::Route;

use super::canvas::{Anchor, Canvas, WIDTH, count};
use super::closer::mark;
use super::spans::{class, spans};
use crate::export::parts::Doing;
use crate::model::{IDLE, SubmitReason, Trace};

/// Distance between the texts of two entries, including the mark of the second.
const BESIDE: f64 = 36.0;
const LINE: f64 = 18.0;

/// Layout of the entries in lines.
struct Legend<'c> {
    canvas: &'c mut Canvas,
    x: f64,
    y: f64,
}

impl Legend<'_> {
    /// Returns the positions of an entry's mark and text.
    fn entry(&mut self, text: &str) -> (f64, f64) {
        let width = count(text.chars().count()) * 6.3 + BESIDE;
        if self.x + width > WIDTH - 8.0 {
            (self.x, self.y) = (8.0, self.y + LINE);
        }
        let (x, y) = (self.x, self.y);
        self.x += width;
        self.canvas.text((x + 21.0, y), "faint", Anchor::Start, text);
        (x, y)
    }

    fn colour(&mut self, class: &str, text: &str) {
        let (x, y) = self.entry(text);
        self.canvas.rect(class, (x, y - 9.0), (16.0, 10.0));
    }

    fn line(&mut self, class: &str, text: &str) {
        let (x, y) = self.entry(text);
        self.canvas.path(class, [(x + 8.0, y - 11.0), (x + 8.0, y + 3.0)]);
    }
}

pub(super) fn draw(canvas: &mut Canvas, trace: &Trace, top: f64) -> f64 {
    let mut legend = Legend { canvas, x: 8.0, y: top + 10.0 };
    for route in Route::ALL {
        if !spans(trace).any(|span| span.route == route) {
            continue;
        }
        let (doing, what, waits) = match route {
            Route::Ring => (Doing::InRing, "in the ring", Some("waits to be submitted or taken")),
            Route::Inline => (Doing::Runs, "inline: runs", None),
            Route::Pool => (Doing::Runs, "pool: runs", Some("waits for a thread or to be taken")),
            Route::Offload => (Doing::Runs, "offload: runs", None),
        };
        legend.colour(&format!("{}{}", route.name(), class(doing)), what);
        if let Some(waits) = waits {
            legend.colour(&format!("{}{}", route.name(), class(Doing::Queued)), waits);
        }
    }
    if !trace.rests.is_empty() {
        legend.colour("idle", IDLE);
    }
    let whys = [
        (SubmitReason::Idle, "submitted because nothing could run"),
        (SubmitReason::Full, "submitted because the ring was full"),
        (SubmitReason::Forced, "submitted early"),
    ];
    for (why, text) in whys {
        if trace.submissions.iter().any(|batch| batch.why == why) {
            legend.line(mark(why), text);
        }
    }
    legend.y + 6.0
}

//! Number of overlapping spans over time.

use std::ops::Range;

use super::spans::{Span, neighbour};
use crate::model::Nanos;

/// Maximum number of spans examined before the end of a piece of time.
pub(super) const LOOKED_AT: usize = 4_096;

/// Spans that may overlap.
#[derive(Debug)]
pub(super) struct Depth {
    pub(super) peak: u64,
    spans: Vec<Span>,
    /// Latest end of each span and all before it.
    latest: Vec<Nanos>,
    /// Time of each change, the number from then on, and its integral until then.
    steps: Vec<(Nanos, u64, Nanos)>,
}

impl Depth {
    pub(super) fn new(mut spans: Vec<Span>) -> Self {
        spans.sort_unstable_by_key(|span| (span.began, span.ended));
        let latest = spans.iter().scan(0, |latest, span| {
            *latest = span.ended.max(*latest);
            Some(*latest)
        });
        let latest = latest.collect();
        let steps = steps(&spans);
        let peak = steps.iter().map(|(_, level, _)| *level).max().unwrap_or(0);
        Self { peak, spans, latest, steps }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Total duration of all spans within a piece.
    pub(super) fn area(&self, piece: &Range<Nanos>) -> Nanos {
        self.until(piece.end).saturating_sub(self.until(piece.start))
    }

    fn until(&self, at: Nanos) -> Nanos {
        let index = self.steps.partition_point(|(since, ..)| *since <= at);
        let last = index.checked_sub(1).and_then(|last| self.steps.get(last));
        last.map_or(0, |&(since, level, area)| area.saturating_add(level.saturating_mul(at - since)))
    }

    /// Spans that begin in a piece.
    pub(super) fn begun(&self, piece: &Range<Nanos>) -> Range<usize> {
        let first = self.spans.partition_point(|span| span.began < piece.start);
        first..self.spans.partition_point(|span| span.began < piece.end).max(first)
    }

    /// Items that reach into a piece, by beginning, descending; only the last [`LOOKED_AT`] that began before its end
    /// are examined.
    pub(super) fn items(&self, piece: &Range<Nanos>, most: usize) -> impl Iterator<Item = usize> {
        let end = self.spans.partition_point(|span| span.began < piece.end);
        let start = piece.start;
        let back = self.spans[..end].iter().zip(&self.latest).rev().take(LOOKED_AT);
        let reaching = back.take_while(move |(_, latest)| **latest >= start);
        reaching.filter(move |(span, _)| span.ended >= start).take(most).map(|(span, _)| span.item)
    }

    pub(super) fn neighbour(&self, at: Nanos, is_next: bool) -> Option<Nanos> {
        neighbour(&self.spans, |span| span.began, at, is_next)
    }
}

fn steps(spans: &[Span]) -> Vec<(Nanos, u64, Nanos)> {
    let lasting = spans.iter().filter(|span| span.began < span.ended);
    let mut changes: Vec<(Nanos, bool)> =
        lasting.flat_map(|span| [(span.began, true), (span.ended, false)]).collect();
    // Ends come first, because spans that only touch do not overlap.
    changes.sort_unstable();
    let mut steps: Vec<(Nanos, u64, Nanos)> = Vec::with_capacity(changes.len());
    let (mut level, mut area, mut since) = (0_u64, 0_u64, 0);
    for (at, begins) in changes {
        area = area.saturating_add(level.saturating_mul(at - since));
        level = if begins { level + 1 } else { level.saturating_sub(1) };
        since = at;
        match steps.last_mut() {
            Some(last) if last.0 == at => last.1 = level,
            Some(_) | None => steps.push((at, level, area)),
        }
    }
    steps
}

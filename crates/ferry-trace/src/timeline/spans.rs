//! Consecutive spans of a thread, and how much of any piece of time they cover.

use std::ops::Range;

use crate::model::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) began: Nanos,
    pub(super) ended: Nanos,
    pub(super) item: usize,
}

/// Spans in order of time without overlaps.
#[derive(Debug)]
pub(super) struct Spans {
    spans: Vec<Span>,
    /// Total duration before each span, and of all spans.
    sums: Vec<Nanos>,
}

impl Spans {
    /// Sorts spans. A span that begins before the previous one ends is shortened.
    pub(super) fn new(mut spans: Vec<Span>) -> Self {
        spans.sort_unstable_by_key(|span| (span.began, span.ended));
        let mut sums = Vec::with_capacity(spans.len() + 1);
        let (mut sum, mut last) = (0, 0);
        sums.push(0);
        for span in &mut spans {
            span.began = span.began.max(last);
            span.ended = span.ended.max(span.began);
            last = span.ended;
            sum += span.ended - span.began;
            sums.push(sum);
        }
        Self { spans, sums }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Spans that touch a piece.
    pub(super) fn within(&self, piece: &Range<Nanos>) -> Range<usize> {
        // A span without duration is at its beginning.
        let is_before =
            |span: &Span| span.ended < piece.start || span.ended == piece.start && span.began < span.ended;
        let first = self.spans.partition_point(is_before);
        let last = self.spans.partition_point(|span| span.began < piece.end);
        first..last.max(first)
    }

    /// Total duration within a piece.
    pub(super) fn covered(&self, piece: &Range<Nanos>) -> Nanos {
        self.until(piece.end) - self.until(piece.start)
    }

    fn until(&self, at: Nanos) -> Nanos {
        let index = self.spans.partition_point(|span| span.began < at);
        let Some(last) = index.checked_sub(1).and_then(|last| self.spans.get(last)) else { return 0 };
        self.sums[index] - last.ended.saturating_sub(at)
    }

    pub(super) fn items(&self, piece: &Range<Nanos>) -> impl Iterator<Item = usize> {
        self.spans[self.within(piece)].iter().map(|span| span.item)
    }

    pub(super) fn neighbour(&self, at: Nanos, is_next: bool) -> Option<Nanos> {
        neighbour(&self.spans, |span| span.began, at, is_next)
    }
}

/// First time after `at` in a sorted list, or last one before it.
pub(super) fn neighbour<T>(
    all: &[T],
    began: impl Fn(&T) -> Nanos,
    at: Nanos,
    is_next: bool,
) -> Option<Nanos> {
    let found = if is_next {
        all.get(all.partition_point(|one| began(one) <= at))
    } else {
        all.partition_point(|one| began(one) < at).checked_sub(1).and_then(|index| all.get(index))
    };
    found.map(began)
}

//! Assignment of intervals to as few rows as possible, without overlaps.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::Nanos;

/// Rows and the times until which they are occupied.
#[derive(Debug, Default)]
pub(super) struct Rows {
    taken: BinaryHeap<Reverse<(Nanos, usize)>>,
    free: BinaryHeap<Reverse<usize>>,
    count: usize,
}

impl Rows {
    /// Returns the first row that is free from `began` on, and occupies it until `ended`. Calls must be in order of
    /// time.
    pub(super) fn take(&mut self, began: Nanos, ended: Nanos) -> usize {
        while let Some(Reverse((until, row))) = self.taken.peek().copied()
            && until <= began
        {
            self.taken.pop();
            self.free.push(Reverse(row));
        }
        let row = self.free.pop().map_or(self.count, |Reverse(row)| row);
        self.count = self.count.max(row + 1);
        self.taken.push(Reverse((ended, row)));
        row
    }
}

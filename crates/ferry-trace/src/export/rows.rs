//! Which row of a timeline each thing stands in, so that no two of a row overlap, and there are as few as possible.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::Nanos;

/// Rows that are taken and given back as time goes on.
#[derive(Debug, Default)]
pub(super) struct Rows {
    taken: BinaryHeap<Reverse<(Nanos, usize)>>,
    free: BinaryHeap<Reverse<usize>>,
    count: usize,
}

impl Rows {
    /// The first row that is free from `began` on, which is then taken until `ended`. To be asked in order of time.
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

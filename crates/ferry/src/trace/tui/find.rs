//! Search by name: among operations and their fibers, or among requests if there are no operations.

use ferry_trace::timeline::{Class, Item, extent};

use super::view::View;

impl View<'_> {
    /// Jumps to the next or previous match, and wraps around. With `may_be_here`, the item at the cursor can
    /// match.
    pub(super) fn find(&mut self, is_next: bool, may_be_here: bool) {
        if self.search.is_empty() {
            self.message = "no search yet: press /".to_owned();
            return;
        }
        let count = match self.trace.operations.len() {
            0 => self.trace.requests.len(),
            count => count,
        };
        let from = self.place();
        let skipped = usize::from(!may_be_here);
        let found = if is_next {
            let after = (from + skipped..count).chain(0..(from + skipped).min(count));
            after.into_iter().find(|&index| self.is_found(index))
        } else {
            let before = (0..from.min(count)).rev().chain((from.min(count)..count).rev());
            before.into_iter().find(|&index| self.is_found(index))
        };
        match found {
            Some(index) => self.jump(self.item(index)),
            None => self.message = "not found".to_owned(),
        }
    }

    /// Index where the search starts: the chosen item, or the first at or after the cursor.
    fn place(&self) -> usize {
        match self.chosen {
            Some((Class::Route(_) | Class::Requests, index)) => index,
            Some((
                Class::Idle | Class::Awake | Class::SubmitReason(_) | Class::Cause(_) | Class::Device,
                _,
            ))
            | None => {
                if self.trace.operations.is_empty() {
                    self.trace.requests.partition_point(|request| request.submitted < self.cursor)
                } else {
                    self.trace.operations.partition_point(|operation| operation.asked < self.cursor)
                }
            }
        }
    }

    fn item(&self, index: usize) -> Item {
        let operation = self.trace.operations.get(index);
        operation.map_or((Class::Requests, index), |operation| (Class::Route(operation.route), index))
    }

    fn is_found(&self, index: usize) -> bool {
        let Some(operation) = self.trace.operations.get(index) else {
            let request = self.trace.requests.get(index);
            return request.is_some_and(|request| request.opcode.contains(&self.search));
        };
        let fiber = operation.fiber.and_then(|fiber| self.trace.fibers.get(usize::try_from(fiber).ok()?));
        operation.name.contains(&self.search) || fiber.is_some_and(|fiber| fiber.name.contains(&self.search))
    }

    /// Item to describe: the chosen one, or the longest in the cell.
    pub(super) fn under_cursor(&self) -> Option<Item> {
        /// Maximum number of items of a cell to compare.
        const COMPARED: usize = 256;
        let row = self.timeline.rows.get(self.row)?;
        let here = row.items(&self.cell(self.cell_of(self.cursor)), COMPARED);
        let length = |item: &Item| extent(self.trace, *item).map_or(0, |(began, ended)| ended - began);
        self.chosen.or_else(|| here.into_iter().max_by_key(length))
    }
}

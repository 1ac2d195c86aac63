//! A line of those who wait for something of which there is not enough: blocks, permits.
//!
//! Who comes back to the line keeps the place that it had, and who gives up while it is woken passes its turn on: else
//! something could be free while somebody sleeps (guards: `a_waiter_that_gives_up_passes_its_turn_on`,
//! `a_permit_that_is_not_taken_goes_to_the_next`).

use std::collections::VecDeque;
use std::task::Waker;

/// Who waits, oldest first.
#[derive(Default)]
pub(crate) struct Line {
    /// The number is the waiting future's own.
    waiting: VecDeque<(u64, Waker)>,
    numbers: u64,
}

impl Line {
    /// Has a future wait, at its place if it waits already; gives it its number the first time.
    pub(crate) fn join(&mut self, number: &mut Option<u64>, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.numbers += 1;
            self.numbers
        });
        match self.waiting.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.waiting.push_back((number, waker.clone())),
        }
    }

    /// The one whose turn it is.
    pub(crate) fn next(&mut self) -> Option<Waker> {
        self.waiting.pop_front().map(|(_, waker)| waker)
    }

    /// A future that has waited gives up or has what it wanted; who is to be woken in its place if `is_free` says that there
    /// is something.
    pub(crate) fn leave(&mut self, number: u64, is_free: bool) -> Option<Waker> {
        if let Some(at) = self.waiting.iter().position(|(known, _)| *known == number) {
            self.waiting.remove(at);
            return None;
        }
        // It was woken; if it did not take what was there, or there is more, somebody else may.
        if is_free { self.next() } else { None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

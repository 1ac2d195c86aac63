//! Futures in line for something scarce: blocks, permits, or room in the ring.
//!
//! A future that polls again keeps its place. One that gives up after it was woken passes its turn on; otherwise
//! something could be free while a fiber sleeps (guards: `a_waiter_that_gives_up_passes_its_turn_on`,
//! `a_permit_that_is_not_taken_goes_to_the_next`).

use std::collections::BTreeMap;
use std::task::Waker;

/// Waiting futures by number, oldest first. Each has one place, so there are never more places than futures.
#[derive(Default)]
pub(crate) struct Line {
    waiting: BTreeMap<u64, Waker>,
    numbers: u64,
}

impl Line {
    /// Adds a future and gives it a number, or replaces its waker at its old place. Returns the number.
    pub(crate) fn join(&mut self, number: &mut Option<u64>, waker: &Waker) -> u64 {
        let number = *number.get_or_insert_with(|| {
            self.numbers += 1;
            self.numbers
        });
        self.waiting.insert(number, waker.clone());
        number
    }

    pub(crate) fn next(&mut self) -> Option<Waker> {
        self.waiting.pop_first().map(|(_, waker)| waker)
    }

    /// Removes a future that gives up or got what it wanted. If something is free, returns the waker of the next.
    pub(crate) fn leave(&mut self, number: u64, is_free: bool) -> Option<Waker> {
        if self.waiting.remove(&number).is_some() {
            return None;
        }
        // It was woken, and may have left what was free to others.
        if is_free { self.next() } else { None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

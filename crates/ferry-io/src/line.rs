//! Futures in line for something scarce: blocks or permits.
//!
//! A future that polls again keeps its place. One that gives up after it was woken passes its turn on; otherwise
//! something could be free while a fiber sleeps (guards: `a_waiter_that_gives_up_passes_its_turn_on`,
//! `a_permit_that_is_not_taken_goes_to_the_next`).

use std::collections::VecDeque;
use std::task::Waker;

/// Waiting futures, oldest first.
#[derive(Default)]
pub(crate) struct Line {
    waiting: VecDeque<(u64, Waker)>,
    numbers: u64,
}

impl Line {
    /// Adds a future and gives it a number, or replaces its waker at its old place.
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

    pub(crate) fn next(&mut self) -> Option<Waker> {
        self.waiting.pop_front().map(|(_, waker)| waker)
    }

    /// Removes a future that gives up or got what it wanted. If something is free, returns the waker of the next.
    pub(crate) fn leave(&mut self, number: u64, is_free: bool) -> Option<Waker> {
        if let Some(at) = self.waiting.iter().position(|(known, _)| *known == number) {
            self.waiting.remove(at);
            return None;
        }
        // It was woken, and may have left what was free to others.
        if is_free { self.next() } else { None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

//! Sorted listings of both sides, merged name by name.

use super::difference::Side;
use crate::open::Names;
use std::cmp::Ordering;

/// Position in both listings.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Merged {
    source: usize,
    target: usize,
}

/// The next name.
pub(super) enum Next<'a> {
    /// Both sides have it; its index in the source's listing.
    InBoth(usize),
    /// Only this side has it.
    InOne(Side, &'a [u8]),
}

impl Merged {
    /// Returns the next name of two listings, the same ones in each call.
    pub(super) fn next<'a>(&mut self, source: &'a Names, target: &'a Names) -> Option<Next<'a>> {
        let (order, next) = match (source.get(self.source), target.get(self.target)) {
            (None, None) => return None,
            (Some(name), None) => (Ordering::Less, Next::InOne(Side::Source, name)),
            (None, Some(name)) => (Ordering::Greater, Next::InOne(Side::Target, name)),
            (Some(ours), Some(theirs)) => match ours.cmp(theirs) {
                Ordering::Equal => (Ordering::Equal, Next::InBoth(self.source)),
                Ordering::Less => (Ordering::Less, Next::InOne(Side::Source, ours)),
                Ordering::Greater => (Ordering::Greater, Next::InOne(Side::Target, theirs)),
            },
        };
        self.source += usize::from(order.is_le());
        self.target += usize::from(order.is_ge());
        Some(next)
    }

    /// Returns the number of names of the longer rest.
    pub(super) fn left(&self, source: &Names, target: &Names) -> usize {
        (source.count() - self.source).max(target.count() - self.target)
    }
}

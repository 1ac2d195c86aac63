//! Two listings, both in the order of their names, merged into one row for each name.

use std::cmp::Ordering;

use ferry_copy::Mark;
use ferry_io::{Entry, FileKind, Name};

#[cfg(test)]
mod tests;

/// One name of the source, of the target, or of both.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: Name,
    pub(crate) source: Option<Side>,
    pub(crate) target: Option<Side>,
    /// Inode numbers of files with this name that a killed run has overwritten in part.
    pub(crate) unfinished: Vec<u64>,
}

/// One side's entry, as it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    /// Kind of the entry, if the listing has it.
    pub(crate) kind: Option<FileKind>,
    pub(crate) inode: u64,
}

/// A merge of two listings.
pub(crate) struct Merge<S, T> {
    source: Peeked<S>,
    target: Peeked<T>,
    /// Marks of the target's files.
    marks: Vec<Mark>,
}

/// A listing and its next entry.
struct Peeked<L> {
    listing: L,
    next: Option<Entry>,
}

/// A listing in the order of names.
pub(crate) trait InOrder {
    type Error;

    fn next_entry(&mut self) -> Result<Option<Entry>, Self::Error>;
}

impl<L: InOrder> Peeked<L> {
    fn new(mut listing: L) -> Result<Self, L::Error> {
        let next = listing.next_entry()?;
        Ok(Self { listing, next })
    }

    /// Returns the next entry, and reads the one behind it. A name that the filesystem lists twice counts once.
    fn take(&mut self) -> Result<Option<Entry>, L::Error> {
        let Some(taken) = self.next.take() else { return Ok(None) };
        self.next = self.listing.next_entry()?;
        while self.next.as_ref().is_some_and(|next| next.name.as_bytes() == taken.name.as_bytes()) {
            self.next = self.listing.next_entry()?;
        }
        Ok(Some(taken))
    }
}

impl<E, S: InOrder<Error = E>, T: InOrder<Error = E>> Merge<S, T> {
    pub(crate) fn new(source: S, target: T) -> Result<Self, E> {
        Ok(Self { source: Peeked::new(source)?, target: Peeked::new(target)?, marks: Vec::new() })
    }

    /// Returns the merge whose rows are marked.
    pub(crate) fn marked(self, marks: Vec<Mark>) -> Self {
        Self { marks, ..self }
    }

    /// Returns the next name.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, E> {
        let order = match (&self.source.next, &self.target.next) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(source), Some(target)) => source.name.as_bytes().cmp(target.name.as_bytes()),
        };
        let source = if order.is_le() { self.source.take()? } else { None };
        let target = if order.is_ge() { self.target.take()? } else { None };
        let side = |entry: &Entry| Side { kind: entry.kind, inode: entry.inode };
        let (source_side, target_side) = (source.as_ref().map(side), target.as_ref().map(side));
        let name = source.or(target).map(|entry| entry.name);
        Ok(name.map(|name| {
            let unfinished = Mark::all_of(&self.marks, &name).map(|mark| mark.inode).collect();
            Row { name, source: source_side, target: target_side, unfinished }
        }))
    }
}

//! Pieces of work that no rank holds, in the order in which they are granted.
//!
//! Ends of folders and files and links come first: they free memory. Folders are taken newest first, so that the
//! frontier stays as small as in a walk depth first. Ranges of large files take every other turn, so that neither the
//! tree nor the largest file is left for the end.

use std::collections::{HashSet, VecDeque};

use crate::message::Key;

#[derive(Debug, Default)]
pub(super) struct Frontier {
    ends: VecDeque<Key>,
    folders: Vec<Key>,
    ranges: VecDeque<Key>,
    turn: bool,
    /// While records are replayed: all pieces, which later records may close.
    replayed: Option<HashSet<Key>>,
}

impl Frontier {
    /// Begins to note pieces without an order.
    pub(super) fn replay(&mut self) {
        if self.replayed.is_none() {
            let all = self.ends.drain(..).chain(self.folders.drain(..)).chain(self.ranges.drain(..));
            self.replayed = Some(all.collect());
        }
    }

    /// Orders what replaying has left.
    pub(super) fn begin(&mut self) {
        let mut keys: Vec<Key> = self.replayed.take().into_iter().flatten().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(|key| self.open(key));
    }

    /// Adds a piece.
    pub(super) fn open(&mut self, key: Key) {
        if let Some(replayed) = &mut self.replayed {
            replayed.insert(key);
            return;
        }
        match key {
            Key::Folder(_) | Key::Files(_) | Key::Owner(_) => self.folders.push(key),
            Key::Range(..) => self.ranges.push_back(key),
            Key::Close(_) | Key::Discard(_) | Key::Link(_) | Key::Finish(_) => self.ends.push_back(key),
        }
    }

    /// Removes a piece that a replayed record answers.
    pub(super) fn close(&mut self, key: Key) {
        if let Some(replayed) = &mut self.replayed {
            replayed.remove(&key);
        }
    }

    /// Takes the next piece.
    pub(super) fn take(&mut self) -> Option<Key> {
        if let Some(end) = self.ends.pop_front() {
            return Some(end);
        }
        self.turn = !self.turn;
        match self.turn {
            true => self.ranges.pop_front().or_else(|| self.folders.pop()),
            false => self.folders.pop().or_else(|| self.ranges.pop_front()),
        }
    }

    /// Returns true while records are replayed.
    pub(super) fn is_replayed(&self) -> bool {
        self.replayed.is_some()
    }

    /// Removes the ranges of a file that has ended.
    pub(super) fn drop_ranges(&mut self, file: u64) {
        self.ranges.retain(|key| !matches!(key, Key::Range(of, _) if *of == file));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len() + self.folders.len() + self.ranges.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

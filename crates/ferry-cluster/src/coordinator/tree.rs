//! Folders that are not finished: their parents, their names, and what is pending in them.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, HashSet};

use crate::message::State;
use crate::text::Text;

/// Number of the root.
pub(super) const ROOT: u64 = 0;

#[derive(Debug)]
struct Node {
    parent: u64,
    name: Text,
    state: State,
    /// Folders, batches, large files and names in it that are not done.
    pending: u64,
    /// Set if an interrupted job has listed a part of it.
    again: bool,
    /// Set if this job has made it.
    is_new: bool,
    /// While its listing goes on: names of folders that were reported. Kept only of what is replayed.
    reported: Option<HashSet<Text>>,
}

/// Result of adding a folder.
pub(super) enum Added {
    /// Its number.
    New(u64),
    /// An interrupted job has reported it.
    Known,
}

#[derive(Debug)]
pub(super) struct Tree {
    nodes: HashMap<u64, Node>,
    next: u64,
    /// Bytes of names.
    names: usize,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node {
            parent: ROOT,
            name: Text::default(),
            state: State::Unlisted,
            pending: 0,
            again: false,
            is_new: false,
            reported: None,
        };
        Self { nodes: HashMap::from([(ROOT, root)]), next: ROOT + 1, names: 0 }
    }

    /// Adds a folder. `is_replayed` is set while records are replayed.
    pub(super) fn add(&mut self, parent: u64, name: &Text, state: State, is_replayed: bool) -> Option<Added> {
        let above = self.nodes.get_mut(&parent)?;
        if above.again && above.reported.as_ref().is_some_and(|reported| reported.contains(name)) {
            return Some(Added::Known);
        }
        if is_replayed && above.state != State::Listed {
            above.reported.get_or_insert_default().insert(name.clone());
        }
        above.pending += 1;
        let number = self.next;
        self.next += 1;
        self.names += name.as_bytes().len();
        let name = name.clone();
        let node = Node { parent, name, state, pending: 0, again: false, is_new: false, reported: None };
        self.nodes.insert(number, node);
        Some(Added::New(number))
    }

    /// Sets a folder's state. Returns true if nothing is left in it but its attributes.
    pub(super) fn set(&mut self, number: u64, state: State) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else { return false };
        node.state = state;
        if state == State::Listed {
            node.reported = None;
        }
        state == State::Listed && node.pending == 0
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.nodes.contains_key(&number)
    }

    pub(super) fn is_listing(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.state == State::Listing)
    }

    /// Returns true if an interrupted job has listed a part of a folder, also after the rest was listed.
    pub(super) fn is_listed_again(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.again)
    }

    pub(super) fn is_listed(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.state == State::Listed)
    }

    /// Returns true if something in a folder is not done.
    pub(super) fn has_pending(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.pending > 0)
    }

    /// Notes that this job has made a folder.
    pub(super) fn note_made(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.is_new = true;
        }
    }

    pub(super) fn is_new(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.is_new)
    }

    /// Notes one more pending thing in a folder.
    pub(super) fn begin_one(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.pending += 1;
        }
    }

    /// Notes that one of them is done. Returns true if nothing is left in the folder but its attributes.
    pub(super) fn end_one(&mut self, number: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else { return false };
        node.pending = node.pending.saturating_sub(1);
        node.state == State::Listed && node.pending == 0
    }

    /// Removes a finished folder. Returns its parent, if that has nothing left but its attributes.
    pub(super) fn remove(&mut self, number: u64) -> Option<u64> {
        let Entry::Occupied(entry) = self.nodes.entry(number) else { return None };
        let node = entry.remove();
        self.names -= node.name.as_bytes().len();
        (number != ROOT && self.end_one(node.parent)).then_some(node.parent)
    }

    /// Has folders listed again whose listing was interrupted. Returns them.
    pub(super) fn relist(&mut self) -> BTreeSet<u64> {
        let mut relisted = BTreeSet::new();
        for (&number, node) in &mut self.nodes {
            if node.state == State::Listing {
                node.state = State::Unlisted;
                node.again = true;
                relisted.insert(number);
            }
        }
        relisted
    }

    /// Returns a folder's path.
    pub(super) fn path(&self, number: u64) -> Text {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT
            && let Some(node) = self.nodes.get(&at)
        {
            names.push(&node.name);
            at = node.parent;
        }
        names.into_iter().rev().fold(Text::default(), |path, name| path.join(name))
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Estimated size in memory.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.len() * (size_of::<Node>() + 24) + self.names
    }
}

//! Files with several names: the first name found is copied by the rank that gets it, and the others become links.
//!
//! A file is forgotten once all its names are done. One with names outside the tree stays until the end: 120 bytes.

use std::collections::HashMap;

use crate::message::NewLinked;
use crate::text::Text;

#[derive(Debug)]
struct Linked {
    node: u64,
    name: Text,
    inode: (u64, u64),
}

#[derive(Debug)]
enum Copy {
    /// Its first name is being copied. The others wait.
    Copying { waiting: Vec<u64> },
    /// Folder and name of the copy.
    Copied(Text, Text),
}

#[derive(Debug)]
struct Inode {
    copy: Copy,
    /// Names found.
    found: u64,
    /// Names that are not done.
    pending: u64,
    /// Names that the file has.
    links: u64,
}

/// Next step of a name.
pub(super) enum Step {
    /// Copy it.
    Own(u64),
    /// Link it to the copy.
    Link(u64),
    /// Wait until another name is copied.
    Wait,
    /// An interrupted job has found it.
    Known,
}

#[derive(Debug, Default)]
pub(super) struct Links {
    names: HashMap<u64, Linked>,
    inodes: HashMap<(u64, u64), Inode>,
    next: u64,
}

impl Links {
    /// Adds a name.
    pub(super) fn add(&mut self, node: u64, linked: &NewLinked, may_be_known: bool) -> Step {
        let is_it = |known: &Linked| known.node == node && known.name == linked.name;
        if may_be_known && self.names.values().any(is_it) {
            return Step::Known;
        }
        let id = self.next;
        self.next += 1;
        let inode = linked.inode;
        self.names.insert(id, Linked { node, name: linked.name.clone(), inode });
        let mut is_new = false;
        let file = self.inodes.entry(inode).or_insert_with(|| {
            is_new = true;
            Inode { copy: Copy::Copying { waiting: Vec::new() }, found: 0, pending: 0, links: linked.links }
        });
        // A name that is found again has been counted.
        file.found += u64::from(!may_be_known);
        file.pending += 1;
        match &mut file.copy {
            Copy::Copying { .. } if is_new => Step::Own(id),
            Copy::Copying { waiting } => {
                waiting.push(id);
                Step::Wait
            }
            Copy::Copied(..) => Step::Link(id),
        }
    }

    /// Returns the folder and the name of a name.
    pub(super) fn name(&self, id: u64) -> Option<(u64, &Text)> {
        self.names.get(&id).map(|linked| (linked.node, &linked.name))
    }

    /// Returns the copy that a name is to be linked to.
    pub(super) fn copy(&self, id: u64) -> Option<(&Text, &Text)> {
        match &self.inodes.get(&self.names.get(&id)?.inode)?.copy {
            Copy::Copied(folder, name) => Some((folder, name)),
            Copy::Copying { .. } => None,
        }
    }

    /// Notes that a first name was copied. Returns its folder, and the names to be linked to it.
    pub(super) fn copied(&mut self, id: u64, folder: Text) -> Option<(u64, Vec<u64>)> {
        let Linked { node, name, inode } = self.names.remove(&id)?;
        let file = self.inodes.get_mut(&inode)?;
        let waiting = match std::mem::replace(&mut file.copy, Copy::Copied(folder, name)) {
            Copy::Copying { waiting } => waiting,
            Copy::Copied(..) => Vec::new(),
        };
        self.end_one(inode);
        Some((node, waiting))
    }

    /// Notes that a first name failed. Returns its folder, and the name that is copied instead.
    pub(super) fn failed(&mut self, id: u64) -> Option<(u64, Option<u64>)> {
        let Linked { node, inode, .. } = self.names.remove(&id)?;
        let file = self.inodes.get_mut(&inode)?;
        let next = match &mut file.copy {
            Copy::Copying { waiting } if !waiting.is_empty() => Some(waiting.remove(0)),
            Copy::Copying { .. } | Copy::Copied(..) => None,
        };
        file.pending -= 1;
        if next.is_none() {
            self.inodes.remove(&inode);
        }
        Some((node, next))
    }

    /// Notes that a further name is done. Returns its folder.
    pub(super) fn linked(&mut self, id: u64) -> Option<u64> {
        let Linked { node, inode, .. } = self.names.remove(&id)?;
        self.end_one(inode);
        Some(node)
    }

    fn end_one(&mut self, inode: (u64, u64)) {
        if let Some(file) = self.inodes.get_mut(&inode) {
            file.pending = file.pending.saturating_sub(1);
            if file.pending == 0 && file.found >= file.links {
                self.inodes.remove(&inode);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len() + self.inodes.len()
    }
}

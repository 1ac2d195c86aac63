//! Names of the same file, compared between both sides.
//!
//! Every compared name of a file with several names is added. At the end, both sides are asked for the first path
//! of each name's file, so the answer does not depend on the order in which threads added names. A file is
//! forgotten as soon as all its names were added and agree. What stays in memory are files linked across the tree,
//! out of it, or differently.

use super::difference::{Difference, Mismatch};
use crate::attributes::{Attributes, Inode};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Names added so far, by the source's inode.
#[derive(Debug, Default)]
pub(super) struct Links {
    groups: HashMap<Inode, Vec<Linked>>,
}

/// A name, and its file on both sides, at least one of which has several names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linked {
    #[serde(with = "super::difference::text")]
    path: Vec<u8>,
    source: Inode,
    target: Inode,
    /// Numbers of names of the source's file and of the target's.
    counts: (u64, u64),
}

impl Linked {
    /// Returns a name, unless neither side has several.
    pub(super) fn new(path: Vec<u8>, source: &Attributes, target: &Attributes) -> Option<Self> {
        let counts = (source.link_count, target.link_count);
        let has_several = counts.0 > 1 || counts.1 > 1;
        has_several.then_some(Self { path, source: source.inode, target: target.inode, counts })
    }

    /// Replaces the numbers of devices, which machines give as they like, by zero for the device of each root.
    pub(super) fn without_devices(mut self, source_root: u64, target_root: u64) -> Self {
        let without = |inode: &mut Inode, root| {
            if inode.device == root {
                inode.device = 0;
            }
        };
        without(&mut self.source, source_root);
        without(&mut self.target, target_root);
        self
    }
}

impl Links {
    /// Adds a name.
    pub(super) fn add(&mut self, name: Linked) {
        let Linked { source, target, counts, .. } = name;
        let group = self.groups.entry(source).or_default();
        group.push(name);
        let seen = u64::try_from(group.len()).unwrap_or(u64::MAX);
        let complete = (seen, seen) == counts;
        if complete && group.iter().all(|name| name.target == target) {
            self.groups.remove(&source);
        }
    }

    /// Takes all names out.
    pub(super) fn take(&mut self) -> Vec<Linked> {
        std::mem::take(&mut self.groups).into_values().flatten().collect()
    }

    /// Returns the differences in the order of paths.
    pub(super) fn finish(mut self) -> Vec<Difference> {
        let mut names = self.take();
        names.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let (mut sources, mut targets) = (HashMap::new(), HashMap::new());
        for (index, name) in names.iter().enumerate() {
            sources.entry(name.source).or_insert(index);
            targets.entry(name.target).or_insert(index);
        }
        let mut differences = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let (source, target) = (sources.get(&name.source), targets.get(&name.target));
            if source != target {
                let path = |first: Option<&usize>| {
                    let other = first.filter(|first| **first != index);
                    other.and_then(|first| names.get(*first)).map(|name| name.path.clone())
                };
                let mismatch = Mismatch::HardLink { source: path(source), target: path(target) };
                differences.push(Difference { path: name.path.clone(), mismatch });
            }
        }
        differences
    }
}

#[cfg(test)]
mod tests;

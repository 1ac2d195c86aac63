//! Names of the same file, compared between both sides.
//!
//! Every compared name of a file with several names is added. At the end, both sides are asked for the first path
//! of each name's file, so the answer does not depend on the order in which threads added names. A file is
//! forgotten as soon as all its names were added and agree. What stays in memory are files linked across the tree,
//! out of it, or differently.

use super::difference::{Difference, Mismatch};
use crate::attributes::{Attributes, Inode};
use std::collections::HashMap;

/// Names added so far, by the source's inode.
#[derive(Debug, Default)]
pub(super) struct Links {
    groups: HashMap<Inode, Vec<Name>>,
}

/// A name, and its file in the target.
#[derive(Debug)]
struct Name {
    path: Vec<u8>,
    target: Inode,
}

impl Links {
    /// Returns true if either entry has several names.
    pub(super) fn concerns(source: &Attributes, target: &Attributes) -> bool {
        source.link_count > 1 || target.link_count > 1
    }

    pub(super) fn add(&mut self, path: Vec<u8>, source: &Attributes, target: &Attributes) {
        let group = self.groups.entry(source.inode).or_default();
        group.push(Name { path, target: target.inode });
        let seen = u64::try_from(group.len()).unwrap_or(u64::MAX);
        let complete = seen == source.link_count && seen == target.link_count;
        if complete && group.iter().all(|name| name.target == target.inode) {
            self.groups.remove(&source.inode);
        }
    }

    /// Returns the differences in the order of paths.
    pub(super) fn finish(self) -> Vec<Difference> {
        let groups = self.groups.into_iter();
        let names = groups.flat_map(|(source, names)| names.into_iter().map(move |name| (source, name)));
        let mut names: Vec<(Inode, Name)> = names.collect();
        names.sort_unstable_by(|(_, a), (_, b)| a.path.cmp(&b.path));
        let (mut sources, mut targets) = (HashMap::new(), HashMap::new());
        for (index, (source, name)) in names.iter().enumerate() {
            sources.entry(*source).or_insert(index);
            targets.entry(name.target).or_insert(index);
        }
        let mut differences = Vec::new();
        for (index, (source, name)) in names.iter().enumerate() {
            let (source, target) = (sources.get(source), targets.get(&name.target));
            if source != target {
                let path = |first: Option<&usize>| {
                    let other = first.filter(|first| **first != index);
                    other.and_then(|first| names.get(*first)).map(|(_, name)| name.path.clone())
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

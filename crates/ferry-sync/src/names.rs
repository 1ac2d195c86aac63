//! Files with several names: the target's names are to be linked to one another as the source's are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ferry_io::Stat;

#[cfg(test)]
mod tests;

/// Device and inode number.
type Identity = (u64, u64);

fn identity(stat: &Stat) -> Identity {
    (stat.device, stat.inode)
}

/// Copies of the files with several names that the walk has met. Files with one name on both sides are not among them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    copies: HashMap<Identity, Copy>,
    /// Source of each target that stays.
    kept: HashMap<Identity, Identity>,
    /// Number of names of each target that had several when it was first met. The run itself may take other names away,
    /// and what follows must not depend on that: a plan is made without it.
    shared: HashMap<Identity, u64>,
}

/// Copy of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    /// It is made by this run.
    Made,
    /// The target with this identity stays.
    Kept(Identity),
}

impl Names {
    /// Notes that the run copies a name of a source.
    pub(crate) fn note_made(&mut self, source: &Stat) {
        if source.links > 1 {
            self.copies.entry(identity(source)).or_insert(Copy::Made);
        }
    }

    /// Notes a name of a target that the walk has met, whatever becomes of it.
    pub(crate) fn note_target(&mut self, target: &Stat) {
        if target.links > 1 {
            self.shared.entry(identity(target)).or_insert(target.links);
        }
    }

    /// Returns the number of names that a target has, or had when the walk met the first of them.
    pub(crate) fn links(&self, target: &Stat) -> u64 {
        self.shared.get(&identity(target)).copied().unwrap_or(target.links)
    }

    /// Returns true if a target has other names, or had when the walk met one of them.
    pub(crate) fn is_shared(&self, target: &Stat) -> bool {
        self.links(target) > 1
    }

    /// Returns true if another name of the source has been met, of which this target stays.
    pub(crate) fn is_kept(&self, source: &Stat, target: &Stat) -> bool {
        self.copies.get(&identity(source)) == Some(&Copy::Kept(identity(target)))
    }

    /// Returns true if a target with the right content may stay. Otherwise it is linked to names that its source is not
    /// linked to, or not to those that it is, and has to be made anew.
    pub(crate) fn may_stay(&mut self, source: &Stat, target: &Stat) -> bool {
        if source.links == 1 && !self.is_shared(target) {
            return true;
        }
        let (source_identity, target_identity) = (identity(source), identity(target));
        let stays = match self.copies.get(&source_identity) {
            Some(Copy::Made) => false,
            Some(Copy::Kept(copy)) => *copy == target_identity,
            None => match self.kept.entry(target_identity) {
                Entry::Occupied(other) => *other.get() == source_identity,
                Entry::Vacant(free) => {
                    free.insert(source_identity);
                    if source.links > 1 {
                        self.copies.insert(source_identity, Copy::Kept(target_identity));
                    }
                    true
                }
            },
        };
        if !stays {
            self.note_made(source);
        }
        stays
    }
}

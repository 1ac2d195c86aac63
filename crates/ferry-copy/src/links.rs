//! Hard links between the files copied: the first name is copied, the others are linked to its copy.
//!
//! Only files with more than one name are in the table, so its memory grows with them alone. A later name that comes
//! while the first is still being copied is left with the one that copies, which links it when it is done: nobody
//! waits. If the first fails, one of those left takes its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ferry_io::Name;

use crate::copier::{Identity, lock};
use crate::folder::Folder;

/// A name in the target's tree.
#[derive(Clone)]
pub(crate) struct Spot {
    /// Whether the source's name is a link that is followed.
    pub(crate) follow: bool,
    pub(crate) folder: Arc<Folder>,
    pub(crate) source: Name,
    pub(crate) target: Name,
}

enum State {
    Copying { later: Vec<Spot> },
    Copied { first: Spot },
}

/// What to do with a name of a file that has several.
pub(crate) enum Claim {
    /// It is in nobody's way: copy it.
    Alone,
    /// It is the first: copy it, then call [`Links::copied`] or [`Links::failed`].
    First,
    /// Its copy is there: link to it.
    Linked(Spot),
    /// Whoever copies the first will link it; its folder is pending once more until then.
    Left,
}

/// The table.
#[derive(Default)]
pub(crate) struct Links {
    files: Mutex<HashMap<Identity, State>>,
}

impl Links {
    pub(crate) fn claim(&self, file: Identity, spot: impl FnOnce() -> Spot) -> Claim {
        let mut files = lock(&self.files);
        match files.get_mut(&file) {
            None => {
                files.insert(file, State::Copying { later: Vec::new() });
                Claim::First
            }
            Some(State::Copying { later }) => {
                let spot = spot();
                spot.folder.begin();
                later.push(spot);
                Claim::Left
            }
            Some(State::Copied { first }) => Claim::Linked(first.clone()),
        }
    }

    /// The first is there; gives back who was left to be linked.
    pub(crate) fn copied(&self, file: Identity, first: Spot) -> Vec<Spot> {
        match lock(&self.files).insert(file, State::Copied { first }) {
            Some(State::Copying { later }) => later,
            Some(State::Copied { .. }) | None => Vec::new(),
        }
    }

    /// The first could not be copied; gives back who takes its place, still as the one that copies.
    pub(crate) fn failed(&self, file: Identity) -> Option<Spot> {
        let mut files = lock(&self.files);
        let next = match files.get_mut(&file) {
            Some(State::Copying { later }) => later.pop(),
            Some(State::Copied { .. }) | None => None,
        };
        if next.is_none() {
            files.remove(&file);
        }
        next
    }
}

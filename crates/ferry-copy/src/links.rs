//! The table of files that have several names: which name of each is copied first, and where its copy is.
//!
//! Only files with more than one name are in the table, so its memory grows with them alone. A later name that comes
//! while the first is still being copied is left with the one that copies, which links it when it is done: nobody
//! waits. If the first fails, one of those left takes its place.
//!
//! A device and an inode number are no identity for long: the number of a removed file is given to the next one. So a
//! source is known by its birth time, too ([`Source`]), and so is its copy ([`Copy`]), which is compared before anything
//! is linked to it: a later operand, a backup or another process may have put something else at its name. A copy that
//! others are linked to is never overwritten in place ([`Links::has_copy`]).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use ferry_io::{FileKind, Name, Stat, Time};

use crate::copier::{Identity, identity, lock};
use crate::folder::Folder;

/// The result of looking at a name before its file was claimed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Set if the source's name is a link that is followed.
    pub(crate) follow: bool,
    /// Set if nothing had the target's name: nobody has decided about anything that has it now.
    pub(crate) found_free: bool,
}

/// A name in the target's tree.
#[derive(Clone)]
pub(crate) struct Spot {
    pub(crate) look: Look,
    pub(crate) folder: Arc<Folder>,
    pub(crate) source: Name,
    pub(crate) target: Name,
}

/// A file of the source, told from one that had its number before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    file: Identity,
    /// When it was made; where the filesystem does not keep that, when it was changed last.
    since: Time,
}

impl Source {
    /// Of attributes that hold the birth time.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { file: identity(stat), since: stat.born.unwrap_or(stat.changed) }
    }

    /// Whether these attributes may be the same file's, as far as its number tells.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        self.file == identity(stat)
    }
}

/// A file of the target, told from one that has its name or its number later. Linking changes its change time, so where
/// there is no birth time only the kind is left to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    file: Identity,
    kind: FileKind,
    born: Option<Time>,
}

impl Copy {
    /// Of attributes that hold the birth time.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { file: identity(stat), kind: stat.kind, born: stat.born }
    }
}

/// The first name of a file, copied.
#[derive(Clone)]
pub(crate) struct First {
    pub(crate) folder: Arc<Folder>,
    pub(crate) target: Name,
    /// `None` if it could not be looked at: then nothing is linked to it.
    pub(crate) copy: Option<Copy>,
}

enum State {
    Copying { later: Vec<Spot> },
    Copied(First),
}

/// What to do with a name of a file that has several.
pub(crate) enum Claim {
    /// It is in nobody's way: copy it.
    Alone,
    /// It is the first of this file: copy it, then call [`Links::copied`] or [`Links::failed`].
    First(Source),
    /// The copy of this file is there: link to it.
    Linked(Source, First),
    /// Whoever copies the first will link it; its folder is pending once more until then.
    Left,
}

/// The table.
#[derive(Default)]
pub(crate) struct Links {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    files: HashMap<Source, State>,
    /// Those that later names may be linked to.
    copies: HashSet<Identity>,
}

impl Links {
    pub(crate) fn claim(&self, file: Source, spot: impl FnOnce() -> Spot) -> Claim {
        let mut table = lock(&self.table);
        match table.files.get_mut(&file) {
            None => {
                table.files.insert(file, State::Copying { later: Vec::new() });
                Claim::First(file)
            }
            Some(State::Copying { later }) => {
                let spot = spot();
                spot.folder.begin();
                later.push(spot);
                Claim::Left
            }
            Some(State::Copied(first)) => Claim::Linked(file, first.clone()),
        }
    }

    /// The first is there; gives back the names that were left to be linked.
    pub(crate) fn copied(&self, file: Source, first: First) -> Vec<Spot> {
        let mut table = lock(&self.table);
        table.copies.extend(first.copy.map(|copy| copy.file));
        match table.files.insert(file, State::Copied(first)) {
            Some(State::Copying { later }) => later,
            Some(State::Copied(_)) | None => Vec::new(),
        }
    }

    /// The first could not be copied; gives back the name that takes its place, which holds the claim from now on.
    pub(crate) fn failed(&self, file: Source) -> Option<Spot> {
        let mut table = lock(&self.table);
        let next = match table.files.get_mut(&file) {
            Some(State::Copying { later }) => later.pop(),
            Some(State::Copied(_)) | None => None,
        };
        if next.is_none() {
            table.files.remove(&file);
        }
        next
    }

    /// Nothing more can be linked to the copy of `first`: the next name that says so is the file's new first one.
    pub(crate) fn renew(&self, file: Source, first: &First, spot: impl FnOnce() -> Spot) -> Claim {
        let mut table = lock(&self.table);
        if matches!(table.files.get(&file), Some(State::Copied(known)) if known.copy == first.copy) {
            table.files.remove(&file);
        }
        drop(table);
        self.claim(file, spot)
    }

    /// Returns true if later names may be linked to a file of the target.
    pub(crate) fn has_copy(&self, file: &Stat) -> bool {
        lock(&self.table).copies.contains(&identity(file))
    }
}

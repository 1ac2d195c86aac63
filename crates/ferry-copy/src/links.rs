//! The table of files that have several names: the name that is copied first, and the identity of its copy.
//!
//! Only files with more than one name are in the table, so its memory grows with them alone. A name found while the
//! first is still being copied is left with the first name's fiber, which links it at its end: nothing blocks. If the
//! first fails, a waiting name takes its place.
//!
//! Device and inode number do not identify a file for long: a removed file's number is given to a new one. So a source
//! and its copy are also known by their birth time ([`SourceIdentity`], [`CopyIdentity`]). The copy is compared before
//! a name is linked to it, because a later operand, a backup or another process may have put another file in its place.
//! A copy that has links is never overwritten in place ([`Links::has_copy`]).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use ferry_io::{FileKind, Name, Stat, Time};

use crate::digest::{CopyHash, Known};
use crate::folder::Folder;
use crate::identity::{Identity, identity};
use crate::mutex::lock;
use crate::place::Entry;

/// Result of looking at a name before its file was claimed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameLook {
    /// Set if the source's name is a link that is followed.
    pub(crate) follow: bool,
    /// Set if the target's name was free: no decision covers a file that has taken it since.
    pub(crate) found_free: bool,
}

/// A name that waits for the first name of its file.
pub(crate) struct WaitingName {
    pub(crate) look: NameLook,
    pub(crate) folder: Arc<Folder>,
    pub(crate) source: Name,
    pub(crate) target: Name,
}

impl WaitingName {
    pub(crate) fn of(entry: Entry<'_>, look: NameLook) -> Self {
        let (folder, source, target) =
            (Arc::clone(entry.folder), entry.source.detached(), entry.target.detached());
        Self { look, folder, source, target }
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry { folder: &self.folder, source: &self.source, target: &self.target }
    }
}

/// Identity of a source file, different from that of an earlier file with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SourceIdentity {
    file: Identity,
    /// Birth time; where the filesystem does not keep it, change time.
    since: Time,
}

impl SourceIdentity {
    /// Takes attributes that hold the birth time.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { file: identity(stat), since: stat.born.unwrap_or(stat.changed) }
    }

    /// Returns true if attributes without a birth time may be the same file's.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        self.file == identity(stat)
    }
}

/// Identity of a target file, different from that of a later file with its name or number. Linking changes the change
/// time, so without a birth time only the kind is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyIdentity {
    file: Identity,
    kind: FileKind,
    born: Option<Time>,
}

impl CopyIdentity {
    /// Takes attributes that hold the birth time.
    fn of(stat: &Stat) -> Self {
        Self { file: identity(stat), kind: stat.kind, born: stat.born }
    }

    /// Returns true if attributes that hold the birth time are this file's.
    pub(crate) fn is_of(&self, stat: &Stat) -> bool {
        Self::of(stat) == *self
    }
}

/// A file of the target that was made, or left alone, as the copy of a first name.
pub(crate) struct FirstCopy {
    identity: CopyIdentity,
    /// Hash that the first name was listed with. Without a manifest it takes no room.
    known: Option<Box<Known>>,
}

impl FirstCopy {
    /// Takes attributes that hold the birth time.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { identity: CopyIdentity::of(stat), known: None }
    }

    /// Returns the copy with the hash of its bytes.
    pub(crate) fn with_hash(self, known: Option<Known>) -> Self {
        Self { known: known.map(Box::new), ..self }
    }
}

/// The copied first name of a file.
#[derive(Clone)]
pub(crate) struct First {
    pub(crate) folder: Arc<Folder>,
    pub(crate) target: Name,
    /// `None` if the copy could not be examined: nothing is linked to it then.
    pub(crate) copy: Option<CopyIdentity>,
    /// Hash of the copy; `None` without a manifest.
    pub(crate) hash: Option<Arc<CopyHash>>,
}

impl First {
    /// Returns the first name that an entry is, with its copy. With a manifest the copy's hash is kept.
    pub(crate) fn new(entry: Entry<'_>, copy: Option<FirstCopy>, has_manifest: bool) -> Self {
        let (copy, known) = copy.map(|copy| (copy.identity, copy.known)).unzip();
        let known = known.flatten().map(|known| *known);
        Self {
            folder: Arc::clone(entry.folder),
            target: entry.target.detached(),
            copy,
            hash: has_manifest.then(|| Arc::new(CopyHash::new(known))),
        }
    }

    /// Returns true if a file of the target is the copy.
    pub(crate) fn is_copy(&self, found: &Stat) -> bool {
        self.copy.is_some_and(|copy| copy.file == identity(found))
    }
}

enum State {
    Copying { later: Vec<WaitingName> },
    Copied(First),
}

/// Result of claiming a file for one of its names.
pub(crate) enum NameClaim {
    /// Its file has no other names: copy it.
    Alone,
    /// It is the first name: copy it, then call [`Links::copied`] or [`Links::failed`].
    First(SourceIdentity),
    /// The file has a copy: link to it.
    Linked(SourceIdentity, First),
    /// The first name's fiber links it; its folder is pending once more until then.
    Left,
}

#[derive(Default)]
pub(crate) struct Links {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    files: HashMap<SourceIdentity, State>,
    /// Copies that later names may be linked to.
    copies: HashSet<Identity>,
}

impl Links {
    pub(crate) fn claim(&self, file: SourceIdentity, waiting: impl FnOnce() -> WaitingName) -> NameClaim {
        let mut table = lock(&self.table);
        match table.files.get_mut(&file) {
            None => {
                table.files.insert(file, State::Copying { later: Vec::new() });
                NameClaim::First(file)
            }
            Some(State::Copying { later }) => {
                let waiting = waiting();
                waiting.folder.begin();
                later.push(waiting);
                NameClaim::Left
            }
            Some(State::Copied(first)) => NameClaim::Linked(file, first.clone()),
        }
    }

    /// Notes the copy of a first name. Returns the names that wait to be linked to it.
    pub(crate) fn copied(&self, file: SourceIdentity, first: First) -> Vec<WaitingName> {
        let mut table = lock(&self.table);
        table.copies.extend(first.copy.as_ref().map(|copy| copy.file));
        match table.files.insert(file, State::Copied(first)) {
            Some(State::Copying { later }) => later,
            Some(State::Copied(_)) | None => Vec::new(),
        }
    }

    /// Notes that a first name failed. Returns the name that takes its place and holds the claim from now on.
    pub(crate) fn failed(&self, file: SourceIdentity) -> Option<WaitingName> {
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

    /// Claims anew after the copy of `first` could not be linked to. The first name to do so becomes the file's first
    /// one.
    pub(crate) fn renew(
        &self,
        file: SourceIdentity,
        first: &First,
        waiting: impl FnOnce() -> WaitingName,
    ) -> NameClaim {
        let mut table = lock(&self.table);
        if matches!(table.files.get(&file), Some(State::Copied(known)) if known.copy == first.copy) {
            table.files.remove(&file);
        }
        drop(table);
        self.claim(file, waiting)
    }

    /// Returns true if later names may be linked to a file of the target.
    pub(crate) fn has_copy(&self, file: &Stat) -> bool {
        lock(&self.table).copies.contains(&identity(file))
    }
}

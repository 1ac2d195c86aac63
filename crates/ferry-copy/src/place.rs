//! Entries and folders by name, for copies and for failures.

use std::path::PathBuf;
use std::sync::Arc;

use ferry_io::Name;

use crate::folder::Folder;

/// One entry: the folder that it is in, and its name on both sides.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) folder: &'a Arc<Folder>,
    pub(crate) source: &'a Name,
    pub(crate) target: &'a Name,
}

impl<'a> Entry<'a> {
    /// Returns the entry of a folder that has the same name on both sides.
    pub(crate) fn of(folder: &'a Arc<Folder>, name: &'a Name) -> Self {
        Self { folder, source: name, target: name }
    }

    pub(crate) fn source_path(&self) -> PathBuf {
        self.folder.source_path().join(self.source.as_os_str())
    }

    pub(crate) fn target_path(&self) -> PathBuf {
        self.path_beside(self.target)
    }

    /// Returns the path of another name in the target's folder, spelled as the target's.
    pub(crate) fn path_beside(&self, name: &Name) -> PathBuf {
        self.folder.target_path().join(name.as_os_str())
    }

    /// Returns true if this run has made the target's folder, and so everything in it.
    pub(crate) fn is_in_new_folder(&self) -> bool {
        self.folder.facts().is_some_and(|facts| facts.is_new)
    }
}

/// Subject of a report or of attributes: an entry, or a folder itself.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Entry(Entry<'a>),
    Folder(&'a Arc<Folder>),
}

impl Subject<'_> {
    pub(crate) fn source_path(&self) -> PathBuf {
        match self {
            Self::Entry(entry) => entry.source_path(),
            Self::Folder(folder) => folder.source_path(),
        }
    }

    pub(crate) fn target_path(&self) -> PathBuf {
        match self {
            Self::Entry(entry) => entry.target_path(),
            Self::Folder(folder) => folder.target_path(),
        }
    }
}

impl<'a> From<Entry<'a>> for Subject<'a> {
    fn from(entry: Entry<'a>) -> Self {
        Self::Entry(entry)
    }
}

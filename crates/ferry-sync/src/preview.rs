//! A preview of a run, so that its work can be counted ahead: which entries take part, and which files stay as they are.
//!
//! It decides from names and from the attributes of stat(2), and does no I/O. The run compares more, for example extended
//! attributes, but those move no bytes.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use ferry_io::Time;

use crate::decide::Comparison;
use crate::grain::Grain;
use crate::list::{Cursor, List};
use crate::request::Request;
use crate::select::{Folder, FolderRules, GITIGNORE, Selector};

#[cfg(test)]
mod tests;

/// Decisions about a run's entries.
pub struct Preview {
    selector: Selector,
    comparison: Comparison,
    keeps_newer: bool,
    list: Option<Arc<List>>,
}

/// Attributes of a regular file that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Size in bytes.
    pub size: u64,
    /// Modification time.
    pub modified: Time,
}

/// Patterns of the `.gitignore` files on the way to a folder.
#[derive(Debug, Clone)]
pub struct Patterns(Rc<OfFolder>);

#[derive(Debug)]
struct OfFolder {
    path: PathBuf,
    rules: FolderRules,
    above: Option<Patterns>,
}

/// A name that alone takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Path below the roots.
    pub path: PathBuf,
    /// Set if everything beneath the folder of this path takes part, too.
    pub is_whole: bool,
}

impl Preview {
    /// Name of the files with patterns that [`Preview::patterns`] reads.
    pub const PATTERNS: &[u8] = GITIGNORE;

    /// Returns the decisions of a run; `None` if the run is refused because of a pattern.
    #[must_use]
    pub fn new(request: &Request) -> Option<Self> {
        Some(Self {
            selector: Selector::new(request.selection.clone()).ok()?,
            comparison: request.comparison,
            keeps_newer: request.keeps_newer,
            list: request.list.clone(),
        })
    }

    /// Returns true if `.gitignore` files exclude entries.
    #[must_use]
    pub fn reads_patterns(&self) -> bool {
        self.selector.reads_gitignore()
    }

    /// Returns true if folders on other filesystems are not entered.
    #[must_use]
    pub fn stays_on_filesystem(&self) -> bool {
        self.selector.stays_on_filesystem()
    }

    /// Returns the patterns for what is in a folder, from the bytes of its `.gitignore` file and from those above it.
    #[must_use]
    pub fn patterns(&self, folder: &Path, bytes: &[u8], above: Option<Patterns>) -> Option<Patterns> {
        match FolderRules::parse(bytes, folder) {
            Ok(rules) => Some(Patterns(Rc::new(OfFolder { path: folder.to_owned(), rules, above }))),
            Err(_) => above,
        }
    }

    /// Returns true if no pattern excludes a path below the roots.
    #[must_use]
    pub fn takes(&self, path: &Path, is_folder: bool, patterns: Option<&Patterns>) -> bool {
        let above = std::iter::successors(patterns, |patterns| patterns.0.above.as_ref());
        let folders = above.map(|patterns| Folder { path: &patterns.0.path, rules: &patterns.0.rules });
        self.selector.excluded(path, is_folder, folders).is_none()
    }

    /// Returns true if a file of the source takes part by its size and time.
    #[must_use]
    pub fn takes_file(&self, source: Version) -> bool {
        self.selector.by_size_or_time(source.size, source.modified).is_none()
    }

    /// Returns true if a file of the target stays without its content being read.
    #[must_use]
    pub fn stays(&self, source: Version, target: Version) -> bool {
        if self.keeps_newer && target.modified > source.modified {
            return true;
        }
        source.size == target.size
            && match self.comparison {
                Comparison::Size => true,
                Comparison::Content => false,
                Comparison::SizeAndTime => Grain::UNKNOWN.stores(source.modified, target.modified),
            }
    }

    /// Returns true if only listed names take part.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.list.is_some()
    }

    /// Passes each listed name to `take` that is not beneath a whole folder, and the folders on the way to them, until it
    /// returns false.
    ///
    /// # Errors
    /// Those of reading the list's temporary file.
    pub fn each_listed(&self, mut take: impl FnMut(Listed) -> bool) -> io::Result<()> {
        let Some(list) = self.list.clone() else { return Ok(()) };
        let mut cursor = Cursor::new(list)?;
        let mut whole: Option<PathBuf> = None;
        while let Some(mut group) = cursor.next_before(None)? {
            let folder: PathBuf = group.folder().map(|name| name.as_os_str().to_owned()).collect();
            if whole.as_ref().is_some_and(|whole| folder.starts_with(whole)) {
                continue;
            }
            while let Some(listed) = group.next()? {
                let is_whole = listed.name.is_none();
                let path = listed.name.map_or_else(|| folder.clone(), |name| folder.join(name.as_os_str()));
                if !take(Listed { path, is_whole }) {
                    return Ok(());
                }
                if is_whole {
                    whole = Some(folder);
                    break;
                }
            }
        }
        Ok(())
    }
}

//! Entries of a folder as they are listed, perhaps with their files' contents.

use crate::buffers::Block;
use crate::entry::FileKind;
use crate::loaded::{Content, Loaded};
use crate::name::Name;

/// One entry of a listing.
#[derive(Debug)]
pub struct Entry {
    /// Name of the entry.
    pub name: Name,
    /// Kind of the entry; `None` if the filesystem does not report it.
    pub kind: Option<FileKind>,
    /// Inode number in the folder. For a mount point it is that of the folder beneath.
    pub inode: u64,
    /// The file, if it was loaded with the listing ([`crate::Dir::enter`]).
    pub loaded: Option<Box<Loaded>>,
}

/// A part of a folder's entries, without `.` and `..`.
#[derive(Debug, Default)]
pub struct Entries {
    /// Entries, in the filesystem's order.
    pub entries: Vec<Entry>,
    /// Position at which the next listing starts; `None` at the folder's end.
    pub next: Option<u64>,
}

/// Small files that are loaded with a folder's first entries, if these are not in memory.
#[derive(Debug)]
pub struct LoadAhead {
    /// Memory for the contents of all of them.
    pub block: Option<Block>,
    /// Loads extended attributes, too.
    pub xattrs: bool,
    /// Leaves out files with several names.
    pub alone: bool,
}

/// Files loaded with one folder. Other folders are loaded at the same time, and further files of this one in batches.
const MOST_AHEAD: usize = 32;
/// Files that do not fit after which no further ones are tried.
const MOST_UNFIT: usize = 2;

impl LoadAhead {
    /// Loads small files among the entries, one after another. A file that can't be loaded has a request of its own
    /// later, which gets the error. `load` takes the block of a file that it loads whole.
    pub(crate) fn load(
        &mut self,
        entries: &mut [Entry],
        mut load: impl FnMut(&Name, &mut Option<Block>) -> Option<Loaded>,
    ) {
        let mut unfit = 0;
        let files = entries.iter_mut().filter(|entry| entry.kind == Some(FileKind::Regular));
        for entry in files.take(MOST_AHEAD) {
            if self.block.is_none() || unfit == MOST_UNFIT {
                return;
            }
            let loaded = load(&entry.name, &mut self.block);
            if let Some(Loaded { stat, xattrs, content: Content::Whole(block) }) = loaded {
                let (block, rest) = block.split();
                self.block = rest;
                entry.loaded = Some(Box::new(Loaded { stat, xattrs, content: Content::Whole(block) }));
            } else {
                unfit += 1;
            }
        }
    }
}

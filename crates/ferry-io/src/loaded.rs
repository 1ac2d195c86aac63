//! Results of loading small files, complete and partial.

use crate::buffers::Block;
use crate::descriptor::{Descriptor, File};
use crate::entry::{Stat, Xattr};

/// A file that was opened, and read if it is small.
#[derive(Debug)]
pub struct Loaded {
    /// Attributes, by the open descriptor.
    pub stat: Stat,
    /// Extended attributes, if requested.
    pub xattrs: Vec<Xattr>,
    /// Contents.
    pub content: Content,
}

/// Location of a loaded file's bytes.
#[derive(Debug)]
pub enum Content {
    /// All in this block; the file is closed.
    Whole(Block),
    /// Still in the file, which is larger than a block or may have holes.
    Open(File),
    /// All stored in this new file, with their number ([`crate::Dir::transfer`]); the source is closed.
    Stored(File, u64),
    /// All in this block; the new file made for them could not be filled.
    Begun(File, Block),
}

/// A file before its bytes are read.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: Descriptor,
    pub(crate) stat: Stat,
    pub(crate) xattrs: Vec<Xattr>,
}

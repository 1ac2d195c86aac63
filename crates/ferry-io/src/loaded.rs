//! Results of loading small files, complete and partial.

use crate::buffers::Block;
use crate::descriptor::{Descriptor, File};
use crate::entry::{Stat, Xattr};

/// A file that was opened, and read if it is small.
///
/// ```
/// use ferry_io::{Content, Error, Loaded, Name, Options, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     # let temporary = tempfile::tempdir().expect("a folder");
///     # std::fs::write(temporary.path().join("file"), "text").expect("a file");
///     let folder = io.open_dir(temporary.path())?;
///     let name = Name::new(b"file").expect("one component of a path");
///     let Loaded { stat, content, .. } = folder.load(&name, io.block().await?, false).await?;
///     match content {
///         Content::Whole(block) => assert_eq!(block.as_slice(), b"text"),
///         // Large, or with holes.
///         Content::Open(_) => assert_eq!(stat.size, 4),
///         Content::Stored(..) | Content::Begun(..) => unreachable!("only transfers store"),
///     }
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

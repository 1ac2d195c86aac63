//! Entries of open folders, and the reasons why they are not copied.

use std::fmt;
use std::path::Path;

use ferry_io::{Dir, Error, FileKind, Io, Name, SetupError};

/// Reason why a copy ended early.
#[derive(Debug)]
pub enum Failure {
    /// An operation failed.
    Failed(Error),
    /// An entry that is neither a file nor a folder.
    NotCopied(Name, FileKind),
    /// A path without a last component.
    NotAName,
    /// The runtime could not be set up.
    Setup(SetupError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(out),
            Self::NotCopied(name, kind) => write!(out, "{name:?} is a {kind:?}, which is not copied"),
            Self::NotAName => out.write_str("the path has no last name"),
            Self::Setup(error) => error.fmt(out),
        }
    }
}

/// A name in an open folder: an entry to copy or to make.
pub(super) struct EntryAt {
    pub(super) folder: Dir,
    pub(super) name: Name,
}

impl EntryAt {
    pub(super) fn open(io: &Io, path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
        let name = name.ok_or(Failure::NotAName)?;
        Ok(Self { folder: io.open_dir(path.parent().unwrap_or(path))?, name })
    }
}

//! What can go wrong, as operation, path and errno.

use crate::quote::Quoted;
use rustix::io::Errno;
use std::fmt;

/// What was being done when the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Opening a file or directory.
    Open,
    /// Listing a directory.
    List,
    /// Reading type, size, owner and times.
    Stat,
    /// Reading a file's bytes.
    Read,
    /// Reading a symbolic link.
    ReadLink,
    /// Reading extended attributes.
    ReadXattrs,
    /// Creating an entry.
    Create,
    /// Writing a file's bytes.
    Write,
    /// Linking a second name to a file.
    Link,
    /// Setting the owner.
    SetOwner,
    /// Setting the mode.
    SetMode,
    /// Setting the times.
    SetTimes,
    /// Setting an extended attribute.
    SetXattr,
    /// Removing an entry.
    Remove,
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Open => "open",
            Self::List => "list",
            Self::Stat => "stat",
            Self::Read => "read",
            Self::ReadLink => "read the link",
            Self::ReadXattrs => "read the attributes of",
            Self::Create => "create",
            Self::Write => "write",
            Self::Link => "link",
            Self::SetOwner => "set the owner of",
            Self::SetMode => "set the mode of",
            Self::SetTimes => "set the times of",
            Self::SetXattr => "set an attribute of",
            Self::Remove => "remove",
        })
    }
}

/// A call that failed on a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {}: {errno}", Quoted(.path))]
pub struct Error {
    /// What was being done.
    pub operation: Operation,
    /// To what: relative to the tree's root, or as the caller named it.
    pub path: Vec<u8>,
    /// Why not.
    pub errno: Errno,
}

impl Error {
    /// An error of `operation` on `path`.
    pub(crate) fn new(operation: Operation, path: &[u8], errno: Errno) -> Self {
        Self { operation, path: path.to_vec(), errno }
    }
}

/// Names the operation and the path of a failed call.
pub(crate) trait Context<T> {
    fn context(self, operation: Operation, path: &[u8]) -> Result<T, Error>;
}

impl<T> Context<T> for rustix::io::Result<T> {
    fn context(self, operation: Operation, path: &[u8]) -> Result<T, Error> {
        self.map_err(|errno| Error::new(operation, path, errno))
    }
}

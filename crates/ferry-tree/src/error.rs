//! Failed calls: operation, path and errno.

use crate::quote::Quoted;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Operation that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// Open a file or directory.
    Open,
    /// List a directory.
    List,
    /// Read type, size, owner and times.
    Stat,
    /// Read a file's bytes.
    Read,
    /// Read a symbolic link.
    ReadLink,
    /// Read extended attributes.
    ReadXattrs,
    /// Create an entry.
    Create,
    /// Write a file's bytes.
    Write,
    /// Link a second name to a file.
    Link,
    /// Set the owner.
    SetOwner,
    /// Set the mode.
    SetMode,
    /// Set the times.
    SetTimes,
    /// Set an extended attribute.
    SetXattr,
    /// Remove an entry.
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
    /// Operation that failed.
    pub operation: Operation,
    /// Path of the entry: relative to the tree's root, or as the caller gave it.
    pub path: Vec<u8>,
    /// Reason given by the kernel.
    pub errno: Errno,
}

impl Error {
    pub(crate) fn new(operation: Operation, path: &[u8], errno: Errno) -> Self {
        Self { operation, path: path.to_vec(), errno }
    }
}

/// Adds operation and path to an errno.
pub(crate) trait Context<T> {
    fn context(self, operation: Operation, path: &[u8]) -> Result<T, Error>;
}

impl<T> Context<T> for rustix::io::Result<T> {
    fn context(self, operation: Operation, path: &[u8]) -> Result<T, Error> {
        self.map_err(|errno| Error::new(operation, path, errno))
    }
}

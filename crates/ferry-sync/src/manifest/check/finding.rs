//! Differences between a tree and a manifest.

use std::path::PathBuf;

use ferry_io::{Cause, Time};

/// A difference between the tree and the manifest.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Path below the root.
    pub path: PathBuf,
    /// The kind of the difference.
    pub what: What,
}

/// Kinds of [`Finding`].
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the command's messages say it")]
pub enum What {
    Missing,
    /// Something else than a regular file has the name.
    Kind,
    Extra,
    Content,
    Size {
        listed: u64,
        found: u64,
    },
    Mode {
        listed: u32,
        found: u32,
    },
    Modified {
        listed: Time,
        found: Time,
    },
    /// A file or folder that can't be read.
    Unreadable(Cause),
}

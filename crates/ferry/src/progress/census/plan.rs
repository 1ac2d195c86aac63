//! The plan of a count.

use std::path::PathBuf;

use ferry_sync::preview::Preview;

/// The work to count.
#[derive(Default)]
pub(crate) struct Plan {
    /// Entries to count, with all that is in them.
    pub(crate) roots: Vec<Root>,
    /// Set if links among the roots are followed.
    pub(crate) follows: bool,
    /// Set if sizes of files are added up.
    pub(crate) sizes: bool,
    /// Set if a file with several names counts once.
    pub(crate) links: bool,
    /// Set if folders on other filesystems are not entered.
    pub(crate) one_filesystem: bool,
    /// Files of the target that stay as they are: their bytes do not count.
    pub(crate) stays: Stays,
    /// Decides which entries of a sync take part. The root itself does not count.
    pub(crate) preview: Option<Preview>,
}

/// An entry to count, and its place in the target.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
}

/// Files of the target that stay as they are, without their content being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stays {
    #[default]
    None,
    /// Every file.
    Existing,
    /// Files that are not older than their source.
    NotOlder,
    /// Files that the preview says are equal to their source.
    Equal,
}

//! Aspects of two trees that a comparison checks.

use serde::{Deserialize, Serialize};

/// Treatment of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Holes {
    /// Holes are not compared.
    Ignore,
    /// Data in place of a source's hole is a difference if it occupies considerably more space.
    Kept,
    /// As `Kept`, and a hole in place of the source's zeros is a difference as well.
    Same,
}

/// Properties to compare. Existence, type, link target and device number are always compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// File sizes.
    pub size: bool,
    /// File contents.
    pub content: bool,
    /// Permissions, setuid, setgid and sticky bits. Symbolic links have none.
    pub mode: bool,
    /// User and group.
    pub owner: bool,
    /// Modification times, to the nanosecond.
    pub mtime: bool,
    /// Extended attributes that are not ACLs.
    pub xattrs: bool,
    /// Access and default ACLs.
    pub acls: bool,
    /// Hard links.
    pub links: bool,
    /// Holes.
    pub holes: Holes,
    /// Attributes that security modules compute from a file's path or content (SELinux, IMA, EVM); part of
    /// `xattrs`.
    pub labels: bool,
    /// Number of threads, at least one. Fewer are used if the limit of open files requires it.
    pub threads: usize,
}

impl Options {
    /// Everything that `cp -a` preserves.
    #[must_use]
    pub fn all() -> Self {
        Self {
            size: true,
            content: true,
            mode: true,
            owner: true,
            mtime: true,
            xattrs: true,
            acls: true,
            links: true,
            holes: Holes::Kept,
            labels: false,
            threads: default_threads(),
        }
    }

    /// Everything that plain `cp -r` preserves: names, types, contents.
    #[must_use]
    pub fn plain() -> Self {
        let metadata = Self { mode: false, owner: false, mtime: false, xattrs: false, ..Self::all() };
        Self { acls: false, links: false, holes: Holes::Ignore, ..metadata }
    }
}

/// One thread a processor, but at least eight, because most of them wait for a disk.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(8, |count| count.get().max(8))
}

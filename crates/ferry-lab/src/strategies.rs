//! The ways in which Linux copies a file's bytes, as document 003's appendix compares them, one at a time.
//!
//! They are timed as strangers, so each runs in a process of its own (`ferry lab strategy`, which is for the lab and not
//! in the help). Nothing but bytes is copied: a file, or a folder of files. Plain calls take one file after another,
//! a block a call; the ring's have several blocks of one file in flight, or several files with a block each.

mod plain;
mod queued;

use std::path::Path;

use crate::error::Failure;

#[cfg(test)]
mod tests;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// read(2) and write(2).
    ReadWrite,
    /// splice(2) into a pipe and out of it.
    Splice,
    /// sendfile(2).
    SendFile,
    /// copy_file_range(2).
    CopyFileRange,
    /// mmap(2) of the source, write(2) from there.
    Mmap,
    /// The target shares the source's extents (FICLONE).
    Reflink,
    /// Reads and writes that leave nothing in the page cache (RWF_DONTCACHE).
    DontCache,
    /// Reads and writes on the ring, through the page cache.
    RingBuffered,
    /// Reads and writes on the ring, past the page cache (O_DIRECT).
    RingDirect,
    /// Reads past the page cache, writes into it, on the ring.
    DirectRead,
    /// Reads and writes past the page cache, each over a cache of its own.
    OwnCache,
}

impl Strategy {
    /// All of them, by the names that the command line has.
    pub const ALL: [(&'static str, Self); 11] = [
        ("read-write", Self::ReadWrite),
        ("splice", Self::Splice),
        ("sendfile", Self::SendFile),
        ("copy-file-range", Self::CopyFileRange),
        ("mmap", Self::Mmap),
        ("reflink", Self::Reflink),
        ("dontcache", Self::DontCache),
        ("ring-buffered", Self::RingBuffered),
        ("ring-direct", Self::RingDirect),
        ("direct-read", Self::DirectRead),
        ("own-cache", Self::OwnCache),
    ];

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, strategy)| strategy)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, strategy)| *strategy == self).map_or("", |(name, _)| name)
    }

    /// Whether it moves block after block.
    #[must_use]
    pub fn has_blocks(self) -> bool {
        self != Self::Reflink
    }

    /// Whether it has several requests in flight.
    #[must_use]
    pub fn has_depth(self) -> bool {
        matches!(self, Self::RingBuffered | Self::RingDirect | Self::DirectRead | Self::OwnCache)
    }
}

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Which way.
    pub strategy: Strategy,
    /// Bytes a call, a multiple of 4,096.
    pub block_bytes: usize,
    /// Requests in flight at most, where there can be several.
    pub depth: usize,
}

/// Copies the bytes of `source`, a file or a folder that holds nothing but files, to `target`, which must not exist.
/// Direct I/O needs files whose sizes are multiples of 4,096 bytes.
///
/// # Errors
/// The first call that failed.
pub fn copy(how: &How, source: &Path, target: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("open", source, &error);
    let is_folder = source.metadata().map_err(failed)?.is_dir();
    let names = if is_folder { Some(names(source)?) } else { None };
    if is_folder {
        std::fs::create_dir(target).map_err(|error| Failure::file("create", target, &error))?;
    }
    if how.strategy.has_depth() {
        return queued::copy(how, source, target, names);
    }
    let Some(names) = names else { return plain::copy(how, source, target) };
    names.iter().try_for_each(|name| plain::copy(how, &source.join(name), &target.join(name)))
}

fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, Failure> {
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>()
    });
    entries.map_err(|error| Failure::file("list", folder, &error))
}

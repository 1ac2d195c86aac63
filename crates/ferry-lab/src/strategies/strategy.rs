//! Strategies by name, and their options.

/// A way to copy bytes.
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
    /// mmap(2) of the source, write(2) of the mapping.
    Mmap,
    /// The target shares the source's extents (FICLONE).
    Reflink,
    /// Reads and writes that leave nothing in the page cache (RWF_DONTCACHE).
    DontCache,
    /// Reads and writes on the ring, through the page cache.
    RingBuffered,
    /// The same with the blocks registered with the ring.
    RingRegistered,
    /// Reads and writes on the ring, with O_DIRECT.
    RingDirect,
    /// Reads on the ring with O_DIRECT, writes through the page cache.
    DirectRead,
    /// Direct files on both sides, each with its own cache.
    OwnCache,
}

impl Strategy {
    /// All strategies with their names on the command line.
    pub const ALL: [(&'static str, Self); 12] = [
        ("read-write", Self::ReadWrite),
        ("splice", Self::Splice),
        ("sendfile", Self::SendFile),
        ("copy-file-range", Self::CopyFileRange),
        ("mmap", Self::Mmap),
        ("reflink", Self::Reflink),
        ("dontcache", Self::DontCache),
        ("ring-buffered", Self::RingBuffered),
        ("ring-registered", Self::RingRegistered),
        ("ring-direct", Self::RingDirect),
        ("direct-read", Self::DirectRead),
        ("own-cache", Self::OwnCache),
    ];

    /// Returns the strategy with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, strategy)| strategy)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, strategy)| *strategy == self).map_or("", |(name, _)| name)
    }

    /// Returns true if it moves the file in blocks.
    #[must_use]
    pub fn has_blocks(self) -> bool {
        self != Self::Reflink
    }

    /// Returns true if it has several requests in flight.
    #[must_use]
    pub fn has_depth(self) -> bool {
        matches!(
            self,
            Self::RingBuffered | Self::RingRegistered | Self::RingDirect | Self::DirectRead | Self::OwnCache
        )
    }
}

/// Options of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyOptions {
    /// The strategy.
    pub strategy: Strategy,
    /// Bytes of a call, a multiple of 4,096.
    pub block_bytes: usize,
    /// Maximum number of requests in flight.
    pub depth: usize,
}

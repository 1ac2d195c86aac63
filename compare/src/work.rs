//! The works: what each runtime reads and writes, and the checksum of it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a block of a large file, whose size is a multiple of it.
pub const BLOCK: usize = 256 << 10;
/// Room for a small file in bytes; each is smaller.
pub const SMALL: usize = 64 << 10;
/// Bytes of a log's record.
pub const RECORD: usize = 4096;
/// Small files in flight on one processor.
pub const FILES_AT_ONCE: usize = 32;
/// Blocks of a large file in flight on one processor.
pub const BLOCKS_AT_ONCE: usize = 8;

/// One work.
#[derive(Debug, Clone)]
pub enum Work {
    /// Open, read and close each of these files.
    Small(Arc<[PathBuf]>),
    /// Read a large file.
    Read {
        /// The file.
        path: PathBuf,
        /// Number of its blocks.
        blocks: u64,
    },
    /// Copy a large file. The total stays empty: the caller compares the copy.
    Copy {
        /// The file.
        source: PathBuf,
        /// Its copy, which does not exist yet.
        target: PathBuf,
        /// Number of blocks.
        blocks: u64,
    },
    /// Append records to new files, and make each durable (fdatasync(2)) before the next.
    Log {
        /// Folder of the files.
        folder: PathBuf,
        /// Number of files, which are written at the same time.
        files: u64,
        /// Number of records in each.
        records: u64,
    },
}

impl Work {
    /// Number of files or blocks that can be worked on independently.
    #[must_use]
    pub fn units(&self) -> u64 {
        match self {
            Self::Small(paths) => paths.len() as u64,
            Self::Read { blocks, .. } | Self::Copy { blocks, .. } => *blocks,
            Self::Log { files, .. } => *files,
        }
    }

    /// Number of units that one processor has in flight.
    #[must_use]
    pub fn at_once(&self) -> usize {
        match self {
            Self::Small(_) => FILES_AT_ONCE,
            Self::Read { .. } | Self::Copy { .. } => BLOCKS_AT_ONCE,
            Self::Log { files, .. } => usize::try_from(*files).unwrap_or(usize::MAX).min(FILES_AT_ONCE),
        }
    }
}

/// The file of a log.
#[must_use]
pub fn log_path(folder: &Path, file: u64) -> PathBuf {
    folder.join(format!("log-{file}"))
}

/// Fills a record's bytes, which tell it from all others.
pub fn fill_record(bytes: &mut [u8], file: u64, record: u64) {
    for (word, place) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
        place.copy_from_slice(&(file << 48 | record << 16 | word).to_le_bytes());
    }
}

/// Key of a log's record for [`Sum::add`].
#[must_use]
pub fn record_key(file: u64, record: u64) -> u64 {
    file << 32 | record
}

/// Number of bytes and their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// Number of bytes.
    pub bytes: u64,
    /// Checksum of the bytes and their places, in any order.
    pub checksum: u64,
}

impl Total {
    /// Adds what another thread has done.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, checksum: self.checksum.wrapping_add(other.checksum) }
    }
}

/// A total that grows, from any thread.
#[derive(Debug, Default)]
pub struct Sum {
    bytes: AtomicU64,
    checksum: AtomicU64,
}

impl Sum {
    /// Adds bytes. The key is the index of the small file, or of the block of a large one.
    pub fn add(&self, bytes: &[u8], key: u64) {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.checksum.fetch_add(checksum(bytes, key), Ordering::Relaxed);
    }

    /// The total so far.
    #[must_use]
    pub fn total(&self) -> Total {
        Total { bytes: self.bytes.load(Ordering::Relaxed), checksum: self.checksum.load(Ordering::Relaxed) }
    }
}

/// Sum of the words, times a number that depends on their place. As fast as memory, because it must not be what is
/// measured.
fn checksum(bytes: &[u8], key: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    words.wrapping_add(rest).wrapping_mul(key.wrapping_mul(2) | 1)
}

/// The part of a work that one thread does, in a runtime with one thread for each processor. Its tasks take the units in
/// order.
#[derive(Debug)]
pub struct Part {
    /// The work.
    pub work: Work,
    /// The bytes so far.
    pub sum: Sum,
    next: Cell<u64>,
    end: u64,
}

impl Part {
    /// Returns the part of thread `index` of `count`.
    #[must_use]
    pub fn new(work: Work, index: usize, count: usize) -> Self {
        let (index, count) = (index as u64, count.max(1) as u64);
        let at = |index: u64| work.units() * index / count;
        let (next, end) = (Cell::new(at(index)), at(index + 1));
        Self { work, sum: Sum::default(), next, end }
    }

    /// Takes the next unit.
    pub fn take(&self) -> Option<u64> {
        let unit = self.next.get();
        self.next.set(unit + 1);
        (unit < self.end).then_some(unit)
    }
}

/// Offset of a block.
#[must_use]
pub fn offset(block: u64) -> u64 {
    block * BLOCK as u64
}

/// Number of processors that this process may use.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole() {
        let work = Work::Read { path: PathBuf::new(), blocks: 103 };
        for count in 1..5 {
            let parts = (0..count).map(|index| Part::new(work.clone(), index, count));
            let units: Vec<u64> = parts.flat_map(|part| std::iter::from_fn(move || part.take())).collect();
            assert_eq!(units, (0..103).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_sum_knows_bytes_and_their_places() {
        let total = |parts: &[(&[u8], u64)]| {
            let sum = Sum::default();
            parts.iter().for_each(|(bytes, key)| sum.add(bytes, *key));
            sum.total()
        };
        let (one, two): (&[u8], &[u8]) = (b"some bytes", b"other bytes");
        assert_eq!(total(&[(one, 0), (two, 1)]), total(&[(two, 1), (one, 0)]), "in any order");
        assert_ne!(total(&[(one, 0), (two, 1)]), total(&[(one, 1), (two, 0)]), "in another place");
        assert_ne!(total(&[(one, 0)]), total(&[(b"some bytez", 0)]));
        assert_eq!(total(&[(one, 0)]).and(total(&[(two, 1)])), total(&[(one, 0), (two, 1)]));
    }
}

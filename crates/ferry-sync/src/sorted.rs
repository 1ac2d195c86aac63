//! Sorting in bounded memory: a folder's entries by their names, and other records.
//!
//! Up to [`IN_MEMORY`] records of [`BYTES_IN_MEMORY`] stay in memory. More are sorted in runs of that size, which go to one
//! unnamed temporary file and are merged while they are read.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ferry_io::{Entry, FileKind, Name};

#[cfg(test)]
mod tests;

/// Number of records that are sorted in memory; about 5 MiB of entries.
pub(crate) const IN_MEMORY: usize = 65_536;

/// Bytes of text in the records that are sorted in memory. Entries do not reach it.
pub(crate) const BYTES_IN_MEMORY: usize = 16 << 20;

/// Bytes read of a run at a time.
const PIECE: usize = 64 << 10;

/// What is sorted.
pub(crate) trait Record: Sized {
    fn order(&self, other: &Self) -> Ordering;

    /// Bytes of its text.
    fn text_bytes(&self) -> usize;

    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads a record and its size from the start of `bytes`; `None` if they hold only a part of it.
    fn read(bytes: &[u8]) -> Option<(Self, usize)>;
}

/// Records being collected.
pub(crate) struct Sorter<R> {
    records: Vec<R>,
    text_bytes: usize,
    in_memory: usize,
    spilled: Option<Spilled>,
}

/// Runs in a temporary file.
struct Spilled {
    file: File,
    /// End of the last run.
    size: u64,
    /// Start and end of each run.
    runs: Vec<(u64, u64)>,
}

impl<R: Record> Sorter<R> {
    pub(crate) fn new() -> Self {
        Self::with_limit(IN_MEMORY)
    }

    fn with_limit(in_memory: usize) -> Self {
        Self { records: Vec::new(), text_bytes: 0, in_memory, spilled: None }
    }

    /// Returns true if records are in the temporary file.
    #[cfg(test)]
    pub(crate) fn is_spilled(&self) -> bool {
        self.spilled.is_some()
    }

    /// Adds records in any order.
    ///
    /// # Errors
    /// Those of creating and writing the temporary file in `folder`.
    pub(crate) fn add(&mut self, records: Vec<R>, folder: &Path) -> io::Result<()> {
        self.text_bytes += records.iter().map(Record::text_bytes).sum::<usize>();
        if self.records.is_empty() {
            self.records = records;
        } else {
            self.records.extend(records);
        }
        let is_full = self.records.len() > self.in_memory || self.text_bytes > BYTES_IN_MEMORY;
        if is_full { self.spill(folder) } else { Ok(()) }
    }

    fn spill(&mut self, folder: &Path) -> io::Result<()> {
        let mut spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => Spilled { file: tempfile::tempfile_in(folder)?, size: 0, runs: Vec::new() },
        };
        sort(&mut self.records);
        let mut bytes = Vec::with_capacity(PIECE + 300);
        let start = spilled.size;
        for record in self.records.drain(..) {
            record.write(&mut bytes);
            if bytes.len() >= PIECE {
                spilled.append(&mut bytes)?;
            }
        }
        spilled.append(&mut bytes)?;
        spilled.runs.push((start, spilled.size));
        self.spilled = Some(spilled);
        self.text_bytes = 0;
        Ok(())
    }

    /// Returns the records in their order.
    ///
    /// # Errors
    /// Those of writing and reading the temporary file in `folder`.
    pub(crate) fn finish(mut self, folder: &Path) -> io::Result<Sorted<R>> {
        if self.spilled.is_none() {
            sort(&mut self.records);
            return Ok(Sorted::InMemory(self.records.into_iter()));
        }
        self.spill(folder)?;
        let Some(Spilled { file, runs, .. }) = self.spilled else {
            return Ok(Sorted::InMemory(Vec::new().into_iter()));
        };
        let mut merged = Merged { file, runs: Vec::with_capacity(runs.len()), heads: BinaryHeap::new() };
        for (next, end) in runs {
            merged.runs.push(Run { next, end, bytes: Vec::new(), taken: 0 });
            merged.take_head(merged.runs.len() - 1)?;
        }
        Ok(Sorted::Merged(merged))
    }
}

impl Spilled {
    fn append(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all_at(bytes, self.size)?;
        self.size += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }
}

fn sort<R: Record>(records: &mut [R]) {
    records.sort_unstable_by(Record::order);
}

/// Kinds in the order of their codes in a record; the code behind the last stands for an unknown kind.
const KINDS: [FileKind; 7] = [
    FileKind::Regular,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];

/// Bytes of an entry's record before the name.
const HEAD: usize = 2 + 1 + 8;

impl Record for Entry {
    fn order(&self, other: &Self) -> Ordering {
        self.name.as_bytes().cmp(other.name.as_bytes())
    }

    fn text_bytes(&self) -> usize {
        self.name.as_bytes().len()
    }

    /// Writes size of the name, kind, inode number, name.
    fn write(&self, bytes: &mut Vec<u8>) {
        let name = self.name.as_bytes();
        let code =
            self.kind.and_then(|kind| KINDS.iter().position(|&known| known == kind)).unwrap_or(KINDS.len());
        // A name has at most 255 bytes, or 65,534 where a filesystem allows more; `Name` holds no longer one.
        bytes.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.push(u8::try_from(code).unwrap_or(u8::MAX));
        bytes.extend(self.inode.to_le_bytes());
        bytes.extend(name);
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let size = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let name = Name::new(rest.get(..size)?)?;
        let inode = u64::from_le_bytes(*head.last_chunk::<8>()?);
        Some((Self { name, kind: KINDS.get(usize::from(head[2])).copied(), inode }, HEAD + size))
    }
}

/// Records in their order.
pub(crate) enum Sorted<R> {
    InMemory(std::vec::IntoIter<R>),
    Merged(Merged<R>),
}

impl<R: Record> Sorted<R> {
    /// Returns the next record.
    ///
    /// # Errors
    /// Those of reading the temporary file.
    pub(crate) fn next(&mut self) -> io::Result<Option<R>> {
        match self {
            Self::InMemory(records) => Ok(records.next()),
            Self::Merged(merged) => merged.next(),
        }
    }
}

/// Runs in a temporary file, being merged.
pub(crate) struct Merged<R> {
    file: File,
    runs: Vec<Run>,
    /// The first record left of each run, the least on top.
    heads: BinaryHeap<Reverse<Head<R>>>,
}

struct Run {
    /// Where the file is read next, and where the run ends.
    next: u64,
    end: u64,
    bytes: Vec<u8>,
    /// Number of those bytes that were taken.
    taken: usize,
}

struct Head<R> {
    record: R,
    run: usize,
}

impl<R: Record> Merged<R> {
    fn next(&mut self) -> io::Result<Option<R>> {
        let Some(Reverse(Head { record, run })) = self.heads.pop() else { return Ok(None) };
        self.take_head(run)?;
        Ok(Some(record))
    }

    /// Puts the next record of a run among the heads.
    fn take_head(&mut self, number: usize) -> io::Result<()> {
        let Some(run) = self.runs.get_mut(number) else { return Ok(()) };
        loop {
            if let Some((record, size)) = R::read(run.bytes.get(run.taken..).unwrap_or_default()) {
                run.taken += size;
                self.heads.push(Reverse(Head { record, run: number }));
                return Ok(());
            }
            if run.next == run.end {
                return Ok(());
            }
            run.bytes.drain(..run.taken);
            run.taken = 0;
            let kept = run.bytes.len();
            let piece = usize::try_from(run.end - run.next).unwrap_or(PIECE).min(PIECE);
            run.bytes.resize(kept + piece, 0);
            self.file.read_exact_at(&mut run.bytes[kept..], run.next)?;
            run.next += piece as u64;
        }
    }
}

impl<R: Record> Ord for Head<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.record.order(&other.record)
    }
}

impl<R: Record> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Record> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R: Record> Eq for Head<R> {}

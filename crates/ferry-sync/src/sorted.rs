//! A folder's entries in the order of their names, in bounded memory.
//!
//! Up to [`IN_MEMORY`] entries stay in memory. A larger folder is sorted in runs of that size, which go to one unnamed
//! temporary file and are merged while they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ferry_io::{Entry, FileKind, Name};

#[cfg(test)]
mod tests;

/// Number of entries that are sorted in memory; about 5 MiB of them.
pub(crate) const IN_MEMORY: usize = 65_536;

/// Bytes read of a run at a time.
const PIECE: usize = 64 << 10;

/// Entries being collected.
pub(crate) struct Sorter {
    entries: Vec<Entry>,
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

impl Sorter {
    pub(crate) fn new() -> Self {
        Self::with_limit(IN_MEMORY)
    }

    fn with_limit(in_memory: usize) -> Self {
        Self { entries: Vec::new(), in_memory, spilled: None }
    }

    /// Adds entries of the folder, in any order.
    ///
    /// # Errors
    /// Those of creating and writing the temporary file in `folder`.
    pub(crate) fn add(&mut self, entries: Vec<Entry>, folder: &Path) -> io::Result<()> {
        if self.entries.is_empty() {
            self.entries = entries;
        } else {
            self.entries.extend(entries);
        }
        if self.entries.len() > self.in_memory { self.spill(folder) } else { Ok(()) }
    }

    fn spill(&mut self, folder: &Path) -> io::Result<()> {
        let mut spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => Spilled { file: tempfile::tempfile_in(folder)?, size: 0, runs: Vec::new() },
        };
        sort(&mut self.entries);
        let mut bytes = Vec::with_capacity(PIECE + 300);
        let start = spilled.size;
        for entry in self.entries.drain(..) {
            write_record(&mut bytes, &entry);
            if bytes.len() >= PIECE {
                spilled.append(&mut bytes)?;
            }
        }
        spilled.append(&mut bytes)?;
        spilled.runs.push((start, spilled.size));
        self.spilled = Some(spilled);
        Ok(())
    }

    /// Returns the entries in the order of their names.
    ///
    /// # Errors
    /// Those of writing and reading the temporary file in `folder`.
    pub(crate) fn finish(mut self, folder: &Path) -> io::Result<Sorted> {
        if self.spilled.is_none() {
            sort(&mut self.entries);
            return Ok(Sorted::InMemory(self.entries.into_iter()));
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

fn sort(entries: &mut [Entry]) {
    entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
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

/// Writes size of the name, kind, inode number, name.
fn write_record(bytes: &mut Vec<u8>, entry: &Entry) {
    let name = entry.name.as_bytes();
    let code =
        entry.kind.and_then(|kind| KINDS.iter().position(|&known| known == kind)).unwrap_or(KINDS.len());
    // A name has at most 255 bytes, or 65,534 where a filesystem allows more; `Name` holds no longer one.
    bytes.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.push(u8::try_from(code).unwrap_or(u8::MAX));
    bytes.extend(entry.inode.to_le_bytes());
    bytes.extend(name);
}

/// Bytes of a record before the name.
const HEAD: usize = 2 + 1 + 8;

fn read_record(bytes: &[u8]) -> Option<(Entry, usize)> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let size = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let name = Name::new(rest.get(..size)?)?;
    let inode = u64::from_le_bytes(*head.last_chunk::<8>()?);
    Some((Entry { name, kind: KINDS.get(usize::from(head[2])).copied(), inode }, HEAD + size))
}

/// A folder's entries in the order of their names.
pub(crate) enum Sorted {
    InMemory(std::vec::IntoIter<Entry>),
    Merged(Merged),
}

impl Sorted {
    /// Returns the next entry.
    ///
    /// # Errors
    /// Those of reading the temporary file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Entry>> {
        match self {
            Self::InMemory(entries) => Ok(entries.next()),
            Self::Merged(merged) => merged.next(),
        }
    }
}

/// Runs in a temporary file, being merged.
pub(crate) struct Merged {
    file: File,
    runs: Vec<Run>,
    /// The first entry left of each run, the least name on top.
    heads: BinaryHeap<Reverse<Head>>,
}

struct Run {
    /// Where the file is read next, and where the run ends.
    next: u64,
    end: u64,
    bytes: Vec<u8>,
    /// Number of those bytes that were taken.
    taken: usize,
}

struct Head {
    entry: Entry,
    run: usize,
}

impl Merged {
    fn next(&mut self) -> io::Result<Option<Entry>> {
        let Some(Reverse(Head { entry, run })) = self.heads.pop() else { return Ok(None) };
        self.take_head(run)?;
        Ok(Some(entry))
    }

    /// Puts the next entry of a run among the heads.
    fn take_head(&mut self, number: usize) -> io::Result<()> {
        let Some(run) = self.runs.get_mut(number) else { return Ok(()) };
        loop {
            if let Some((entry, size)) = read_record(run.bytes.get(run.taken..).unwrap_or_default()) {
                run.taken += size;
                self.heads.push(Reverse(Head { entry, run: number }));
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

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.entry.name.as_bytes().cmp(other.entry.name.as_bytes())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

//! Contents of a tree on disk as a value that tests compare.
//!
//! Capturing uses one thread, keeps the whole tree in memory, and stores hashes instead of bytes. It serves tests
//! and [`crate::compare::snapshots()`]; [`crate::compare::trees`] scales to millions of entries.

use crate::attributes::{Attributes, EntryKind};
use crate::cursor::Cursor;
use crate::describe::{Extent, join};
use crate::error::{Context, Error, Operation};
use crate::hash::{ContentHash, Hasher, PIECE_BYTES};
use crate::xattr::{self, Xattrs};
use crate::{extents, open};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::readlinkat;
use rustix::io::{Errno, Result as CallResult};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const BLOCK_BYTES: usize = 1 << 18;

/// Number of zero pieces from which on a file may have lost holes. Fewer make no difference in [`crate::compare`].
const SUSPECT_PIECES: u64 = 8;

/// Everything captured of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Result of statx(2).
    pub attributes: Attributes,
    /// A symbolic link's target.
    pub target: Option<Vec<u8>>,
    /// Extended attributes, including ACLs.
    pub xattrs: Xattrs,
    /// Hash of a file's content; `None` for other types and unreadable files.
    pub hash: Option<ContentHash>,
    /// Runs of data in a file.
    pub extents: Vec<Extent>,
}

/// Captured tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Entries by path. The root's path is empty.
    pub entries: BTreeMap<Vec<u8>, Facts>,
    /// Failed operations by path.
    pub unreadable: BTreeMap<Vec<u8>, Vec<(Operation, Errno)>>,
}

/// Captures the tree (or the single entry) at `path`. A symbolic link as last component is not followed. Entries
/// that vanish meanwhile are left out, and failures are recorded in the snapshot.
///
/// # Errors
/// `path` does not exist or cannot be opened.
pub fn capture(path: &Path) -> Result<Snapshot, Error> {
    let bytes = path.as_os_str().as_bytes();
    let (parent, name) = open::parent(bytes).context(Operation::Open, bytes)?;
    let attributes = Attributes::read(&parent, name).context(Operation::Stat, bytes)?;
    let is_directory = attributes.kind == EntryKind::Directory;
    let mut capture = Capture { snapshot: Snapshot::default(), buffer: vec![0; BLOCK_BYTES] };
    capture.entry(parent.as_fd(), name, Vec::new(), attributes);
    if is_directory {
        match open::directory(&parent, name) {
            Ok(root) => capture.directories(Cursor::new(root)),
            Err(errno) => capture.unreadable(b"", Operation::Open, errno),
        }
    }
    Ok(capture.snapshot)
}

struct Capture {
    snapshot: Snapshot,
    buffer: Vec<u8>,
}

impl Capture {
    fn unreadable(&mut self, path: &[u8], operation: Operation, errno: Errno) {
        self.snapshot.unreadable.entry(path.to_vec()).or_default().push((operation, errno));
    }

    /// Captures the entries of each directory, the deepest known one first.
    fn directories(&mut self, mut cursor: Cursor) {
        let mut pending = vec![Vec::new()];
        while let Some(path) = pending.pop() {
            if let Err(errno) = cursor.go(&path) {
                self.unreadable(&path, Operation::Open, errno);
                continue;
            }
            match open::Names::list(cursor.directory()) {
                Ok(names) => self.listed(cursor.directory(), &names, &path, &mut pending),
                Err(errno) => self.unreadable(&path, Operation::List, errno),
            }
        }
    }

    fn listed(&mut self, at: BorrowedFd<'_>, names: &open::Names, path: &[u8], pending: &mut Vec<Vec<u8>>) {
        for name in names.iter() {
            let path = join(path, name);
            match Attributes::read(at, name) {
                Ok(attributes) => {
                    if attributes.kind == EntryKind::Directory {
                        pending.push(path.clone());
                    }
                    self.entry(at, name, path, attributes);
                }
                Err(Errno::NOENT) => {}
                Err(errno) => self.unreadable(&path, Operation::Stat, errno),
            }
        }
    }

    fn entry(&mut self, at: BorrowedFd<'_>, name: &[u8], path: Vec<u8>, mut attributes: Attributes) {
        let xattrs = xattr::read(at, name);
        let xattrs = self.readable(xattrs, &path, Operation::ReadXattrs).unwrap_or_default();
        let (mut target, mut hash, mut extents) = (None, None, Vec::new());
        if attributes.kind == EntryKind::Symlink {
            let link = readlinkat(at, name, Vec::new()).map(std::ffi::CString::into_bytes);
            target = self.readable(link, &path, Operation::ReadLink);
        } else if attributes.kind == EntryKind::File {
            let file = open::file(at, name);
            if let Some(file) = self.readable(file, &path, Operation::Open) {
                let content = self.content(file.as_fd(), &mut attributes);
                if let Some(content) = self.readable(content, &path, Operation::Read) {
                    (hash, extents) = (Some(content.0), content.1);
                }
            }
        }
        self.snapshot.entries.insert(path, Facts { attributes, target, xattrs, hash, extents });
    }

    fn readable<T>(&mut self, result: CallResult<T>, path: &[u8], operation: Operation) -> Option<T> {
        result.map_err(|errno| self.unreadable(path, operation, errno)).ok()
    }

    /// Hashes a file's data without its holes. Many zeros may be holes that look like data for now: then the file
    /// is settled, and its allocation is read again.
    fn content(
        &mut self,
        file: BorrowedFd<'_>,
        attributes: &mut Attributes,
    ) -> CallResult<(ContentHash, Vec<Extent>)> {
        let extents = extents::list(file, attributes.size)?;
        let (hash, zero_pieces) = self.hash(file, attributes.size, &extents)?;
        if zero_pieces < SUSPECT_PIECES {
            return Ok((hash, extents));
        }
        extents::settle(file);
        attributes.allocated = Attributes::of(file)?.allocated;
        Ok((hash, extents::list(file, attributes.size)?))
    }

    /// Returns the hash of a file's data, and the number of pieces that are zeros.
    fn hash(&mut self, file: BorrowedFd<'_>, size: u64, data: &[Extent]) -> CallResult<(ContentHash, u64)> {
        let mut hasher = Hasher::default();
        let (mut offset, mut zero_pieces) = (0, 0);
        for extent in data {
            offset = offset.max(extent.offset - extent.offset % PIECE_BYTES);
            while offset < extent.end() {
                let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
                let part = left.min(self.buffer.len());
                let block = &mut self.buffer[..part];
                let got = extents::read_full(file, block, offset)?;
                zero_pieces += hasher.add(offset, &block[..got]);
                if got < block.len() {
                    return Ok((hasher.finish(size), zero_pieces));
                }
                offset += u64::try_from(got).unwrap_or(0);
            }
        }
        // Files of /proc are longer than their size says.
        let mut offset = size;
        loop {
            let got = extents::read_full(file, &mut self.buffer, offset)?;
            hasher.add(offset, &self.buffer[..got]);
            if got < self.buffer.len() {
                return Ok((hasher.finish(size), zero_pieces));
            }
            offset += u64::try_from(got).unwrap_or(0);
        }
    }
}

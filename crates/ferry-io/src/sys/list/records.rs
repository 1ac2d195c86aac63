//! Records of getdents64(2) in the kernel's buffer.
//!
//! Nothing is trusted: a name becomes a path component of later calls, and a broken or hostile filesystem may return
//! one with a slash. Kernels since 5.4 refuse such names with the same EIO. A fuzz target runs this.

use rustix::io::Errno;

use crate::entry::FileKind;

/// Offsets of the fields: `d_ino` at 0, `d_off`, `d_reclen`, `d_type`, `d_name`.
const NEXT: usize = 8;
const SIZE: usize = 16;
const KIND: usize = 18;
const NAME: usize = 19;

/// One record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Not empty, no slash; ends with its only NUL.
    pub(crate) name: &'a [u8],
    /// Type of the entry; `None` if the filesystem does not report it.
    pub(crate) kind: Option<FileKind>,
    pub(crate) inode: u64,
    /// Cookie of the next entry.
    pub(crate) next: u64,
}

/// Iterator over a buffer's records, up to the first malformed one, which is EIO.
pub(crate) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) fn new(buffer: &'a [u8]) -> Self {
        Self { rest: buffer }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Errno>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = split(self.rest);
        self.rest = read.as_ref().map_or(&[], |(_, rest)| rest);
        Some(read.map(|(record, _)| record).ok_or(Errno::IO))
    }
}

/// Splits off the first record; `None` if it is incomplete, or its name is no path component.
fn split(buffer: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let inode = buffer.first_chunk().copied().map(u64::from_ne_bytes)?;
    let next = buffer.get(NEXT..)?.first_chunk().copied().map(u64::from_ne_bytes)?;
    let size = buffer.get(SIZE..)?.first_chunk().copied().map(u16::from_ne_bytes)?;
    let (record, rest) = buffer.split_at_checked(usize::from(size))?;
    let name = record.get(NAME..)?;
    let end = name.iter().position(|byte| *byte == 0 || *byte == b'/')?;
    let name = name.get(..=end).filter(|name| name.len() > 1 && name.ends_with(b"\0"))?;
    Some((Record { name, kind: kind(*record.get(KIND)?), inode, next }, rest))
}

/// Decodes `d_type`; an unknown type counts as unreported.
fn kind(number: u8) -> Option<FileKind> {
    match number {
        libc::DT_REG => Some(FileKind::Regular),
        libc::DT_DIR => Some(FileKind::Directory),
        libc::DT_LNK => Some(FileKind::Symlink),
        libc::DT_FIFO => Some(FileKind::Fifo),
        libc::DT_SOCK => Some(FileKind::Socket),
        libc::DT_CHR => Some(FileKind::CharDevice),
        libc::DT_BLK => Some(FileKind::BlockDevice),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! Entry points of the fuzz targets: the records of a listing.

use rustix::io::Errno;

use crate::entry::FileKind;
use crate::sys::Records;

/// One record of a listing.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Name with its NUL.
    pub name: &'a [u8],
    /// Kind of the entry, if the filesystem reports it.
    pub kind: Option<FileKind>,
    /// Cookie of the next entry.
    pub next: u64,
}

impl Record<'_> {
    /// Returns the kind as the kernel's `d_type`.
    #[must_use]
    pub fn number(&self) -> u8 {
        match self.kind {
            None => libc::DT_UNKNOWN,
            Some(FileKind::Regular) => libc::DT_REG,
            Some(FileKind::Directory) => libc::DT_DIR,
            Some(FileKind::Symlink) => libc::DT_LNK,
            Some(FileKind::Fifo) => libc::DT_FIFO,
            Some(FileKind::Socket) => libc::DT_SOCK,
            Some(FileKind::CharDevice) => libc::DT_CHR,
            Some(FileKind::BlockDevice) => libc::DT_BLK,
        }
    }
}

/// Returns the records in a buffer filled by getdents64(2).
///
/// # Errors
/// EIO, as the last item, for bytes that are no record.
pub fn records(buffer: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Errno>> {
    let read = Records::new(buffer);
    read.map(|found| found.map(|record| Record { name: record.name, kind: record.kind, next: record.next }))
}

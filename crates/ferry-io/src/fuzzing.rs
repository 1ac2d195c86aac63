//! What fuzz targets reach: the records of a listing.

use rustix::io::Errno;

use crate::entry::FileKind;
use crate::sys::Records;

/// One record of a listing.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its name with the NUL.
    pub name: &'a [u8],
    /// What it is, if the filesystem says.
    pub kind: Option<FileKind>,
    /// The cookie of the entry after it.
    pub next: u64,
}

impl Record<'_> {
    /// `d_type`.
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

/// The records in a buffer that getdents64(2) filled.
///
/// # Errors
/// EIO for what is no record, which is the last item.
pub fn records(buffer: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Errno>> {
    let read = Records::new(buffer);
    read.map(|found| found.map(|record| Record { name: record.name, kind: record.kind, next: record.next }))
}

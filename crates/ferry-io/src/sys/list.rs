//! Listing a folder, some entries at a time.

use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::{Patience, call, count_call, open};
use crate::entry::{Entries, Entry, FileKind, Stat};
use crate::name::Name;
use crate::op::Descriptor;

/// A listing ends with the kernel's buffer in which it reached this many entries.
const CHUNK: usize = 1024;
/// What the kernel fills a call; it reads the folder's blocks for that much.
const BUFFER_BYTES: usize = 32 * 1024;

/// Opens a folder and lists its first entries.
pub(super) fn enter(
    dir: BorrowedFd<'_>,
    name: &Name,
    patience: Patience,
) -> Result<(Descriptor, Stat, Entries), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let folder: OwnedFd = open(dir, name, flags, Mode::empty(), patience)?;
    let stat = Stat::from_kernel(&call(|| rustix::fs::fstat(&folder))?);
    let entries = entries(folder.as_fd(), None)?;
    Ok((Descriptor::from(folder).on(stat.device), stat, entries))
}

/// Where a listing goes on that an error ended: what was found before is given first, and the next call gives the error.
/// A folder removed while it is listed has no more entries.
fn after_error(errno: Errno, next: Option<u64>) -> Result<Option<u64>, Errno> {
    if errno == Errno::NOENT {
        return Ok(None);
    }
    next.map(Some).ok_or(errno)
}

/// The next entries from the descriptor's position, or from the cookie `from`.
pub(super) fn entries(dir: BorrowedFd<'_>, from: Option<u64>) -> Result<Entries, Errno> {
    if let Some(cookie) = from {
        call(|| rustix::fs::seek(dir, SeekFrom::Start(cookie)))?;
    }
    let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER_BYTES];
    let mut names: Vec<u8> = Vec::new();
    let mut found: Vec<(u32, u16, Option<FileKind>)> = Vec::new();
    let mut next = None;
    count_call();
    let mut listing = RawDir::new(dir, &mut buffer);
    loop {
        if listing.is_buffer_empty() {
            if found.len() >= CHUNK {
                break;
            }
            count_call();
        }
        let Some(entry) = listing.next() else {
            next = None;
            break;
        };
        let entry = match entry {
            Err(Errno::INTR) => continue,
            Err(errno) => {
                next = after_error(errno, next)?;
                break;
            }
            Ok(entry) => entry,
        };
        next = Some(entry.next_entry_cookie());
        let name = entry.file_name().to_bytes_with_nul();
        if name == b".\0" || name == b"..\0" {
            continue;
        }
        let start = u32::try_from(names.len()).map_err(|_| Errno::OVERFLOW)?;
        let size = u16::try_from(name.len() - 1).map_err(|_| Errno::NAMETOOLONG)?;
        names.extend_from_slice(name);
        found.push((start, size, FileKind::from_type(entry.file_type())));
    }
    let names: Arc<[u8]> = names.into();
    let entries = found
        .into_iter()
        .map(|(start, size, kind)| Entry { name: Name::within(&names, start, size), kind })
        .collect();
    Ok(Entries { entries, next })
}

#[cfg(test)]
mod tests {
    use super::{Errno, after_error};

    #[test]
    fn an_error_after_some_entries_comes_with_the_next_call() {
        assert_eq!(after_error(Errno::IO, Some(7)), Ok(Some(7)));
        assert_eq!(after_error(Errno::IO, None), Err(Errno::IO));
        assert_eq!(after_error(Errno::NOENT, Some(7)), Ok(None));
    }
}

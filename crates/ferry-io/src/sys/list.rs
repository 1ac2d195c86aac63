//! Lists a folder in chunks.

mod records;

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::attributes::stat_folder;
use super::{Patience, call, checked, open};
use crate::confine::open_flags;
use crate::descriptor::Descriptor;
use crate::entry::{Entries, Entry, FileKind};
use crate::name::Name;
use crate::op::Outcome;
#[cfg(not(fuzzing))]
use records::Records;
#[cfg(fuzzing)]
pub(crate) use records::Records;

/// Number of entries at which a chunk ends, after the kernel's current buffer.
const CHUNK: usize = 1024;
/// Size of the kernel's buffer; the kernel reads the folder's blocks for as much.
const BUFFER_BYTES: usize = 32 * 1024;

/// Opens a folder and lists its first entries.
pub(super) fn enter(dir: BorrowedFd<'_>, name: &Name, patience: Patience) -> Result<Outcome, Errno> {
    let flags = open_flags(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK, false);
    let folder: OwnedFd = open(dir, name, flags, Mode::empty(), patience)?;
    let (stat, is_mount_root) = stat_folder(folder.as_fd())?;
    let entries = entries(folder.as_fd(), None)?;
    let folder = Descriptor::from(folder).on(stat.device).with_mount(is_mount_root);
    Ok(Outcome::Entered(Box::new((Arc::new(folder), stat, entries))))
}

/// Position to continue at after an error. Entries found before are returned first, and the next call returns the
/// error. A folder that was removed meanwhile has no more entries.
fn after_error(errno: Errno, next: Option<u64>) -> Result<Option<u64>, Errno> {
    if errno == Errno::NOENT {
        return Ok(None);
    }
    next.map(Some).ok_or(errno)
}

/// Moves a descriptor to a position in its listing.
fn go_to(dir: BorrowedFd<'_>, cookie: u64) -> Result<(), Errno> {
    call(|| rustix::fs::seek(dir, SeekFrom::Start(cookie))).map(|_| ())
}

/// Returns the next entries from the descriptor's position, or from the cookie `from`.
pub(super) fn entries(dir: BorrowedFd<'_>, from: Option<u64>) -> Result<Entries, Errno> {
    if let Some(cookie) = from {
        go_to(dir, cookie)?;
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { buffer, listing } = scratch;
        buffer.reserve(BUFFER_BYTES);
        // A panic may have left entries of another folder.
        listing.clear();
        let listed = read(dir, buffer.spare_capacity_mut(), listing);
        let entries = listed.map(|()| listing.to_entries());
        listing.clear();
        entries
    })
}

/// Reads records until a chunk is full or the listing ends.
fn read(dir: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>], listing: &mut Listing) -> Result<(), Errno> {
    while listing.found.len() < CHUNK {
        let taken = fill(dir, buffer).and_then(|records| match records {
            [] => Ok(false),
            records => listing.take(records).map(|()| true),
        });
        match taken {
            Ok(true) => {}
            Ok(false) => {
                listing.next = None;
                break;
            }
            Err(errno) => {
                listing.next = after_error(errno, listing.next)?;
                if let Some(next) = listing.next {
                    // The kernel may have passed the malformed record and later ones.
                    go_to(dir, next)?;
                }
                break;
            }
        }
    }
    Ok(())
}

/// Memory for a listing.
#[derive(Default)]
struct Scratch {
    /// On the heap: a function touches every page of its stack frame, and a short listing fills one page.
    buffer: Vec<u8>,
    listing: Listing,
}

thread_local! {
    /// Used again by the thread's next listing.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Returns the kernel's next records (getdents64(2)), none at the end.
fn fill<'a>(dir: BorrowedFd<'_>, buffer: &'a mut [MaybeUninit<u8>]) -> Result<&'a [u8], Errno> {
    let size = call(|| {
        let (dir, room) = (dir.as_raw_fd(), buffer.len());
        // SAFETY: the kernel writes at most `room` bytes, which are the buffer's, while it is borrowed here.
        checked(unsafe { libc::syscall(libc::SYS_getdents64, dir, buffer.as_mut_ptr(), room) })
    })?;
    let filled = buffer.get(..size).unwrap_or_default();
    // SAFETY: the kernel has written the first `size` bytes.
    Ok(unsafe { filled.assume_init_ref() })
}

/// Start and size of a name, kind and inode number of an entry.
type Found = (u32, u16, Option<FileKind>, u64);

/// Entries of a folder, with adjacent names.
#[derive(Default)]
struct Listing {
    names: Vec<u8>,
    found: Vec<Found>,
    next: Option<u64>,
}

impl Listing {
    /// Adds the entries of one buffer, up to a malformed record.
    fn take(&mut self, buffer: &[u8]) -> Result<(), Errno> {
        for record in Records::new(buffer) {
            let record = record?;
            self.next = Some(record.next);
            if record.name == b".\0" || record.name == b"..\0" {
                continue;
            }
            let start = u32::try_from(self.names.len()).map_err(|_| Errno::OVERFLOW)?;
            let size = u16::try_from(record.name.len() - 1).map_err(|_| Errno::NAMETOOLONG)?;
            self.names.extend_from_slice(record.name);
            self.found.push((start, size, record.kind, record.inode));
        }
        Ok(())
    }

    fn to_entries(&self) -> Entries {
        let names: Arc<[u8]> = self.names.as_slice().into();
        let entry = |&(start, size, kind, inode): &Found| Entry {
            name: Name::within(&names, start, size),
            kind,
            inode,
        };
        Entries { entries: self.found.iter().map(entry).collect(), next: self.next }
    }

    /// Forgets the entries. Room for usual names stays.
    fn clear(&mut self) {
        self.names.clear();
        self.names.shrink_to(BUFFER_BYTES);
        self.found.clear();
        self.next = None;
    }
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

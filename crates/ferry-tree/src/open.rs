//! Opening and listing beneath an open directory. No link is followed and nothing is changed.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, openat, openat2};
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec};
use std::mem::MaybeUninit;

/// Buffer of getdents64(2): some 200 names a call.
const LIST_BYTES: usize = 32 * 1024;

/// Opens the directory `name`; a symbolic link is `ENOTDIR` or `ELOOP`.
pub(crate) fn directory(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    quietly(OFlags::DIRECTORY, |flags| openat(&parent, name, flags, Mode::empty()))
}

/// Opens the file `name` for reading; never blocks on a FIFO and never acquires a terminal.
pub(crate) fn file(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    quietly(OFlags::NONBLOCK | OFlags::NOCTTY, |flags| openat(&parent, name, flags, Mode::empty()))
}

/// Opens without changing the access time. O_NOATIME is reserved to the owner and root (open(2)).
fn quietly(flags: OFlags, open: impl Fn(OFlags) -> Result<OwnedFd>) -> Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    }
}

/// Opens the directory that holds the last component of `path`, and returns that component. It is `.` if the path
/// is empty (the current directory) or ends in a slash, `.` or `..`. Links before it are followed.
pub(crate) fn parent(path: &[u8]) -> Result<(OwnedFd, &[u8])> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..=slash], &path[slash + 1..]),
        None => (&b"."[..], path),
    };
    let (parent, name) = match name {
        b"" | b"." | b".." => (if path.is_empty() { b"." } else { path }, &b"."[..]),
        _ => (parent, name),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((openat(CWD, parent, flags, Mode::empty())?, name))
}

/// Maximum length of a path given to one call. The kernel's `PATH_MAX` is 4,096 with the terminating zero.
const CALL_BYTES: usize = 4000;

/// Opens a directory at any depth beneath `root` without following links, with as few calls as possible. An empty
/// path duplicates `root`, so both share one position in the listing.
pub(crate) fn beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    let mut opened: Option<OwnedFd> = None;
    let mut rest = path;
    while !rest.is_empty() {
        let cut = cut(rest);
        let parent = opened.as_ref().map_or(root, AsFd::as_fd);
        opened = Some(chain(parent, &rest[..cut])?);
        rest = rest.get(cut + 1..).unwrap_or_default();
    }
    match opened {
        Some(directory) => Ok(directory),
        // Opening `.` would need search permission, which listing does not.
        None => fcntl_dupfd_cloexec(root, 0),
    }
}

/// End of the first part of a path: the last slash that keeps the part short enough for one call.
fn cut(path: &[u8]) -> usize {
    if path.len() <= CALL_BYTES {
        return path.len();
    }
    path[..CALL_BYTES].iter().rposition(|byte| *byte == b'/').unwrap_or(path.len())
}

/// Opens a path of several components; one by one where openat2(2) (Linux 5.6) is missing or forbidden.
fn chain(parent: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    let at_once = quietly(OFlags::DIRECTORY, |flags| openat2(parent, path, flags, Mode::empty(), resolve));
    match at_once {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
        other => return other,
    }
    let mut names = path.split(|byte| *byte == b'/');
    let mut current = directory(parent, names.next().unwrap_or(b"."))?;
    for name in names {
        current = directory(&current, name)?;
    }
    Ok(current)
}

/// Sorted names of a directory in one allocation, 16 bytes a name besides the name itself.
#[derive(Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    /// Offset and size of each name, and true for what the listing says is neither a directory nor unknown.
    spans: Vec<(usize, u16, bool)>,
}

impl Names {
    /// Lists an open directory without `.` and `..`.
    pub(crate) fn list(directory: impl AsFd) -> Result<Self> {
        Self::list_some(directory, usize::MAX)
    }

    /// Lists an open directory; of one with more than `most` names some more than that, in no order that means anything.
    pub(crate) fn list_some(directory: impl AsFd, most: usize) -> Result<Self> {
        let mut names = Self::default();
        let mut buffer = [MaybeUninit::uninit(); LIST_BYTES];
        let mut entries = RawDir::new(directory, &mut buffer);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => {
                    let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                    names.push(entry.file_name().to_bytes(), !may_be_folder);
                    if names.count() > most {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                // An open directory that was removed has no entries.
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(errno),
            }
        }
        let Self { bytes, spans } = &mut names;
        let name = |(start, size, _): (usize, u16, bool)| &bytes[start..start + usize::from(size)];
        spans.sort_unstable_by(|a, b| name(*a).cmp(name(*b)));
        // A directory that changes during the listing may return an entry twice.
        spans.dedup_by(|a, b| name(*a) == name(*b));
        Ok(names)
    }

    fn push(&mut self, name: &[u8], is_leaf: bool) {
        let Ok(size) = u16::try_from(name.len()) else { return };
        if !matches!(name, b"." | b"..") {
            self.spans.push((self.bytes.len(), size, is_leaf));
            self.bytes.extend_from_slice(name);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let (start, size, _) = *self.spans.get(index)?;
        Some(&self.bytes[start..start + usize::from(size)])
    }

    /// Returns true if the listing says that the entry is no directory.
    pub(crate) fn is_leaf(&self, index: usize) -> bool {
        self.spans.get(index).is_some_and(|(.., is_leaf)| *is_leaf)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|(start, size, _)| &self.bytes[*start..start + usize::from(*size)])
    }
}

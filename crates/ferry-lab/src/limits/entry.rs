//! One entry of a folder: a small file with its folder's descriptors, or a symbolic link.

use std::ffi::CStr;
use std::io::IoSliceMut;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};
use rustix::path::Arg;

use super::attributes::{self, Attributes};
use super::limit::{Calls, Limit};
use super::single::{self, write_all};

/// Bytes of one call of copy_file_range(2).
const RANGE: u64 = 64 << 20;

/// A folder and its copy.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) source: OwnedFd,
    pub(super) target: OwnedFd,
}

/// Releases a folder. If it is no longer in use and its attributes are kept, sets them, because no entry follows.
pub(super) fn release(how: &Limit, folder: Arc<Folder>) -> Result<(), Errno> {
    match Arc::into_inner(folder).filter(|_| how.preserves) {
        None => Ok(()),
        Some(Folder { source, target }) => {
            let facts = rustix::fs::fstat(&source)?;
            Attributes::of(&source, facts)?.set(target.as_fd(), None)
        }
    }
}

/// Copies files one after another, with one block.
#[derive(Debug)]
pub(super) struct Copier<'a> {
    how: &'a Limit,
    block: Vec<u8>,
    umask: Mode,
}

/// A source file of which the first bytes are in the block.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Permission bits of the source.
    pub(super) mode: Mode,
    /// Number of bytes in the block.
    pub(super) count: usize,
    /// The file, if it has more bytes.
    pub(super) rest: Option<OwnedFd>,
    /// Attributes of the source, if they are kept.
    pub(super) attributes: Option<Attributes>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(how: &'a Limit) -> Self {
        let umask = if how.preserves { attributes::umask() } else { Mode::empty() };
        Self { how, block: vec![0; how.block_bytes], umask }
    }

    /// Copies one file, each side given by a folder and a name.
    pub(super) fn file<N: Arg + Copy>(
        &mut self,
        source: (BorrowedFd<'_>, N),
        target: (BorrowedFd<'_>, N),
    ) -> Result<(), Errno> {
        match self.how.calls {
            Calls::ReadWrite | Calls::Cached | Calls::Readers => {
                let loaded = self.load(source)?;
                let output = create(target, loaded.mode)?;
                write_all(&output, &self.block[..loaded.count])?;
                loaded.rest.map_or(Ok(()), |input| self.rest(&input, &output))?;
                self.set(loaded.attributes.as_ref(), &output, loaded.mode)
            }
            Calls::CopyRange => {
                let input = open(source, OFlags::empty())?;
                let facts = rustix::fs::fstat(&input)?;
                let output = create(target, mode(&facts))?;
                copy_range(&input, &output, length(&facts))?;
                self.set(self.attributes(&input, facts)?.as_ref(), &output, mode(&facts))
            }
            Calls::Pipe | Calls::Mapped | Calls::Direct => {
                let flags = if self.how.calls == Calls::Direct { OFlags::DIRECT } else { OFlags::empty() };
                let input = open(source, flags)?;
                let facts = rustix::fs::fstat(&input)?;
                let output = create(target, mode(&facts))?;
                single::copy(self.how, &input, &output, length(&facts))?;
                self.set(self.attributes(&input, facts)?.as_ref(), &output, mode(&facts))
            }
        }
    }

    /// Reads the attributes of a source if they are kept.
    fn attributes(&self, input: &OwnedFd, facts: Stat) -> Result<Option<Attributes>, Errno> {
        self.how.preserves.then(|| Attributes::of(input, facts)).transpose()
    }

    /// Sets the attributes of a copy that was created with `mode`.
    pub(super) fn set(
        &self,
        attributes: Option<&Attributes>,
        output: &OwnedFd,
        mode: Mode,
    ) -> Result<(), Errno> {
        attributes.map_or(Ok(()), |attributes| attributes.set(output.as_fd(), Some(mode - self.umask)))
    }

    /// Opens a file and reads its first block. A file of at most one block is closed again.
    pub(super) fn load<N: Arg + Copy>(&mut self, source: (BorrowedFd<'_>, N)) -> Result<Loaded, Errno> {
        let is_asked = self.how.calls == Calls::Cached;
        let input = if is_asked { open_cached(source)? } else { open(source, OFlags::empty())? };
        let facts = rustix::fs::fstat(&input)?;
        let count = if is_asked { read_cached(&input, &mut self.block) } else { None };
        let count = match count {
            Some(count) => count,
            None => retry_on_intr(|| rustix::io::pread(&input, &mut self.block[..], 0))?,
        };
        let has_more = u64::try_from(count).is_ok_and(|count| count < length(&facts));
        if has_more {
            rustix::fs::seek(&input, rustix::fs::SeekFrom::Start(u64::try_from(count).unwrap_or(0)))?;
        }
        let attributes = self.attributes(&input, facts)?;
        Ok(Loaded { mode: mode(&facts), count, rest: has_more.then_some(input), attributes })
    }

    /// Returns the first bytes of the block.
    pub(super) fn bytes(&self, count: usize) -> &[u8] {
        &self.block[..count]
    }

    /// Copies what is left of a file.
    pub(super) fn rest(&mut self, input: &OwnedFd, output: &OwnedFd) -> Result<(), Errno> {
        loop {
            match retry_on_intr(|| rustix::io::read(input, &mut self.block[..]))? {
                0 => return Ok(()),
                count => write_all(output, &self.block[..count])?,
            }
        }
    }
}

/// Copies a symbolic link.
pub(super) fn link(how: &Limit, folder: &Folder, name: &CStr) -> Result<(), Errno> {
    let text = rustix::fs::readlinkat(&folder.source, name, Vec::new())?;
    rustix::fs::symlinkat(text, &folder.target, name)?;
    if how.preserves {
        let facts = rustix::fs::statat(&folder.source, name, AtFlags::SYMLINK_NOFOLLOW)?;
        attributes::set_of_link(folder.target.as_fd(), name, &facts)?;
    }
    Ok(())
}

fn open<N: Arg>((folder, name): (BorrowedFd<'_>, N), more: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | more, Mode::empty())
}

/// Opens a file whose name is cached without blocking, others as usual.
fn open_cached<N: Arg + Copy>((folder, name): (BorrowedFd<'_>, N)) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    rustix::fs::openat2(folder, name, flags, Mode::empty(), ResolveFlags::CACHED)
        .or_else(|_| open((folder, name), OFlags::empty()))
}

/// Reads bytes that are cached.
fn read_cached(input: &OwnedFd, block: &mut [u8]) -> Option<usize> {
    rustix::io::preadv2(input, &mut [IoSliceMut::new(block)], 0, ReadWriteFlags::NOWAIT).ok()
}

/// Creates a file that must not exist, with the mode that the umask leaves.
pub(super) fn create<N: Arg>((folder, name): (BorrowedFd<'_>, N), mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, mode)
}

/// Lets the kernel copy `size` bytes.
fn copy_range(input: &OwnedFd, output: &OwnedFd, size: u64) -> Result<(), Errno> {
    let mut left = size;
    while left > 0 {
        let piece = usize::try_from(left.min(RANGE)).unwrap_or(usize::MAX);
        let count = retry_on_intr(|| rustix::fs::copy_file_range(input, None, output, None, piece))?;
        if count == 0 {
            return Err(Errno::NODATA);
        }
        left = left.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
    }
    Ok(())
}

fn mode(facts: &Stat) -> Mode {
    Mode::from_raw_mode(facts.st_mode & 0o777)
}

fn length(facts: &Stat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or(0)
}

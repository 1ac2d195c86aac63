//! Transfers of bytes, and changes of a file's size and allocation.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Answering;
use super::open::access;
use crate::buffers::Block;
use crate::descriptor::Fd;
use crate::entry::FileKind;
use crate::error::Operation;
use crate::op::AT_POSITION;
use crate::vectored;

/// Maximum number of bytes moved by one copy_file_range(2); a larger request is a short transfer.
const MOST_COPIED: usize = 16 << 20;
/// Maximum file size in bytes.
const LARGEST: u64 = 1 << 44;

impl Answering<'_> {
    pub(super) fn read(
        &mut self,
        file: &Fd,
        block: &mut Option<Block>,
        skip: usize,
        at: u64,
        size: usize,
    ) -> Result<usize, Errno> {
        self.meet_fault_on(Operation::Read, &[file])?;
        let (number, _) = self.opened(file)?;
        if at == AT_POSITION && self.disk.inode(number)?.kind() == FileKind::Fifo {
            return Ok(0);
        }
        let number = self.readable(file)?;
        let block = block.as_mut().ok_or(Errno::FAULT)?;
        let end = block.capacity().min(skip.saturating_add(size));
        self.check_alignment(file, at, end.saturating_sub(skip))?;
        let wanted = self.shorten_of(file, end.saturating_sub(skip))?;
        let into = block.as_mut_capacity().get_mut(skip..skip + wanted).ok_or(Errno::FAULT)?;
        let count = self.disk.inode(number)?.content()?.read(at, into);
        block.set_filled(skip + count);
        Ok(count)
    }

    pub(super) fn read_vectored(
        &mut self,
        file: &Fd,
        blocks: &mut [Block],
        skip: usize,
        at: u64,
    ) -> Result<usize, Errno> {
        self.meet_fault_on(Operation::Read, &[file])?;
        let number = self.readable(file)?;
        let wanted = vectored::capacity(blocks).saturating_sub(skip);
        self.check_alignment(file, at, wanted)?;
        self.check_parts(file, vectored::to_fill(blocks, skip).iter().map(|part| part.len()))?;
        let mut bytes = vec![0; self.shorten_of(file, wanted)?];
        let count = self.disk.inode(number)?.content()?.read(at, &mut bytes);
        let mut left = &bytes[..count];
        for mut part in vectored::to_fill(blocks, skip) {
            let (here, rest) = left.split_at(left.len().min(part.len()));
            part[..here.len()].copy_from_slice(here);
            left = rest;
        }
        vectored::set_filled(blocks, skip + count);
        Ok(count)
    }

    pub(super) fn write(&mut self, file: &Fd, bytes: &[u8], at: u64) -> Result<usize, Errno> {
        self.meet_fault_on(Operation::Write, &[file])?;
        let number = self.writable(file)?;
        self.check_alignment(file, at, bytes.len())?;
        let size = self.shorten_of(file, bytes.len())?;
        self.put(number, at, &bytes[..size])
    }

    /// Writes as many bytes as there is space for.
    pub(super) fn put(&mut self, number: u64, at: u64, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if at.saturating_add(bytes.len() as u64) > LARGEST {
            return Err(Errno::FBIG);
        }
        let free = self.disk.free();
        let size = self.disk.inode(number)?.content()?.fitting(at, bytes.len(), free);
        if size == 0 {
            return Err(Errno::NOSPC);
        }
        self.disk.change(number, |content| content.write(at, &bytes[..size]))?;
        if self.disk.settings.uid != 0 {
            // A write without the right to keep them clears setuid and setgid.
            self.disk.inode_mut(number)?.mode &= !0o6000;
        }
        Ok(size)
    }

    pub(super) fn copy_range(
        &mut self,
        (source, at): (&Fd, u64),
        (target, target_at): (&Fd, u64),
        size: usize,
    ) -> Result<usize, Errno> {
        self.meet_fault_on(Operation::CopyRange, &[source, target])?;
        let (from, to) = (self.readable(source)?, self.writable(target)?);
        if !self.disk.settings.copies_ranges {
            return Err(Errno::OPNOTSUPP);
        }
        self.check_same_filesystem(from, to)?;
        let left = self.disk.inode(from)?.content()?.size().saturating_sub(at);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(size).min(MOST_COPIED);
        let (end, target_end) = (at + size as u64, target_at.saturating_add(size as u64));
        if from == to && at < target_end && target_at < end {
            return Err(Errno::INVAL);
        }
        if size == 0 {
            return Ok(0);
        }
        let size = self.shorten(size);
        let mut bytes = vec![0; size];
        self.disk.inode(from)?.content()?.read(at, &mut bytes);
        self.put(to, target_at, &bytes)
    }

    /// Reads and writes.
    pub(super) fn copy_buffered(
        &mut self,
        (source, at): (&Fd, u64),
        (target, target_at): (&Fd, u64),
        size: usize,
    ) -> Result<usize, Errno> {
        self.meet_fault_on(Operation::Read, &[source])?;
        let from = self.readable(source)?;
        let mut bytes = vec![0; self.shorten_of(source, size)?];
        let count = self.disk.inode(from)?.content()?.read(at, &mut bytes);
        self.write(target, &bytes[..count], target_at)
    }

    pub(super) fn clone_file(&mut self, source: &Fd, target: &Fd) -> Result<(), Errno> {
        self.meet_fault_on(Operation::Clone, &[source, target])?;
        let (from, to) = (self.readable(source)?, self.writable(target)?);
        if !self.disk.settings.clones {
            return Err(Errno::OPNOTSUPP);
        }
        self.check_same_filesystem(from, to)?;
        let content = self.disk.inode(from)?.content()?.clone();
        let freed = self.disk.inode(to)?.content()?.allocated();
        if content.allocated() > self.disk.free() + freed {
            return Err(Errno::NOSPC);
        }
        self.disk.change(to, |target| *target = content)
    }

    pub(super) fn seek(&mut self, file: &Fd, at: u64, hole: bool) -> Result<Option<u64>, Errno> {
        self.meet_fault_on(Operation::Seek, &[file])?;
        let (number, _) = self.opened(file)?;
        let content = self.disk.inode(number)?.content()?;
        if !self.disk.settings.finds_holes {
            let found = if hole { content.size() } else { at };
            return Ok(Some(found).filter(|_| at < content.size()));
        }
        Ok(if hole { content.next_hole(at) } else { content.next_data(at) })
    }

    pub(super) fn allocate(&mut self, file: &Fd, at: u64, size: u64) -> Result<(), Errno> {
        self.meet_fault_on(Operation::Allocate, &[file])?;
        let number = self.writable(file)?;
        if !self.disk.settings.allocates {
            return Err(Errno::OPNOTSUPP);
        }
        if size == 0 {
            return Err(Errno::INVAL);
        }
        if at.saturating_add(size) > LARGEST {
            return Err(Errno::FBIG);
        }
        if self.disk.inode(number)?.content()?.cost_of_reserve(at, size) > self.disk.free() {
            return Err(Errno::NOSPC);
        }
        self.disk.change(number, |content| content.reserve(at, size))
    }

    pub(super) fn truncate(&mut self, file: &Fd, size: u64) -> Result<(), Errno> {
        self.meet_fault_on(Operation::Truncate, &[file])?;
        // ftruncate(2) alone answers EINVAL if the file is not open for writing.
        let number = self.writable(file).map_err(|_| Errno::INVAL)?;
        if size > LARGEST {
            return Err(Errno::FBIG);
        }
        self.disk.change(number, |content| content.set_size(size))
    }

    /// Returns the inode if the file is open for reading and has content.
    fn readable(&self, file: &Fd) -> Result<u64, Errno> {
        let (number, flags) = self.opened(file)?;
        if !access(flags).0 {
            return Err(Errno::BADF);
        }
        let inode = self.disk.inode(number)?;
        if inode.kind() == FileKind::Fifo {
            return Err(Errno::SPIPE);
        }
        inode.content().map(|_| number)
    }

    /// Returns the inode if the file is open for writing and has content.
    fn writable(&self, file: &Fd) -> Result<u64, Errno> {
        let (number, flags) = self.opened(file)?;
        if !access(flags).1 {
            return Err(Errno::BADF);
        }
        self.disk.inode(number)?.content().map(|_| number)
    }

    fn check_same_filesystem(&self, one: u64, other: u64) -> Result<(), Errno> {
        let same = self.disk.inode(one)?.device == self.disk.inode(other)?.device;
        if same { Ok(()) } else { Err(Errno::XDEV) }
    }

    fn check_alignment(&self, file: &Fd, at: u64, size: usize) -> Result<(), Errno> {
        let sector = self.sector_of(file)?;
        let is_aligned = at.is_multiple_of(sector) && (size as u64).is_multiple_of(sector);
        if is_aligned { Ok(()) } else { Err(Errno::INVAL) }
    }

    /// Checks the alignment of each part of a transfer.
    pub(super) fn check_parts(&self, file: &Fd, mut sizes: impl Iterator<Item = usize>) -> Result<(), Errno> {
        let sector = self.sector_of(file)?;
        let is_aligned = sizes.all(|size| (size as u64).is_multiple_of(sector));
        if is_aligned { Ok(()) } else { Err(Errno::INVAL) }
    }

    /// Returns the alignment of a file's transfers, in bytes.
    pub(super) fn sector_of(&self, file: &Fd) -> Result<u64, Errno> {
        let (_, flags) = self.opened(file)?;
        Ok(if flags.contains(OFlags::DIRECT) { self.disk.settings.direct_alignment } else { 1 })
    }
}

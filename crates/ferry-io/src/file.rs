//! Operations of an open file: reading, writing and shaping it.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::buffers::Block;
use crate::choose::Ways;
use crate::descriptor::{Descriptor, Dir, File};
use crate::entry::{Stat, Times, Xattr, is_no_value, names_in};
use crate::error::{Error, Operation, Result};
use crate::op::{AT_POSITION, FileOrEntry, Op, Outcome, Sync, expect_outcome};
use crate::sys;
use crate::vectored;
use crate::worker::{submit, submit_overlapping};

/// Permission bits of `mode`: 0 to 0o7777.
pub(crate) fn mode_bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

async fn done(op: Op) -> Result<()> {
    expect_outcome!(submit(op).await.1, Outcome::Done => ())
}

/// Reads every readable extended attribute; none if the filesystem has none.
pub(crate) async fn xattrs_of(place: FileOrEntry) -> Result<Vec<Xattr>> {
    let op = Op::ListXattr { place: place.clone() };
    let names = match expect_outcome!(submit(op).await.1, Outcome::Bytes(names) => names) {
        Err(error) if error.is(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        answer => answer?,
    };
    let mut found = Vec::new();
    for name in names_in(&names) {
        let op = Op::GetXattr { place: place.clone(), name: name.to_owned() };
        match expect_outcome!(submit(op).await.1, Outcome::Bytes(value) => value) {
            Ok(value) => found.push((name.to_owned(), value)),
            Err(error) if error.as_errno().is_some_and(is_no_value) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

impl File {
    fn place(&self) -> FileOrEntry {
        FileOrEntry::Open(self.fd())
    }

    /// Closes the file, unless a clone keeps it open, and reports errors that dropping it would hide: a network
    /// filesystem or a quota may refuse written bytes only now.
    ///
    /// # Errors
    /// Those of close(2); the descriptor is closed all the same.
    pub fn close(self) -> Result<()> {
        match Arc::into_inner(self.fd) {
            Some(Descriptor::Real(fd)) => {
                crate::sys::close(fd).map_err(|errno| Error::errno(Operation::Close, errno))
            }
            Some(Descriptor::Sim(fd)) => fd.close().map_err(|errno| Error::errno(Operation::Close, errno)),
            None => Ok(()),
        }
    }

    /// As [`Self::close`] for a file of the folder `dir`, on the route that is cheapest there: over a network, closing waits
    /// until the bytes are sent.
    ///
    /// ```
    /// use ferry_io::{Error, Name, OpenHow, Options, run};
    ///
    /// # let temporary = tempfile::tempdir().expect("a folder");
    /// let (outcome, _stats) = run(&Options::default(), async |io| {
    ///     let folder = io.open_dir(temporary.path())?;
    ///     let name = Name::new(b"new").expect("one component of a path");
    ///     let file = folder.open(&name, OpenHow::create(0o644)).await?;
    ///     file.close_in(&folder).await?;
    ///     Ok::<(), Error>(())
    /// })?;
    /// outcome?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of close(2); the descriptor is closed all the same.
    pub async fn close_in(self, dir: &Dir) -> Result<()> {
        let op = Op::Close { dir: Arc::clone(&dir.fd), file: Some(self.fd) };
        expect_outcome!(submit(op).await.1, Outcome::Done => ())
    }

    /// Its attributes.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub async fn stat(&self) -> Result<Stat> {
        let op = Op::Stat { place: self.place(), follow: false, birth: false };
        expect_outcome!(submit(op).await.1, Outcome::Stat(stat) => stat)
    }

    /// Its attributes with the birth time ([`Stat::born`]), which tells it from a removed file with the same inode
    /// number.
    ///
    /// # Errors
    /// Those of statx(2).
    pub async fn identify(&self) -> Result<Stat> {
        let op = Op::Stat { place: self.place(), follow: false, birth: true };
        expect_outcome!(submit(op).await.1, Outcome::Stat(stat) => stat)
    }

    /// The target of a symbolic link opened by [`crate::Dir::reach`].
    ///
    /// # Errors
    /// Those of readlinkat(2); ENOENT if it is no link.
    pub async fn read_link(&self) -> Result<Vec<u8>> {
        let op = Op::ReadLink { place: self.place() };
        expect_outcome!(submit(op).await.1, Outcome::Bytes(target) => target)
    }

    /// Reads up to a block at `offset`; returns the block with the bytes, and their number, 0 at the end.
    pub async fn read_at(&self, block: Block, offset: u64) -> (Block, Result<usize>) {
        let size = block.capacity();
        self.read_some_at(block, size, offset).await
    }

    /// Reads up to `size` bytes at `offset` into the block; 0 at the end.
    pub async fn read_some_at(&self, block: Block, size: usize, offset: u64) -> (Block, Result<usize>) {
        self.read_more_at(block, 0, size, offset, false).await
    }

    /// Reads up to `size` bytes at `offset` behind the `skip` bytes in the block; 0 at the end. Routed as a request whose
    /// fiber has other work meanwhile.
    ///
    /// ```
    /// use ferry_io::{Error, Name, OpenHow, Options, run};
    ///
    /// # let temporary = tempfile::tempdir().expect("a folder");
    /// # std::fs::write(temporary.path().join("text"), "ab").expect("a file");
    /// let (outcome, _stats) = run(&Options::default(), async |io| {
    ///     let folder = io.open_dir(temporary.path())?;
    ///     let file = folder.open(&Name::new(b"text").expect("a name"), OpenHow::read()).await?;
    ///     let (block, count) = file.read_beside_at(io.block().await?, 0, 1, 0).await;
    ///     assert_eq!(count?, 1);
    ///     let (block, count) = file.read_beside_at(block, 1, 1, 1).await;
    ///     assert_eq!((count?, block.as_slice()), (1, &b"ab"[..]));
    ///     Ok::<(), Error>(())
    /// })?;
    /// outcome?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn read_beside_at(
        &self,
        block: Block,
        skip: usize,
        size: usize,
        offset: u64,
    ) -> (Block, Result<usize>) {
        self.read_more_at(block, skip, size, offset, true).await
    }

    /// Reads up to `size` bytes at `offset` behind the `skip` bytes in the block. With `waits` the read leaves the
    /// worker.
    pub(crate) async fn read_more_at(
        &self,
        block: Block,
        skip: usize,
        size: usize,
        offset: u64,
        waits: bool,
    ) -> (Block, Result<usize>) {
        let op = Op::Read { file: self.fd(), block: Some(block), skip, at: offset, size };
        let (op, result) = if waits { submit_overlapping(op).await } else { submit(op).await };
        (block_of(op), expect_outcome!(result, Outcome::Count(count) => count))
    }

    /// Writes the block's bytes from `skip` on at `offset`; may write fewer. With `overlaps` the write leaves the
    /// worker, which has other work meanwhile.
    pub(crate) async fn write_some_at(
        &self,
        block: Block,
        skip: usize,
        offset: u64,
        overlaps: bool,
    ) -> (Block, Result<usize>) {
        let op = Op::Write { file: self.fd(), block: Some(block), skip, at: offset };
        let (op, result) = if overlaps { submit_overlapping(op).await } else { submit(op).await };
        (block_of(op), expect_outcome!(result, Outcome::Count(count) => count))
    }

    /// Writes all of the block's bytes at `offset`.
    pub async fn write_all_at(&self, block: Block, offset: u64) -> (Block, Result<()>) {
        self.write_whole(block, offset, false).await
    }

    /// Writes the block's bytes from `start` to `end` at `offset`.
    pub async fn write_part_at(
        &self,
        mut block: Block,
        (start, end): (usize, usize),
        offset: u64,
    ) -> (Block, Result<()>) {
        let whole = block.as_slice().len();
        block.set_filled(end.min(whole));
        let mut at = start;
        while at < end.min(whole) {
            let (back, result) = self.write_some_at(block, at, offset + (at - start) as u64, false).await;
            block = back;
            match result {
                Ok(0) => return (block, Err(Error::errno(Operation::Write, Errno::IO))),
                Ok(count) => at += count,
                Err(error) => return (block, Err(error)),
            }
        }
        block.set_filled(whole);
        (block, Ok(()))
    }

    /// Writes all of the block's bytes at `offset`; `overlaps` as for [`Self::write_some_at`].
    pub(crate) async fn write_whole(
        &self,
        mut block: Block,
        offset: u64,
        overlaps: bool,
    ) -> (Block, Result<()>) {
        let mut written = 0;
        while written < block.as_slice().len() {
            let at = if offset == AT_POSITION { offset } else { offset + written as u64 };
            let (back, result) = self.write_some_at(block, written, at, overlaps).await;
            block = back;
            match result {
                Ok(0) => return (block, Err(Error::errno(Operation::Write, Errno::IO))),
                Ok(count) => written += count,
                Err(error) => return (block, Err(error)),
            }
        }
        (block, Ok(()))
    }

    /// Reads at `offset` into several blocks, until they are full or the file ends, by as few calls as possible
    /// (preadv(2)). Returns the blocks, also with an error, and the number of bytes.
    pub async fn read_vectored_at(&self, mut blocks: Vec<Block>, offset: u64) -> (Vec<Block>, Result<usize>) {
        vectored::set_filled(&mut blocks, 0);
        let mut filled = 0;
        while filled < vectored::capacity(&blocks) {
            let Some(at) = place_of(offset, filled) else {
                return (blocks, Err(Error::errno(Operation::Read, Errno::INVAL)));
            };
            let op = Op::ReadVectored { file: self.fd(), blocks, skip: filled, at, uncached: false };
            let (op, result) = submit(op).await;
            blocks = blocks_of(op);
            match expect_outcome!(result, Outcome::Count(count) => count) {
                Ok(0) => break,
                Ok(count) => filled += count,
                // Direct I/O can't go on from the unaligned end of a file.
                Err(error) if filled > 0 && error.is(Errno::INVAL) => break,
                Err(error) => return (blocks, Err(error)),
            }
        }
        (blocks, Ok(filled))
    }

    /// Writes the contents of several blocks, one behind the other, at `offset` by as few calls as possible
    /// (pwritev(2)).
    pub async fn write_vectored_at(&self, mut blocks: Vec<Block>, offset: u64) -> (Vec<Block>, Result<()>) {
        let mut written = 0;
        while written < vectored::size(&blocks) {
            let Some(at) = place_of(offset, written) else {
                return (blocks, Err(Error::errno(Operation::Write, Errno::INVAL)));
            };
            let op = Op::WriteVectored { file: self.fd(), blocks, skip: written, at, uncached: false };
            let (op, result) = submit(op).await;
            blocks = blocks_of(op);
            match expect_outcome!(result, Outcome::Count(count) => count) {
                Ok(0) => return (blocks, Err(Error::errno(Operation::Write, Errno::IO))),
                Ok(count) => written += count,
                Err(error) => return (blocks, Err(error)),
            }
        }
        (blocks, Ok(()))
    }

    /// Reads up to a block from the file's own position, for pipes and terminals.
    pub async fn read_next(&self, block: Block) -> (Block, Result<usize>) {
        self.read_at(block, AT_POSITION).await
    }

    /// Writes all of the block's bytes at the file's own position, for pipes and terminals.
    pub async fn write_next(&self, block: Block) -> (Block, Result<()>) {
        self.write_whole(block, AT_POSITION, false).await
    }

    /// Lets the kernel copy up to `size` bytes to `target`; it may copy fewer, and 0 at the end. With `leaves_worker`
    /// the call leaves the worker, for a range that is long or not in memory.
    ///
    /// # Errors
    /// Those of copy_file_range(2).
    pub async fn copy_range(
        &self,
        at: u64,
        target: &Self,
        target_at: u64,
        size: usize,
        leaves_worker: bool,
    ) -> Result<usize> {
        let (source, target) = (self.fd(), target.fd());
        let op = Op::CopyRange { source, source_at: at, target, target_at, size };
        let (_, result) = if leaves_worker { submit_overlapping(op).await } else { submit(op).await };
        expect_outcome!(result, Outcome::Count(count) => count)
    }

    /// Copies up to `size` bytes to the same offset of `target`, piece by piece, by the fastest of `ways`. Leaves the
    /// worker. May copy fewer, and 0 at the end.
    ///
    /// # Errors
    /// Those of the first of the ways: copy_file_range(2), or read(2) and write(2).
    pub async fn copy_pieces(&self, at: u64, target: &Self, size: usize, ways: &Arc<Ways>) -> Result<usize> {
        let (source, target, ways) = (self.fd(), target.fd(), Arc::clone(ways));
        let (_, result) = submit_overlapping(Op::CopyPieces { source, target, at, size, ways }).await;
        expect_outcome!(result, Outcome::Count(count) => count)
    }

    /// The magic number of its filesystem (statfs(2)); `None` on failure.
    #[must_use]
    pub fn filesystem_magic(&self) -> Option<u64> {
        self.fd.filesystem_magic()
    }

    /// Makes `target` share all of this file's extents (FICLONE).
    ///
    /// # Errors
    /// Those of ioctl_ficlone(2).
    pub async fn clone_to(&self, target: &Self) -> Result<()> {
        done(Op::Clone { source: self.fd(), target: target.fd() }).await
    }

    /// The offset of the next data at or after `offset`; `None` if there is none (SEEK_DATA).
    ///
    /// # Errors
    /// Those of lseek(2).
    pub async fn seek_data(&self, offset: u64) -> Result<Option<u64>> {
        let op = Op::Seek { file: self.fd(), at: offset, hole: false };
        expect_outcome!(submit(op).await.1, Outcome::Offset(found) => found)
    }

    /// The offset of the next hole at or after `offset`, the file's end included; `None` past the end (SEEK_HOLE).
    ///
    /// # Errors
    /// Those of lseek(2).
    pub async fn seek_hole(&self, offset: u64) -> Result<Option<u64>> {
        let op = Op::Seek { file: self.fd(), at: offset, hole: true };
        expect_outcome!(submit(op).await.1, Outcome::Offset(found) => found)
    }

    /// Reserves room without changing the size (fallocate(2), FALLOC_FL_KEEP_SIZE).
    ///
    /// # Errors
    /// Those of fallocate(2).
    pub async fn allocate(&self, offset: u64, size: u64) -> Result<()> {
        done(Op::Allocate { file: self.fd(), at: offset, size }).await
    }

    /// Sets the size.
    ///
    /// # Errors
    /// Those of ftruncate(2).
    pub async fn truncate(&self, size: u64) -> Result<()> {
        done(Op::Truncate { file: self.fd(), size }).await
    }

    /// Makes the file and its attributes durable (fsync(2)).
    ///
    /// # Errors
    /// Those of fsync(2).
    pub async fn sync(&self) -> Result<()> {
        done(Op::Sync { file: self.fd(), how: Sync::File }).await
    }

    /// Makes the whole filesystem that holds this file durable (syncfs(2)). That includes a server's copy only if the
    /// filesystem asks for it, which FUSE does not.
    ///
    /// # Errors
    /// Those of syncfs(2); since Linux 5.8 also writes that failed since this descriptor was opened.
    pub async fn sync_filesystem(&self) -> Result<()> {
        done(Op::Sync { file: self.fd(), how: Sync::Filesystem }).await
    }

    /// Makes the file's bytes durable (fdatasync(2)).
    ///
    /// # Errors
    /// Those of fdatasync(2).
    pub async fn sync_data(&self) -> Result<()> {
        done(Op::Sync { file: self.fd(), how: Sync::Data }).await
    }

    /// Starts write-back of a range and returns (sync_file_range(2)).
    ///
    /// # Errors
    /// Those of sync_file_range(2).
    pub async fn start_write_back(&self, offset: u64, size: u64) -> Result<()> {
        done(Op::Sync { file: self.fd(), how: Sync::Start { at: offset, size } }).await
    }

    /// Writes a range back and waits for it (sync_file_range(2)). Its pages are clean afterwards, but the file's
    /// attributes and the device's cache are not durable. With `forgets` the pages leave the page cache
    /// (posix_fadvise(2), POSIX_FADV_DONTNEED) where supported.
    ///
    /// # Errors
    /// Those of sync_file_range(2), and any errno of a failed write-back. The kernel reports each failure once per
    /// descriptor, so no later call on this file reports it again.
    pub async fn finish_write_back(&self, offset: u64, size: u64, forgets: bool) -> Result<()> {
        done(Op::Sync { file: self.fd(), how: Sync::Finish { at: offset, size, forgets } }).await
    }

    /// Locks the file for this run alone (flock(2), LOCK_EX). Returns false if another lock forbids it. Closing the last
    /// clone releases it.
    ///
    /// # Errors
    /// Those of flock(2), where locks are unsupported for example.
    pub fn try_lock(&self) -> Result<bool> {
        self.fd.try_lock(true)
    }

    /// Locks the file together with other runs that do so (flock(2), LOCK_SH). Returns false if [`Self::try_lock`] of another
    /// forbids it. Closing the last clone releases it.
    ///
    /// ```
    /// use ferry_io::{File, Name, OpenHow, Options, Paths, run};
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("file"), "")?;
    /// let (locks, _) = run(&Options::default(), async |io| {
    ///     let folder = io.folder(&Paths::new(), folder.path())?;
    ///     let name = Name::new(b"file").expect("a name");
    ///     let first: File = folder.open(&name, OpenHow::read()).await?;
    ///     let second: File = folder.open(&name, OpenHow::read()).await?;
    ///     Ok::<_, ferry_io::Error>((first.try_lock_shared()?, second.try_lock_shared()?, second.try_lock()?))
    /// })?;
    /// assert_eq!(locks?, (true, true, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of flock(2), where locks are unsupported for example.
    pub fn try_lock_shared(&self) -> Result<bool> {
        self.fd.try_lock(false)
    }

    /// Sets the owner and the group; `None` leaves one as it is.
    ///
    /// # Errors
    /// Those of fchown(2).
    pub async fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        done(Op::SetOwner { file: self.fd(), uid, gid }).await
    }

    /// Sets the mode: 0 to 0o7777.
    ///
    /// # Errors
    /// Those of fchmod(2).
    pub async fn set_mode(&self, mode: u32) -> Result<()> {
        done(Op::SetMode { file: self.fd(), mode: mode_bits(mode) }).await
    }

    /// Advises the kernel that the file will be read in order, so that it reads further ahead (posix_fadvise(2),
    /// POSIX_FADV_SEQUENTIAL).
    pub fn expect_sequential(&self) {
        match &*self.fd {
            Descriptor::Real(handle) => sys::expect_sequential(handle.fd()),
            Descriptor::Sim(_) => {}
        }
    }

    /// Sets access and modification time.
    ///
    /// # Errors
    /// Those of futimens(3).
    pub async fn set_times(&self, times: Times) -> Result<()> {
        done(Op::SetTimes { file: self.fd(), times }).await
    }

    /// Every readable extended attribute; none if the filesystem has none.
    ///
    /// # Errors
    /// Those of flistxattr(2) and fgetxattr(2).
    pub async fn xattrs(&self) -> Result<Vec<Xattr>> {
        xattrs_of(self.place()).await
    }

    /// Sets one extended attribute.
    ///
    /// # Errors
    /// Those of fsetxattr(2).
    pub async fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()> {
        let name: CString = name.to_owned();
        done(Op::SetXattr { file: self.fd(), name, value: Some(value.to_vec()) }).await
    }

    /// Removes one extended attribute.
    ///
    /// # Errors
    /// Those of fremovexattr(2); ENODATA if it is missing.
    pub async fn remove_xattr(&self, name: &CStr) -> Result<()> {
        done(Op::SetXattr { file: self.fd(), name: name.to_owned(), value: None }).await
    }

    /// Bytes of the range in memory, and the dirty part of them (cachestat(2), Linux 6.5); `None` where unsupported.
    #[must_use]
    pub fn cached_bytes(&self, offset: u64, size: u64) -> Option<(u64, u64)> {
        match &*self.fd {
            Descriptor::Real(handle) => sys::cached_bytes(handle.fd(), offset, size).ok(),
            Descriptor::Sim(_) => None,
        }
    }
}

/// The block of a returned request.
///
/// # Panics
/// If a backend kept it, which would be a bug.
fn block_of(op: Option<Op>) -> Block {
    match op {
        Some(Op::Read { block: Some(block), .. } | Op::Write { block: Some(block), .. }) => block,
        other => unreachable!("a backend gave back {other:?}"),
    }
}

pub(crate) fn blocks_of(op: Option<Op>) -> Vec<Block> {
    match op {
        Some(Op::ReadVectored { blocks, .. } | Op::WriteVectored { blocks, .. }) => blocks,
        other => unreachable!("a backend gave back {other:?}"),
    }
}

/// The offset after `done` bytes; `None` beyond the largest, which the kernel would take for the file's own position.
fn place_of(offset: u64, done: usize) -> Option<u64> {
    offset.checked_add(done as u64).filter(|&at| i64::try_from(at).is_ok())
}

//! Conversion of a request to a submission entry, and of the kernel's answer to an outcome.
//!
//! An entry holds addresses of the request's names, block and descriptors. They stay valid when the request moves:
//! names and blocks are behind their own pointers, the statx buffer is boxed, and the parts of a vectored transfer are
//! in a vector. Invariant: the request is kept until its last completion was taken (guard: `cancelling_reaps`).

use std::io::IoSliceMut;
use std::mem::MaybeUninit;

use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use rustix::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags, makedev};
use rustix::io::Errno;

use crate::confine::{at_bits, open_flags};
use crate::descriptor::{Descriptor, Fd};
use crate::entry::{FileKind, Stat, Time, Times};
use crate::name::Name;
use crate::op::{FileOrEntry, Op, Outcome, Sync};
use crate::vectored;

/// `RWF_DONTCACHE` (Linux 6.14): write back at once and drop the pages.
const RWF_DONTCACHE: i32 = 0x80;

/// Buffer that statx(2) fills.
pub(super) type Statx = Box<MaybeUninit<libc::statx>>;

/// Parts of a vectored transfer (iovec(3)).
pub(super) type Parts = Vec<libc::iovec>;

/// Registered buffers: their start, and the size of each in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registered {
    pub(super) base: *mut u8,
    pub(super) each: usize,
}

impl Registered {
    /// Index of the registered buffer that holds `address`.
    fn index_of(self, address: *const u8) -> Option<u16> {
        u16::try_from((address.addr() - self.base.addr()) / self.each).ok()
    }
}

pub(super) fn fd_of(fd: &Fd) -> types::Fd {
    types::Fd(fd.fd().as_raw_fd())
}

/// Builds the entry of a request; `None` if io_uring does not support it, or not with these arguments.
pub(super) fn entry(
    op: &mut Op,
    (statx, parts): (&mut Option<Statx>, &mut Parts),
    registered: Option<Registered>,
) -> Option<Entry> {
    match op {
        Op::ReadVectored { file, blocks, skip, at, uncached } => {
            let slices = vectored::to_fill(blocks, *skip).into_iter();
            let part = |mut part: IoSliceMut<'_>| part_of(part.as_mut_ptr(), part.len());
            *parts = slices.map(part).collect();
            let read = opcode::Readv::new(fd_of(file), parts.as_ptr(), u32::try_from(parts.len()).ok()?);
            Some(read.offset(*at).rw_flags(flags_of(*uncached)).build())
        }
        Op::WriteVectored { file, blocks, skip, at, uncached } => {
            let slices = vectored::to_write(blocks, *skip).into_iter();
            *parts = slices.map(|part| part_of(part.as_ptr().cast_mut(), part.len())).collect();
            let write = opcode::Writev::new(fd_of(file), parts.as_ptr(), u32::try_from(parts.len()).ok()?);
            Some(write.offset(*at).rw_flags(flags_of(*uncached)).build())
        }
        Op::Open { dir, name, flags, mode, follow } => {
            let flags = open_flags(*flags, *follow) | OFlags::CLOEXEC;
            let open = opcode::OpenAt::new(fd_of(dir), c_name(name));
            Some(open.flags(flags.bits().cast_signed()).mode(mode.bits()).build())
        }
        Op::Stat { place, follow, birth } => {
            let buffer = statx.insert(Box::new(MaybeUninit::uninit()));
            Some(stat_entry(place, (*follow, *birth), buffer.as_mut_ptr()))
        }
        Op::Read { file, block, skip, at, size } => {
            let block = block.as_ref()?;
            let room = block.capacity().checked_sub(*skip)?.min(*size);
            let buffer = block.address().wrapping_add(*skip);
            Some(read_entry(fd_of(file), buffer, u32::try_from(room).ok()?, *at, registered))
        }
        Op::Write { file, block, skip, at } => {
            let bytes = block.as_ref()?.as_slice().get(*skip..)?;
            write_entry(fd_of(file), bytes, *at, registered)
        }
        Op::Allocate { file, at, size } => {
            let allocate = opcode::Fallocate::new(fd_of(file), *size);
            Some(allocate.offset(*at).mode(libc::FALLOC_FL_KEEP_SIZE).build())
        }
        Op::Truncate { file, size } => Some(opcode::Ftruncate::new(fd_of(file), *size).build()),
        Op::Sync { file, how } => sync_entry(fd_of(file), *how),
        Op::MakeDirectory { dir, name, mode } => {
            Some(opcode::MkDirAt::new(fd_of(dir), c_name(name)).mode(mode.bits()).build())
        }
        Op::Symlink { dir, name, target } => {
            Some(opcode::SymlinkAt::new(fd_of(dir), target.as_ptr(), c_name(name)).build())
        }
        Op::Link { dir, name, new_dir, new_name, flags } => {
            let link = opcode::LinkAt::new(fd_of(dir), c_name(name), fd_of(new_dir), c_name(new_name));
            Some(link.flags(flags.bits().cast_signed()).build())
        }
        Op::Rename { dir, name, new_dir, new_name, mode } => {
            let rename = opcode::RenameAt::new(fd_of(dir), c_name(name), fd_of(new_dir), c_name(new_name));
            Some(rename.flags(mode.flags().bits()).build())
        }
        Op::Unlink { dir, name, directory } => {
            let flags = if *directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            let unlink = opcode::UnlinkAt::new(fd_of(dir), c_name(name));
            Some(unlink.flags(flags.bits().cast_signed()).build())
        }
        Op::CopyRange { .. }
        | Op::CopyPieces { .. }
        | Op::Clone { .. }
        | Op::Seek { .. }
        | Op::ReadLink { .. } => None,
        Op::List { .. } | Op::Enter { .. } | Op::Examine { .. } | Op::Load { .. } | Op::Chain { .. } => None,
        Op::OpenUnnamed { .. } | Op::LinkOpen { .. } => None,
        Op::MakeNode { .. } | Op::SetOwner { .. } | Op::SetMode { .. } | Op::SetTimes { .. } => None,
        Op::ListXattr { .. } | Op::GetXattr { .. } | Op::SetXattr { .. } | Op::Close { .. } => None,
    }
}

fn flags_of(uncached: bool) -> i32 {
    if uncached { RWF_DONTCACHE } else { 0 }
}

fn part_of(address: *mut u8, size: usize) -> libc::iovec {
    libc::iovec { iov_base: address.cast(), iov_len: size }
}

fn c_name(name: &Name) -> *const libc::c_char {
    name.as_c_str().as_ptr()
}

fn write_entry(file: types::Fd, bytes: &[u8], at: u64, registered: Option<Registered>) -> Option<Entry> {
    let (address, size) = (bytes.as_ptr(), u32::try_from(bytes.len()).ok()?);
    Some(match registered.and_then(|registered| registered.index_of(address)) {
        Some(index) => opcode::WriteFixed::new(file, address, size, index).offset(at).build(),
        None => opcode::Write::new(file, address, size).offset(at).build(),
    })
}

fn read_entry(file: types::Fd, buffer: *mut u8, size: u32, at: u64, registered: Option<Registered>) -> Entry {
    match registered.and_then(|registered| registered.index_of(buffer)) {
        Some(index) => opcode::ReadFixed::new(file, buffer, size, index).offset(at).build(),
        None => opcode::Read::new(file, buffer, size).offset(at).build(),
    }
}

fn stat_entry(place: &FileOrEntry, (follow, birth): (bool, bool), buffer: *mut libc::statx) -> Entry {
    let (dir, name, flags) = match place {
        FileOrEntry::Open(file) => (file, c"".as_ptr(), libc::AT_EMPTY_PATH),
        FileOrEntry::Entry(dir, name) => (dir, c_name(name), at_bits(follow)),
    };
    // statx(2) may mount an automount point, which fstatat(2) never does.
    let statx = opcode::Statx::new(fd_of(dir), name, buffer.cast()).flags(flags | libc::AT_NO_AUTOMOUNT);
    let birth = if birth { libc::STATX_BTIME } else { 0 };
    statx.mask(libc::STATX_BASIC_STATS | birth).build()
}

fn sync_entry(file: types::Fd, how: Sync) -> Option<Entry> {
    match how {
        Sync::File => Some(opcode::Fsync::new(file).build()),
        Sync::Data => Some(opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build()),
        Sync::Start { at, size } => {
            let range = opcode::SyncFileRange::new(file, u32::try_from(size).ok()?);
            Some(range.offset(at).flags(libc::SYNC_FILE_RANGE_WRITE).build())
        }
        Sync::Finish { .. } | Sync::Filesystem => None,
    }
}

/// Decodes a completion's result: a count, a descriptor, or a negative error number.
pub(super) fn answer(result: i32) -> Result<u32, Errno> {
    u32::try_from(result).map_err(|_| Errno::from_raw_os_error(result.wrapping_neg()))
}

/// Converts an answer to the outcome that the plain call would have.
pub(super) fn outcome(op: &mut Op, statx: Option<Statx>, answer: u32) -> Result<Outcome, Errno> {
    match (op, statx) {
        (Op::Open { .. }, _) => {
            // SAFETY: the kernel has just made this descriptor for this request, and nobody else knows it.
            let fd = unsafe { OwnedFd::from_raw_fd(answer.cast_signed()) };
            Ok(Outcome::Descriptor(Descriptor::from(fd)))
        }
        (Op::Stat { birth, .. }, Some(statx)) => {
            // SAFETY: the request succeeded, so the kernel has filled it; its fields are integers, valid with any value.
            let statx = unsafe { statx.assume_init() };
            let stat = stat_of(&statx);
            // Some filesystems report the birth time without being asked.
            Ok(Outcome::Stat(Stat { born: stat.born.filter(|_| *birth), ..stat }))
        }
        (Op::Stat { .. }, None) => Err(Errno::FAULT),
        (Op::Read { block, skip, .. }, _) => {
            let count = answer as usize;
            block.as_mut().ok_or(Errno::FAULT)?.set_filled(*skip + count);
            Ok(Outcome::Count(count))
        }
        (Op::Chain { block, .. }, _) => {
            let count = answer as usize;
            block.as_mut().ok_or(Errno::FAULT)?.set_filled(count);
            Ok(Outcome::Count(count))
        }
        (Op::ReadVectored { blocks, skip, .. }, _) => {
            let count = answer as usize;
            vectored::set_filled(blocks, *skip + count);
            Ok(Outcome::Count(count))
        }
        (Op::Write { .. } | Op::WriteVectored { .. }, _) => Ok(Outcome::Count(answer as usize)),
        _done => Ok(Outcome::Done),
    }
}

fn stat_of(statx: &libc::statx) -> Stat {
    let mode = u32::from(statx.stx_mode);
    let time = |time: libc::statx_timestamp| Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec };
    Stat {
        kind: FileKind::from_type(FileType::from_raw_mode(mode)).unwrap_or(FileKind::Regular),
        mode: mode & 0o7777,
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        links: u64::from(statx.stx_nlink),
        device: makedev(statx.stx_dev_major, statx.stx_dev_minor),
        inode: statx.stx_ino,
        special: makedev(statx.stx_rdev_major, statx.stx_rdev_minor),
        size: statx.stx_size,
        blocks: statx.stx_blocks,
        times: Times { accessed: time(statx.stx_atime), modified: time(statx.stx_mtime) },
        changed: time(statx.stx_ctime),
        born: (statx.stx_mask & libc::STATX_BTIME != 0).then(|| time(statx.stx_btime)),
    }
}

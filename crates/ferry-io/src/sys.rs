//! Requests as plain system calls, for the inline route and the pool.
//!
//! [`perform`] answers one request. With [`Patience::Ask`] it does not block on a device where the kernel offers a way:
//! opens use RESOLVE_CACHED and reads RWF_NOWAIT, and EAGAIN means not cached. EINTR is retried; the caller gets every
//! other answer.

mod attributes;
mod bytes;
mod counted;
mod direct;
mod examine;
mod list;
mod load;
mod opening;
mod pieces;
mod preload;
mod waiting;
mod xattr;

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RawMode, StatxAttributes, StatxFlags, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;

use crate::confine::{at_flags, open_flags};
use crate::descriptor::{Descriptor, Handle};
use crate::entry::{RenameMode, Stat, Times};
use crate::name::Name;
use crate::op::{FileOrEntry, Op, Outcome, Sync};

use attributes::read_link;
pub(crate) use bytes::{bytes_to_write, cached_bytes, is_kernel_at_least, write_joined};
use counted::{Newer, checked};
pub(crate) use counted::{Patience, call, count_call, take_calls, voluntary_switches};
pub(crate) use direct::{
    block_bytes, direct_support, expect_sequential, forget_cached, has_dontcache, set_direct,
};
#[cfg(fuzzing)]
pub(crate) use list::Records;
pub(crate) use load::store;
use opening::{open, open_unnamed};
pub(crate) use preload::preload;
pub(crate) use waiting::{Wait, may_wait_for_ever};

/// Runs a request here and now.
pub(crate) fn perform(op: &mut Op, patience: Patience) -> Result<Outcome, Errno> {
    let done = |()| Outcome::Done;
    match op {
        Op::Open { dir, name, flags, mode, follow } => {
            let flags = open_flags(*flags, *follow);
            let opened = open(dir.fd(), name, flags, *mode, patience);
            opened.map(|fd| Outcome::Descriptor(fd.into()))
        }
        Op::OpenUnnamed { dir, mode } => {
            open_unnamed(dir.fd(), *mode).map(|fd| Outcome::Descriptor(fd.into()))
        }
        Op::Stat { place, follow, birth } => stat(place, *follow, *birth).map(Outcome::Stat),
        Op::Read { file, block, skip, at, size } => {
            bytes::read(file.fd(), block, *skip, *size, *at, patience).map(Outcome::Count)
        }
        Op::Write { file, block, skip, at } => {
            bytes::write(file.fd(), block.as_ref(), *skip, *at).map(Outcome::Count)
        }
        Op::ReadVectored { file, blocks, skip, at, uncached } => {
            bytes::read_vectored(file.fd(), (blocks, *skip), *at, *uncached, patience).map(Outcome::Count)
        }
        Op::WriteVectored { file, blocks, skip, at, uncached } => {
            bytes::write_vectored(file.fd(), (blocks, *skip), *at, *uncached).map(Outcome::Count)
        }
        Op::CopyRange { source, source_at, target, target_at, size } => {
            bytes::copy_range((source.fd(), *source_at), (target.fd(), *target_at), *size).map(Outcome::Count)
        }
        Op::CopyPieces { source, target, at, size, ways } => {
            pieces::copy(source.fd(), target.fd(), *at, *size, ways).map(Outcome::Count)
        }
        Op::Clone { source, target } => bytes::clone(source.fd(), target.fd()).map(done),
        Op::Seek { file, at, hole } => bytes::seek(file.fd(), *at, *hole).map(Outcome::Offset),
        Op::Allocate { file, at, size } => bytes::allocate(file.fd(), *at, *size).map(done),
        Op::Truncate { file, size } => call(|| rustix::fs::ftruncate(file.fd(), *size)).map(done),
        Op::Sync { file, how } => sync(file.fd(), *how).map(done),
        Op::Close { file, .. } => match file.take().and_then(Arc::into_inner) {
            Some(Descriptor::Real(handle)) => close(handle).map(done),
            Some(Descriptor::Sim(_)) | None => Ok(Outcome::Done),
        },
        Op::List { dir, from } => list::entries(dir.fd(), *from).map(Outcome::Entries),
        Op::Enter { dir, name, .. } => list::enter(dir.fd(), name, patience),
        Op::Examine { dir, names, details } => Ok(examine::examine(dir.fd(), names, *details)),
        Op::MakeDirectory { dir, name, mode } => make_directory(dir.fd(), name, *mode).map(done),
        Op::Symlink { dir, name, target } => {
            call(|| rustix::fs::symlinkat(target.as_c_str(), dir.fd(), name.as_c_str())).map(done)
        }
        Op::ReadLink { place } => read_link(place).map(Outcome::Bytes),
        Op::Link { dir, name, new_dir, new_name, flags } => {
            link((dir.fd(), name), (new_dir.fd(), new_name), *flags).map(done)
        }
        Op::LinkOpen { file, new_dir, new_name } => link_open(file.fd(), new_dir.fd(), new_name).map(done),
        Op::MakeNode { dir, name, kind, mode, device } => {
            call(|| rustix::fs::mknodat(dir.fd(), name.as_c_str(), kind.to_type(), *mode, *device)).map(done)
        }
        Op::Rename { dir, name, new_dir, new_name, mode } => {
            rename((dir.fd(), name), (new_dir.fd(), new_name), *mode).map(done)
        }
        Op::Unlink { dir, name, directory } => unlink(dir.fd(), name, *directory).map(done),
        Op::SetOwner { file, uid, gid } => set_owner(file.fd(), *uid, *gid).map(done),
        Op::SetMode { file, mode } => set_mode(file.fd(), *mode).map(done),
        Op::SetTimes { file, times } => set_times(file.fd(), times).map(done),
        Op::ListXattr { place } => xattr::list(place).map(Outcome::Bytes),
        Op::GetXattr { place, name } => xattr::get(place, name).map(Outcome::Bytes),
        Op::SetXattr { file, name, value } => xattr::set(file.fd(), name, value.as_deref()).map(done),
        Op::Chain { dir, name, block } => load::chain(dir.fd(), name, block).map(Outcome::Count),
        Op::Load { dir, name, xattrs, alone, block, opened, .. } => {
            let wanted = load::Wanted { xattrs: *xattrs, alone: *alone };
            load::load(dir.fd(), name, wanted, block, opened, patience)
                .map(|loaded| Outcome::Loaded(Box::new(loaded)))
        }
    }
}

fn make_directory(dir: BorrowedFd<'_>, name: &Name, mode: Mode) -> Result<(), Errno> {
    call(|| rustix::fs::mkdirat(dir, name.as_c_str(), mode))
}

fn unlink(dir: BorrowedFd<'_>, name: &Name, is_directory: bool) -> Result<(), Errno> {
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    call(|| rustix::fs::unlinkat(dir, name.as_c_str(), flags))
}

fn link(old: (BorrowedFd<'_>, &Name), new: (BorrowedFd<'_>, &Name), flags: AtFlags) -> Result<(), Errno> {
    call(|| rustix::fs::linkat(old.0, old.1.as_c_str(), new.0, new.1.as_c_str(), flags))
}

fn rename(old: (BorrowedFd<'_>, &Name), new: (BorrowedFd<'_>, &Name), mode: RenameMode) -> Result<(), Errno> {
    call(|| rustix::fs::renameat_with(old.0, old.1.as_c_str(), new.0, new.1.as_c_str(), mode.flags()))
}

/// Names an open file. Before Linux 6.10 only a user with CAP_DAC_READ_SEARCH can link a descriptor (else ENOENT,
/// linkat(2)); other users link its path in /proc.
fn link_open(file: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &Name) -> Result<(), Errno> {
    match call(|| rustix::fs::linkat(file, c"", dir, name.as_c_str(), AtFlags::EMPTY_PATH)) {
        Err(Errno::NOENT) => {
            let path = xattr::descriptor_path(file);
            let flags = AtFlags::SYMLINK_FOLLOW;
            call(|| rustix::fs::linkat(rustix::fs::CWD, path.as_c_str(), dir, name.as_c_str(), flags))
        }
        answer => answer,
    }
}

/// Calls close(2) once: the descriptor is gone whatever the answer, EINTR included.
pub(crate) fn close(handle: Handle) -> Result<(), Errno> {
    use rustix::fd::AsRawFd as _;
    count_call();
    handle.tell_closing();
    let handle = std::mem::ManuallyDrop::new(handle);
    // SAFETY: the descriptor is owned and closed nowhere else, as its owner is not dropped.
    let answer = unsafe { libc::close(handle.fd().as_raw_fd()) };
    match checked(answer.into()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// One component of a user's path; may be `..`.
pub(crate) fn component(name: &[u8]) -> Result<CString, Errno> {
    CString::new(name).map_err(|_| Errno::INVAL)
}

/// Opens a component, following a link.
pub(crate) fn open_component(dir: BorrowedFd<'_>, component: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    call(|| rustix::fs::openat(dir, component, flags | OFlags::CLOEXEC, Mode::empty()))
}

/// Attributes of a component.
pub(crate) fn stat_component(dir: BorrowedFd<'_>, component: &CStr, flags: AtFlags) -> Result<Stat, Errno> {
    call(|| rustix::fs::statat(dir, component, flags)).map(|stat| Stat::from_kernel(&stat))
}

/// Device number of an open file; 0 if fstat(2) fails.
pub(crate) fn device_of(file: BorrowedFd<'_>) -> u64 {
    call(|| rustix::fs::fstat(file)).map_or(0, |stat| stat.st_dev)
}

pub(crate) fn is_mount_root(folder: BorrowedFd<'_>) -> bool {
    let found = call(|| rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::empty()));
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn stat(place: &FileOrEntry, follow: bool, birth: bool) -> Result<Stat, Errno> {
    if birth {
        return identify(place, follow);
    }
    let stat = match place {
        FileOrEntry::Open(file) => call(|| rustix::fs::fstat(file.fd()))?,
        FileOrEntry::Entry(dir, name) => {
            call(|| rustix::fs::statat(dir.fd(), name.as_c_str(), at_flags(follow)))?
        }
    };
    Ok(Stat::from_kernel(&stat))
}

/// Attributes with the birth time, which is missing if statx(2) is missing (before Linux 4.11) or filtered.
fn identify(place: &FileOrEntry, follow: bool) -> Result<Stat, Errno> {
    let (dir, name, flags) = match place {
        FileOrEntry::Open(file) => (file.fd(), c"", AtFlags::EMPTY_PATH),
        FileOrEntry::Entry(dir, name) => (dir.fd(), name.as_c_str(), at_flags(follow)),
    };
    // statx(2) may mount an automount point, which fstatat(2) never does.
    let flags = flags | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match call(|| rustix::fs::statx(dir, name, flags, wanted)) {
        Ok(found) => Ok(Stat::from_statx(&found)),
        Err(Errno::NOSYS | Errno::PERM) => stat(place, follow, false),
        Err(errno) => Err(errno),
    }
}

fn sync(file: BorrowedFd<'_>, how: Sync) -> Result<(), Errno> {
    match how {
        Sync::File => call(|| rustix::fs::fsync(file)),
        Sync::Data => call(|| rustix::fs::fdatasync(file)),
        Sync::Filesystem => call(|| rustix::fs::syncfs(file)),
        Sync::Start { at, size } => bytes::start_write_back(file, at, size),
        Sync::Finish { at, size, forgets } => {
            bytes::finish_write_back(file, at, size)?;
            if forgets {
                // Advice only: if it fails, the pages stay cached, but they are written.
                direct::forget_cached(file, at, size).ok();
            }
            Ok(())
        }
    }
}

fn set_owner(file: BorrowedFd<'_>, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    match call(|| rustix::fs::fchown(file, uid, gid)) {
        // Opened only to be reached.
        Err(Errno::BADF) => call(|| rustix::fs::chownat(file, c"", uid, gid, AtFlags::EMPTY_PATH)),
        answer => answer,
    }
}

fn set_mode(file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    match call(|| rustix::fs::fchmod(file, mode)) {
        Err(Errno::BADF) => match FCHMODAT2.answer(|| fchmodat2(file, mode)) {
            Some(answer) => answer,
            None => FCHMODAT2.instead(set_mode_by_descriptor(file, mode)),
        },
        answer => answer,
    }
}

static FCHMODAT2: Newer = Newer::new();

fn set_mode_by_descriptor(file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    let path = xattr::descriptor_path(file);
    call(|| rustix::fs::chmod(path.as_c_str(), mode))
}

/// fchmodat2(2) (Linux 6.6) with AT_EMPTY_PATH, which takes a descriptor opened only to be reached.
fn fchmodat2(file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    use rustix::fd::AsRawFd as _;
    let (name, bits, flags): (&CStr, RawMode, _) = (c"", mode.bits(), libc::AT_EMPTY_PATH);
    // SAFETY: the name ends in NUL and outlives the call, which only reads it.
    let answer = unsafe { libc::syscall(libc::SYS_fchmodat2, file.as_raw_fd(), name.as_ptr(), bits, flags) };
    checked(answer).map(|_| ())
}

fn set_times(file: BorrowedFd<'_>, times: &Times) -> Result<(), Errno> {
    let spec =
        |time: crate::entry::Time| Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanoseconds) };
    let times = Timestamps { last_access: spec(times.accessed), last_modification: spec(times.modified) };
    match call(|| rustix::fs::futimens(file, &times)) {
        Err(Errno::BADF) => match call(|| rustix::fs::utimensat(file, c"", &times, AtFlags::EMPTY_PATH)) {
            // Before Linux 5.8.
            Err(Errno::INVAL) => {
                let path = xattr::descriptor_path(file);
                call(|| rustix::fs::utimensat(rustix::fs::CWD, path.as_c_str(), &times, AtFlags::empty()))
            }
            answer => answer,
        },
        answer => answer,
    }
}

#[cfg(test)]
mod tests;

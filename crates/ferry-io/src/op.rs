//! One request, owning its descriptors and its memory until its completion is taken.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::buffers::Block;
use crate::entry::{Entries, FileKind, Loaded, NewMode, Stat, Times};
use crate::error::Operation;
use crate::event;
use crate::name::Name;
use crate::sim::SimDescriptor;
use crate::sys::Opened;

/// An open file or folder, of the kernel or of the simulation. Closed when the last owner lets go.
#[derive(Debug)]
pub(crate) enum Descriptor {
    Real(Handle),
    Sim(SimDescriptor),
}

/// A descriptor of the kernel, whose closing is counted.
#[derive(Debug)]
pub(crate) struct Handle {
    fd: OwnedFd,
    /// The filesystem that holds it, as far as is known: 0, or `st_dev`.
    device: u64,
    /// Whether a recording was told of it: only then is it told of its closing.
    is_told: bool,
    /// Whether its transfers go past the page cache at the moment.
    is_direct: AtomicBool,
}

impl Handle {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Says whether its transfers go past the page cache.
    pub(crate) fn note_direct(&self, is_direct: bool) {
        self.is_direct.store(is_direct, Ordering::Relaxed);
    }

    /// Tells a recording that it is being closed.
    pub(crate) fn tell_closing(&self) {
        if self.is_told {
            event::descriptor_closed();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.tell_closing();
        crate::sys::count_call();
    }
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, device: 0, is_told: event::descriptor_opened(), is_direct: AtomicBool::new(false) }
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        Self::Real(fd.into())
    }
}

#[cfg(test)]
impl From<std::fs::File> for Handle {
    fn from(file: std::fs::File) -> Self {
        Self::from(OwnedFd::from(file))
    }
}

/// A shared descriptor: the capability's owner and each operation in flight hold one.
pub(crate) type Fd = Arc<Descriptor>;

impl Descriptor {
    /// The filesystem that holds it: what waits on one may not on another. Guessed to be that of the folder it was opened in.
    pub(crate) fn device(&self) -> u64 {
        match self {
            Self::Real(handle) => handle.device,
            Self::Sim(descriptor) => descriptor.device(),
        }
    }

    /// The same, held by this filesystem.
    pub(crate) fn on(mut self, device: u64) -> Self {
        if let Self::Real(handle) = &mut self {
            handle.device = device;
        }
        self
    }

    /// Whether [`crate::File::set_direct`] has set it so.
    pub(crate) fn is_direct(&self) -> bool {
        match self {
            Self::Real(handle) => handle.is_direct.load(Ordering::Relaxed),
            Self::Sim(descriptor) => descriptor.is_direct(),
        }
    }

    /// The kernel's descriptor.
    ///
    /// # Panics
    /// For a simulated one: the simulation answers its own operations, so none gets here.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Real(handle) => handle.fd(),
            Self::Sim(_) => unreachable!("a simulated descriptor was given to the kernel"),
        }
    }
}

/// As an offset: the file's own position, for pipes and terminals, which have no other (as io_uring_enter(2) says).
pub(crate) const AT_POSITION: u64 = u64::MAX;

/// The file that an attribute is read of: an open file, or an entry of a folder (links not followed).
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Open(Fd),
    Entry(Fd, Name),
}

/// A folder in which a file of the same name is made.
#[derive(Debug)]
pub(crate) struct Into {
    pub(crate) dir: Fd,
    pub(crate) mode: NewMode,
}

/// Every request that a backend knows. The comment gives the [`Outcome`].
#[derive(Debug)]
pub(crate) enum Op {
    /// `Descriptor`; `follow` says whether a link as last component is followed.
    Open { dir: Fd, name: Name, flags: OFlags, mode: Mode, follow: bool },
    /// `Descriptor`; a new file of this folder's filesystem that has no name yet (O_TMPFILE).
    OpenUnnamed { dir: Fd, mode: Mode },
    /// `Stat`; of `name` in `dir`, or of what is open; with the birth time if `birth` says so.
    Stat { place: Place, follow: bool, birth: bool },
    /// `Count`; into the block from byte `skip` on, which ends its filled part.
    Read { file: Fd, block: Option<Block>, skip: usize, at: u64, size: usize },
    /// `Count`; of the block's filled part from `skip` on.
    Write { file: Fd, block: Option<Block>, skip: usize, at: u64 },
    /// `Count`; into the memory of all blocks from byte `skip` on, which ends what they hold. `uncached` where the file's
    /// filesystem has RWF_DONTCACHE.
    ReadVectored { file: Fd, blocks: Vec<Block>, skip: usize, at: u64, uncached: bool },
    /// `Count`; of what all blocks hold from byte `skip` on; `uncached` as above.
    WriteVectored { file: Fd, blocks: Vec<Block>, skip: usize, at: u64, uncached: bool },
    /// `Count`.
    CopyRange { source: Fd, source_at: u64, target: Fd, target_at: u64, size: usize },
    /// `Done`.
    Clone { source: Fd, target: Fd },
    /// `Offset`; `None` past the last data. Data, or the next hole.
    Seek { file: Fd, at: u64, hole: bool },
    /// `Done`.
    Allocate { file: Fd, at: u64, size: u64 },
    /// `Done`.
    Truncate { file: Fd, size: u64 },
    /// `Done`.
    Sync { file: Fd, how: Sync },
    /// `Entries`; from the descriptor's position, or from a cookie of an earlier listing.
    List { dir: Fd, from: Option<u64> },
    /// `Entered`; opens a folder and lists its first entries.
    Enter { dir: Fd, name: Name },
    /// `Done`.
    MakeDirectory { dir: Fd, name: Name, mode: Mode },
    /// `Done`.
    Symlink { dir: Fd, name: Name, target: CString },
    /// `Bytes`.
    ReadLink { place: Place },
    /// `Done`; `flags` may follow the source.
    Link { dir: Fd, name: Name, new_dir: Fd, new_name: Name, flags: AtFlags },
    /// `Done`; gives an open file a name.
    LinkOpen { file: Fd, new_dir: Fd, new_name: Name },
    /// `Done`.
    MakeNode { dir: Fd, name: Name, kind: FileKind, mode: Mode, device: u64 },
    /// `Done`; `replace` says whether an existing target gives way.
    Rename { dir: Fd, name: Name, new_dir: Fd, new_name: Name, replace: bool },
    /// `Done`.
    Unlink { dir: Fd, name: Name, directory: bool },
    /// `Done`.
    SetOwner { file: Fd, uid: Option<u32>, gid: Option<u32> },
    /// `Done`.
    SetMode { file: Fd, mode: Mode },
    /// `Done`.
    SetTimes { file: Fd, times: Times },
    /// `Bytes`; names separated by NUL.
    ListXattr { place: Place },
    /// `Bytes`.
    GetXattr { place: Place, name: CString },
    /// `Done`.
    SetXattr { file: Fd, name: CString, value: Vec<u8> },
    /// `Loaded`; opens, stats and reads a small file.
    Load {
        dir: Fd,
        name: Name,
        xattrs: bool,
        /// Whether a file with several names is only opened.
        alone: bool,
        block: Option<Block>,
        opened: Option<Box<Opened>>,
        /// Where the worker puts what it loads itself.
        into: Option<Into>,
    },
    /// `Count`; opens, reads into the block and closes, linked in the ring.
    Chain { dir: Fd, name: Name, block: Option<Block> },
}

/// How durable a file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// fsync(2).
    File,
    /// fdatasync(2).
    Data,
    /// syncfs(2) of the filesystem that holds it.
    Filesystem,
    /// Starts writing a range back, and waits for nothing (sync_file_range(2)).
    Start { at: u64, size: u64 },
    /// Writes a range back and waits until the device has it, though perhaps not for good; if it is to be forgotten, its
    /// pages leave the page cache.
    Finish { at: u64, size: u64, forgets: bool },
}

/// What a completed request gives.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Descriptor(Descriptor),
    Stat(Stat),
    Count(usize),
    Offset(Option<u64>),
    Bytes(Vec<u8>),
    Entries(Entries),
    Entered(Box<(Descriptor, Stat, Entries)>),
    Loaded(Box<Loaded>),
}

impl Op {
    /// The filesystem that is asked.
    pub(crate) fn device(&self) -> u64 {
        self.asked().device()
    }

    /// The descriptor that is asked: of the file, or of the folder of the name.
    pub(crate) fn asked(&self) -> &Fd {
        match self {
            Self::Open { dir, .. }
            | Self::OpenUnnamed { dir, .. }
            | Self::List { dir, .. }
            | Self::Enter { dir, .. }
            | Self::MakeDirectory { dir, .. }
            | Self::Symlink { dir, .. }
            | Self::Link { dir, .. }
            | Self::MakeNode { dir, .. }
            | Self::Rename { dir, .. }
            | Self::Unlink { dir, .. }
            | Self::Load { dir, .. }
            | Self::Chain { dir, .. } => dir,
            Self::Read { file, .. }
            | Self::Write { file, .. }
            | Self::ReadVectored { file, .. }
            | Self::WriteVectored { file, .. }
            | Self::Seek { file, .. }
            | Self::Allocate { file, .. }
            | Self::Truncate { file, .. }
            | Self::Sync { file, .. }
            | Self::LinkOpen { file, .. }
            | Self::SetOwner { file, .. }
            | Self::SetMode { file, .. }
            | Self::SetTimes { file, .. }
            | Self::SetXattr { file, .. } => file,
            Self::CopyRange { source, .. } | Self::Clone { source, .. } => source,
            Self::Stat { place, .. }
            | Self::ReadLink { place }
            | Self::ListXattr { place }
            | Self::GetXattr { place, .. } => match place {
                Place::Open(file) => file,
                Place::Entry(dir, _) => dir,
            },
        }
    }

    /// Whether it moves bytes past the page cache: then several of one file may be on their way at once.
    pub(crate) fn is_direct(&self) -> bool {
        if let Self::Read { file, .. } | Self::Write { file, .. } = self {
            return file.is_direct();
        }
        matches!(self, Self::ReadVectored { .. } | Self::WriteVectored { .. })
    }

    /// Returns true if it changes an open file or asks about one: its fiber has begun a file and goes on with it.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::CopyRange { .. }
                | Self::Clone { .. }
                | Self::Allocate { .. }
                | Self::Truncate { .. }
                | Self::LinkOpen { .. }
                | Self::Stat { place: Place::Open(_), .. }
                | Self::SetOwner { .. }
                | Self::SetMode { .. }
                | Self::SetTimes { .. }
                | Self::SetXattr { .. }
        )
    }

    pub(crate) fn operation(&self) -> Operation {
        match self {
            Self::Open { .. } | Self::OpenUnnamed { .. } => Operation::Open,
            Self::Stat { .. } => Operation::Stat,
            Self::Read { .. } | Self::ReadVectored { .. } => Operation::Read,
            Self::Write { .. } | Self::WriteVectored { .. } => Operation::Write,
            Self::CopyRange { .. } => Operation::CopyRange,
            Self::Clone { .. } => Operation::Clone,
            Self::Seek { .. } => Operation::Seek,
            Self::Allocate { .. } => Operation::Allocate,
            Self::Truncate { .. } => Operation::Truncate,
            Self::Sync { .. } => Operation::Sync,
            Self::List { .. } | Self::Enter { .. } => Operation::List,
            Self::MakeDirectory { .. } => Operation::MakeDirectory,
            Self::Symlink { .. } => Operation::Symlink,
            Self::ReadLink { .. } => Operation::ReadLink,
            Self::Link { .. } | Self::LinkOpen { .. } => Operation::Link,
            Self::MakeNode { .. } => Operation::MakeNode,
            Self::Rename { .. } => Operation::Rename,
            Self::Unlink { .. } => Operation::Unlink,
            Self::SetOwner { .. } => Operation::SetOwner,
            Self::SetMode { .. } => Operation::SetMode,
            Self::SetTimes { .. } => Operation::SetTimes,
            Self::ListXattr { .. } => Operation::ListXattr,
            Self::GetXattr { .. } => Operation::GetXattr,
            Self::SetXattr { .. } => Operation::SetXattr,
            Self::Load { .. } => Operation::Load,
            Self::Chain { .. } => Operation::Chain,
        }
    }
}

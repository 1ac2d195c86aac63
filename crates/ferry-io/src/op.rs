//! Requests: operations with the descriptors and the memory that they own until their completion is taken.

use std::ffi::CString;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::buffers::Block;
use crate::choose::Ways;
use crate::descriptor::{Descriptor, Fd};
use crate::entry::{Entries, FileKind, NewMode, RenameMode, Stat, Times};
use crate::error::Operation;
use crate::facts::Facts;
use crate::loaded::{Loaded, Opened};
use crate::name::Name;
use crate::preload::Preload;

/// Offset that stands for the file's own position, for pipes and terminals (io_uring_enter(2)).
pub(crate) const AT_POSITION: u64 = u64::MAX;

/// The file that an attribute is read of: an open one, or a folder's entry. Links are not followed.
#[derive(Debug, Clone)]
pub(crate) enum FileOrEntry {
    Open(Fd),
    Entry(Fd, Name),
}

/// A folder for a new file of the same name.
#[derive(Debug)]
pub(crate) struct Into {
    pub(crate) dir: Fd,
    pub(crate) mode: NewMode,
}

/// All requests; each comment names the [`Outcome`].
#[derive(Debug)]
pub(crate) enum Op {
    /// `Descriptor`.
    Open { dir: Fd, name: Name, flags: OFlags, mode: Mode, follow: bool },
    /// `Descriptor` of a new file without a name (O_TMPFILE).
    OpenUnnamed { dir: Fd, mode: Mode },
    /// `Stat`.
    Stat { place: FileOrEntry, follow: bool, birth: bool },
    /// `Count`. Fills the block from byte `skip` on and ends its contents there.
    Read { file: Fd, block: Option<Block>, skip: usize, at: u64, size: usize },
    /// `Count`. Writes the block's contents from byte `skip` on.
    Write { file: Fd, block: Option<Block>, skip: usize, at: u64 },
    /// `Count`. Fills the blocks from byte `skip` of all on, and ends their contents there; with `uncached`, by
    /// RWF_DONTCACHE.
    ReadVectored { file: Fd, blocks: Vec<Block>, skip: usize, at: u64, uncached: bool },
    /// `Count`. Writes the blocks' contents from byte `skip` of all on; with `uncached`, by RWF_DONTCACHE.
    WriteVectored { file: Fd, blocks: Vec<Block>, skip: usize, at: u64, uncached: bool },
    /// `Count`.
    CopyRange { source: Fd, source_at: u64, target: Fd, target_at: u64, size: usize },
    /// `Count`. Copies to the same offset, piece by piece, by the fastest of several ways.
    CopyPieces { source: Fd, target: Fd, at: u64, size: usize, ways: Arc<Ways> },
    /// `Done`.
    Clone { source: Fd, target: Fd },
    /// `Offset` of the next data, or of the next hole; `None` past the last.
    Seek { file: Fd, at: u64, hole: bool },
    /// `Done`.
    Allocate { file: Fd, at: u64, size: u64 },
    /// `Done`.
    Truncate { file: Fd, size: u64 },
    /// `Done`.
    Sync { file: Fd, how: Sync },
    /// `Done`. Closes a file of this folder, unless a clone keeps it open.
    Close { dir: Fd, file: Option<Fd> },
    /// `Entries` from the descriptor's position, or from an earlier listing's cookie.
    List { dir: Fd, from: Option<u64> },
    /// `Entered`. Opens a folder and lists its first entries. On the pool, also reads its small files.
    Enter { dir: Fd, name: Name, preload: Option<Preload> },
    /// `Examined`, one for each name. Attributes of several entries of one folder; with `details`, also texts of links and
    /// extended attributes.
    Examine { dir: Fd, names: Vec<Name>, details: bool },
    /// `Done`.
    MakeDirectory { dir: Fd, name: Name, mode: Mode },
    /// `Done`.
    Symlink { dir: Fd, name: Name, target: CString },
    /// `Bytes`.
    ReadLink { place: FileOrEntry },
    /// `Done`.
    Link { dir: Fd, name: Name, new_dir: Fd, new_name: Name, flags: AtFlags },
    /// `Done`. Names an open file.
    LinkOpen { file: Fd, new_dir: Fd, new_name: Name },
    /// `Done`.
    MakeNode { dir: Fd, name: Name, kind: FileKind, mode: Mode, device: u64 },
    /// `Done`.
    Rename { dir: Fd, name: Name, new_dir: Fd, new_name: Name, mode: RenameMode },
    /// `Done`.
    Unlink { dir: Fd, name: Name, directory: bool },
    /// `Done`.
    SetOwner { file: Fd, uid: Option<u32>, gid: Option<u32> },
    /// `Done`.
    SetMode { file: Fd, mode: Mode },
    /// `Done`.
    SetTimes { file: Fd, times: Times },
    /// `Bytes`: names, each ended by NUL.
    ListXattr { place: FileOrEntry },
    /// `Bytes`.
    GetXattr { place: FileOrEntry, name: CString },
    /// `Done`. Without a value the attribute is removed.
    SetXattr { file: Fd, name: CString, value: Option<Vec<u8>> },
    /// `Loaded`. Opens, stats and reads a small file.
    Load {
        dir: Fd,
        name: Name,
        xattrs: bool,
        /// Only opens a file that has several names.
        alone: bool,
        block: Option<Block>,
        opened: Option<Box<Opened>>,
        /// Place of the new file that the worker makes of an inline load.
        into: Option<Into>,
    },
    /// `Count`. Opens, reads into the block and closes, linked in the ring.
    Chain { dir: Fd, name: Name, block: Option<Block> },
}

/// The durability that a file is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// fsync(2).
    File,
    /// fdatasync(2).
    Data,
    /// syncfs(2) of the filesystem that holds it.
    Filesystem,
    /// Starts write-back of a range (sync_file_range(2)).
    Start { at: u64, size: u64 },
    /// Writes a range back and waits for the device, though not for its cache. With `forgets`, the pages leave the page
    /// cache.
    Finish { at: u64, size: u64, forgets: bool },
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Descriptor(Descriptor),
    Stat(Stat),
    Count(usize),
    Offset(Option<u64>),
    Bytes(Vec<u8>),
    Entries(Entries),
    Entered(Box<(Fd, Stat, Entries)>),
    Loaded(Box<Loaded>),
    Examined(Vec<std::result::Result<Facts, Errno>>),
}

/// Unwraps an outcome; a backend that answers with another kind has a bug.
macro_rules! expect_outcome {
    ($result:expr, $pattern:pat => $value:expr) => {
        match $result {
            Ok($pattern) => Ok($value),
            Ok(other) => unreachable!("a backend answered with {other:?}"),
            Err(error) => Err(error),
        }
    };
}
pub(crate) use expect_outcome;

impl Op {
    /// The device number of the filesystem concerned, as far as known.
    pub(crate) fn device(&self) -> u64 {
        self.asked().device()
    }

    /// The descriptor concerned: of the file, or of the name's folder.
    pub(crate) fn asked(&self) -> &Fd {
        match self {
            Self::Open { dir, .. }
            | Self::OpenUnnamed { dir, .. }
            | Self::List { dir, .. }
            | Self::Enter { dir, .. }
            | Self::Examine { dir, .. }
            | Self::MakeDirectory { dir, .. }
            | Self::Symlink { dir, .. }
            | Self::Link { dir, .. }
            | Self::MakeNode { dir, .. }
            | Self::Rename { dir, .. }
            | Self::Unlink { dir, .. }
            | Self::Load { dir, .. }
            | Self::Chain { dir, .. }
            | Self::Close { dir, .. } => dir,
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
            Self::CopyRange { source, .. } | Self::CopyPieces { source, .. } | Self::Clone { source, .. } => {
                source
            }
            Self::Stat { place, .. }
            | Self::ReadLink { place }
            | Self::ListXattr { place }
            | Self::GetXattr { place, .. } => match place {
                FileOrEntry::Open(file) => file,
                FileOrEntry::Entry(dir, _) => dir,
            },
        }
    }

    /// Returns true if it moves bytes past the page cache: several of one file may be in flight.
    pub(crate) fn is_direct(&self) -> bool {
        if let Self::Read { file, .. } | Self::Write { file, .. } = self {
            return file.is_direct();
        }
        matches!(self, Self::ReadVectored { .. } | Self::WriteVectored { .. })
    }

    /// Returns true if it changes or examines an open file: its fiber has begun a file and goes on with it.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::CopyRange { .. }
                | Self::CopyPieces { .. }
                | Self::Clone { .. }
                | Self::Allocate { .. }
                | Self::Truncate { .. }
                | Self::Close { .. }
                | Self::LinkOpen { .. }
                | Self::Stat { place: FileOrEntry::Open(_), .. }
                | Self::SetOwner { .. }
                | Self::SetMode { .. }
                | Self::SetTimes { .. }
                | Self::SetXattr { .. }
        )
    }

    /// Number of entries that it is about.
    pub(crate) fn entries(&self) -> u32 {
        if let Self::Examine { names, .. } = self {
            return u32::try_from(names.len().max(1)).unwrap_or(u32::MAX);
        }
        1
    }

    pub(crate) fn operation(&self) -> Operation {
        match self {
            Self::Open { .. } | Self::OpenUnnamed { .. } => Operation::Open,
            Self::Stat { .. } => Operation::Stat,
            Self::Read { .. } | Self::ReadVectored { .. } => Operation::Read,
            Self::Write { .. } | Self::WriteVectored { .. } => Operation::Write,
            Self::CopyPieces { ways, .. } if !ways.is_by_kernel() => Operation::Write,
            Self::CopyRange { .. } | Self::CopyPieces { .. } => Operation::CopyRange,
            Self::Clone { .. } => Operation::Clone,
            Self::Seek { .. } => Operation::Seek,
            Self::Allocate { .. } => Operation::Allocate,
            Self::Truncate { .. } => Operation::Truncate,
            Self::Sync { .. } => Operation::Sync,
            Self::Close { .. } => Operation::Close,
            Self::List { .. } | Self::Enter { .. } => Operation::List,
            Self::Examine { .. } => Operation::Examine,
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

//! Data about files: kinds, attributes and listings.

use std::ffi::{CStr, CString};

use rustix::fs::{FileType, RawMode, RenameFlags, Statx, StatxFlags, StatxTimestamp, makedev};
use rustix::io::Errno;

use crate::name::Name;

/// Kind of a file (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the kinds are those of the manual page")]
pub enum FileKind {
    Regular,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
}

impl FileKind {
    /// Returns true for a FIFO, a socket or a device.
    ///
    /// ```
    /// assert!(ferry_io::FileKind::Fifo.is_special());
    /// ```
    #[must_use]
    pub fn is_special(self) -> bool {
        match self {
            Self::Fifo | Self::Socket | Self::CharDevice | Self::BlockDevice => true,
            Self::Regular | Self::Directory | Self::Symlink => false,
        }
    }

    /// Returns the kind, or `None` if the filesystem does not report it (DT_UNKNOWN).
    pub(crate) fn from_type(kind: FileType) -> Option<Self> {
        match kind {
            FileType::RegularFile => Some(Self::Regular),
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => Some(Self::Symlink),
            FileType::Fifo => Some(Self::Fifo),
            FileType::Socket => Some(Self::Socket),
            FileType::CharacterDevice => Some(Self::CharDevice),
            FileType::BlockDevice => Some(Self::BlockDevice),
            FileType::Unknown => None,
        }
    }

    pub(crate) fn to_type(self) -> FileType {
        match self {
            Self::Regular => FileType::RegularFile,
            Self::Directory => FileType::Directory,
            Self::Symlink => FileType::Symlink,
            Self::Fifo => FileType::Fifo,
            Self::Socket => FileType::Socket,
            Self::CharDevice => FileType::CharacterDevice,
            Self::BlockDevice => FileType::BlockDevice,
        }
    }
}

/// A point in time: seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds; negative before 1970.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// Access and modification time, as they are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub accessed: Time,
    /// Last modification of the content.
    pub modified: Time,
}

/// Attributes of a file (inode(7)).
///
/// ```
/// use ferry_io::{AtOnce, Entries, Entry, Error, FileKind, NewMode, Options, Stat, Xattr, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     # let temporary = tempfile::tempdir().expect("a folder");
///     # std::fs::write(temporary.path().join("file"), "text").expect("a file");
///     let folder = io.open_dir(temporary.path())?;
///     let listing: Entries = folder.list(None).await?;
///     let Entry { name, kind, .. } = &listing.entries[0];
///     assert!(matches!(kind, Some(FileKind::Regular) | None));
///     let stat: Stat = folder.stat_entry(name, false).await?;
///     assert!(stat.is_same_file(&stat) && !stat.is_same_file(&folder.stat().await?));
///     println!("{} bytes, perhaps with holes: {}", stat.size, stat.may_have_holes());
///     let xattrs: Vec<Xattr> = folder.entry_xattrs(name).await?;
///
///     // A copy gets its whole mode at once if nothing else is to be set.
///     let at_once = Some(AtOnce { owner: None, umask: io.umask() });
///     let mode = NewMode { fixed: 0o600, of_source: 0, at_once };
///     assert_eq!(mode.is_whole(&stat, &xattrs), xattrs.is_empty());
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Kind of the file.
    pub kind: FileKind,
    /// Permission bits with setuid, setgid and sticky: 0 to 0o7777.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of hard links.
    pub links: u64,
    /// Device number of its filesystem.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Device number, if the file is a device.
    pub special: u64,
    /// Size in bytes.
    pub size: u64,
    /// Number of allocated units of 512 bytes.
    pub blocks: u64,
    /// Access and modification time.
    pub times: Times,
    /// Last change of the attributes or the content.
    pub changed: Time,
    /// Birth time, if it was requested ([`crate::File::identify`], [`crate::Dir::identify_entry`]) and the filesystem
    /// keeps it.
    pub born: Option<Time>,
}

impl Stat {
    pub(crate) fn from_kernel(stat: &rustix::fs::Stat) -> Self {
        /// The C library's structure has them signed, the kernel's unsigned.
        fn time<N: TryInto<u32>>(seconds: i64, nanoseconds: N) -> Time {
            Time { seconds, nanoseconds: nanoseconds.try_into().unwrap_or_default() }
        }
        Self {
            kind: FileKind::from_type(FileType::from_raw_mode(stat.st_mode)).unwrap_or(FileKind::Regular),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: stat.st_nlink,
            device: stat.st_dev,
            inode: stat.st_ino,
            special: stat.st_rdev,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            blocks: u64::try_from(stat.st_blocks).unwrap_or_default(),
            times: Times {
                accessed: time(stat.st_atime, stat.st_atime_nsec),
                modified: time(stat.st_mtime, stat.st_mtime_nsec),
            },
            changed: time(stat.st_ctime, stat.st_ctime_nsec),
            born: None,
        }
    }

    /// Converts the answer of statx(2), with the birth time if the filesystem has one.
    pub(crate) fn from_statx(stat: &Statx) -> Self {
        let time = |time: StatxTimestamp| Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec };
        let mode = RawMode::from(stat.stx_mode);
        let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        Self {
            kind: FileKind::from_type(FileType::from_raw_mode(mode)).unwrap_or(FileKind::Regular),
            mode: mode & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            links: u64::from(stat.stx_nlink),
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            special: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
            size: stat.stx_size,
            blocks: stat.stx_blocks,
            times: Times { accessed: time(stat.stx_atime), modified: time(stat.stx_mtime) },
            changed: time(stat.stx_ctime),
            born: has_birth.then(|| time(stat.stx_btime)),
        }
    }

    /// Returns true if both describe one file.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.inode == other.inode && self.device == other.device
    }

    /// Returns true if fewer blocks are allocated than the size needs, so the file may have holes.
    #[must_use]
    pub fn may_have_holes(&self) -> bool {
        self.blocks.saturating_mul(512) < self.size
    }

    /// Returns true if a load reads the file's bytes; with `alone`, not those of a file with several names.
    pub(crate) fn is_read(&self, alone: bool) -> bool {
        self.kind == FileKind::Regular && !self.may_have_holes() && !(alone && self.links > 1)
    }
}

/// One entry of a listing.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name of the entry.
    pub name: Name,
    /// Kind of the entry; `None` if the filesystem does not report it.
    pub kind: Option<FileKind>,
    /// Inode number in the folder. For a mount point it is that of the folder beneath.
    pub inode: u64,
}

/// A part of a folder's entries, without `.` and `..`.
#[derive(Debug, Default)]
pub struct Entries {
    /// Entries, in the filesystem's order.
    pub entries: Vec<Entry>,
    /// Position at which the next listing starts; `None` at the folder's end.
    pub next: Option<u64>,
}

/// An extended attribute (xattr(7)): name and value.
pub type Xattr = (CString, Vec<u8>);

/// Returns the names in a list of extended attributes, in which a NUL ends each.
pub(crate) fn names_in(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|&byte| byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// Returns true if an attribute was removed since it was listed, or if this user may not read it.
pub(crate) fn is_no_value(errno: Errno) -> bool {
    matches!(errno, Errno::NODATA | Errno::PERM | Errno::ACCESS)
}

/// Returns those of the named attributes that have a value for this user.
pub(crate) fn readable<'a>(
    names: impl Iterator<Item = &'a CStr>,
    mut get: impl FnMut(&CStr) -> Result<Vec<u8>, Errno>,
) -> Result<Vec<Xattr>, Errno> {
    let mut found = Vec::new();
    for name in names {
        match get(name) {
            Ok(value) => found.push((name.to_owned(), value)),
            Err(errno) if is_no_value(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}

/// Mode of a new file that is made from another: 0 to 0o7777.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewMode {
    /// Bits that the new file always has.
    pub fixed: u32,
    /// Bits that it has if its source has them.
    pub of_source: u32,
    /// Set if a source that is like a new file of this process gives its whole mode at once.
    pub at_once: Option<AtOnce>,
}

/// Condition for creating a file with its source's whole mode: nothing is left to be set but its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    /// Owner and group of new files, if the source must have the same.
    pub owner: Option<(u32, u32)>,
    /// Bits that the kernel takes from the mode of new files.
    pub umask: u32,
}

impl NewMode {
    /// Returns true if a new file gets its source's whole mode at once. The source must have no extended attributes
    /// and neither setuid, setgid nor sticky bit.
    #[must_use]
    pub fn is_whole(&self, source: &Stat, xattrs: &[Xattr]) -> bool {
        self.at_once.is_some_and(|at_once| {
            xattrs.is_empty()
                && source.mode & (0o7000 | at_once.umask) == 0
                && at_once.owner.is_none_or(|owner| owner == (source.uid, source.gid))
        })
    }

    /// Returns the mode to create a file with.
    pub(crate) fn of(&self, source: &Stat, xattrs: &[Xattr]) -> u32 {
        if self.is_whole(source, xattrs) { source.mode } else { self.fixed | source.mode & self.of_source }
    }
}

/// Fate of an entry whose name another one is renamed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenameMode {
    /// It is replaced.
    Replace,
    /// It stays, and the call fails with EEXIST.
    Keep,
    /// It gets the other's name; ENOENT if it is missing.
    Exchange,
}

impl RenameMode {
    /// Returns the flags of renameat2(2).
    pub(crate) fn flags(self) -> RenameFlags {
        match self {
            Self::Replace => RenameFlags::empty(),
            Self::Keep => RenameFlags::NOREPLACE,
            Self::Exchange => RenameFlags::EXCHANGE,
        }
    }
}

/// Direct I/O (O_DIRECT) as a filesystem reports it for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectSupport {
    /// Offsets, sizes and memory must be multiples of this number of bytes.
    Unit(u64),
    /// The file has no direct I/O.
    Unsupported,
    /// The kernel (before Linux 6.1) or the filesystem reports nothing.
    Unreported,
    /// The file is on tmpfs, which accepts O_DIRECT since Linux 6.6 but consists of page cache.
    InMemory,
}

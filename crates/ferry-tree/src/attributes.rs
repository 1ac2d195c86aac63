//! Attributes of an entry from one statx(2), as trees are described and compared by them.

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A type unknown to this program.
    Unknown,
}

impl fmt::Display for EntryKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Directory => "directory",
            Self::File => "regular file",
            Self::Symlink => "symbolic link",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Unknown => "entry of unknown type",
        })
    }
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharacterDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Unknown,
        }
    }
}

/// A point in time with the kernel's resolution. Seconds count from 1970 and may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time {
    /// Whole seconds since 1970-01-01 00:00 UTC, rounded down.
    pub seconds: i64,
    /// Nanoseconds after that, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Time {
    /// The time `seconds` and `nanoseconds` after 1970.
    #[must_use]
    pub fn new(seconds: i64, nanoseconds: u32) -> Self {
        Self { seconds, nanoseconds }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.seconds.div_euclid(86_400), self.seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let nanoseconds = self.nanoseconds;
        write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanoseconds:09} UTC")
    }
}

/// Year, month and day of the Gregorian calendar, from days since 1970 (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Identity of an inode: names with equal values are the same file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Inode {
    /// The filesystem's device number, major in the high half.
    pub device: u64,
    /// The inode number.
    pub number: u64,
}

/// Attributes of an entry (statx(2)). Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Type of the entry.
    pub kind: EntryKind,
    /// Permissions with setuid, setgid and sticky bits: 0 to 0o7777.
    pub mode: u32,
    /// Owning user.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
    /// Time of the last access before this program read the entry. Never compared (see [`crate::compare`]).
    pub atime: Time,
    /// Time of the last change of content.
    pub mtime: Time,
    /// Size of a file, or of a symbolic link's target.
    pub size: u64,
    /// Identity of the inode.
    pub inode: Inode,
    /// Number of names of the inode.
    pub link_count: u64,
    /// Device number of a device node, major and minor; (0, 0) otherwise.
    pub device: (u32, u32),
    /// Bytes occupied on the filesystem (`st_blocks`).
    pub allocated: u64,
    /// Preferred transfer size of the filesystem (`st_blksize`).
    pub block_bytes: u64,
}

impl From<&Statx> for Attributes {
    fn from(stat: &Statx) -> Self {
        let kind = EntryKind::from(FileType::from_raw_mode(u32::from(stat.stx_mode)));
        let is_device = matches!(kind, EntryKind::CharacterDevice | EntryKind::BlockDevice);
        Self {
            kind,
            mode: u32::from(stat.stx_mode) & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            atime: Time::new(stat.stx_atime.tv_sec, stat.stx_atime.tv_nsec),
            mtime: Time::new(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            size: stat.stx_size,
            inode: Inode {
                device: u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor),
                number: stat.stx_ino,
            },
            link_count: u64::from(stat.stx_nlink),
            device: if is_device { (stat.stx_rdev_major, stat.stx_rdev_minor) } else { (0, 0) },
            allocated: stat.stx_blocks.saturating_mul(512),
            block_bytes: u64::from(stat.stx_blksize),
        }
    }
}

impl Attributes {
    /// Reads the attributes of `name` in a directory without following a link.
    pub(crate) fn read(directory: impl AsFd, name: &[u8]) -> rustix::io::Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        statx(directory, name, flags, StatxFlags::BASIC_STATS).map(|stat| Self::from(&stat))
    }

    pub(crate) fn of(file: impl AsFd) -> rustix::io::Result<Self> {
        statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(|stat| Self::from(&stat))
    }
}

#[cfg(test)]
mod tests;

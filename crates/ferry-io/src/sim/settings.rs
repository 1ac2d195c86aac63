//! Features, limits and faults of a simulated filesystem.

use rustix::io::Errno;

use crate::error::Operation;

/// A probability of `MILLION` is certainty.
const MILLION: u32 = 1_000_000;

/// Properties of a [`super::World`]. By default the filesystem is large and has every feature except locks, the user is root, a
/// fifth of all transfers are cut short, and nothing fails.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a feature that a filesystem has or lacks")]
pub struct Settings {
    /// Probability that a transfer or a listing is cut short, in millionths.
    pub short_transfers: u32,
    /// Faults of operations.
    pub faults: Vec<Fault>,
    /// Capacity in bytes; ENOSPC beyond it.
    pub space: u64,
    /// Maximum number of files; ENOSPC beyond it.
    pub files: u64,
    /// Maximum number of links to one file; EMLINK beyond it.
    pub links: u64,
    /// Maximum number of open descriptors; EMFILE beyond it.
    pub descriptors: usize,
    /// True if names that differ only in case (ASCII) are equal.
    pub ignores_case: bool,
    /// True if listings contain the type of each entry; otherwise it is DT_UNKNOWN.
    pub lists_kinds: bool,
    /// True if the cookies of listings are positions, as on overlayfs: removing an entry shifts the later ones. A
    /// descriptor keeps the listing that it began.
    pub ordinal_cookies: bool,
    /// True if a new inode takes the number of a deleted one, as on ext4.
    pub reuses_inodes: bool,
    /// True if files can share extents (FICLONE); otherwise EOPNOTSUPP.
    pub clones: bool,
    /// True if the kernel copies between files (copy_file_range(2)); otherwise EOPNOTSUPP.
    pub copies_ranges: bool,
    /// True if holes are reported; otherwise files consist of data.
    pub finds_holes: bool,
    /// True if space can be reserved (fallocate(2)); otherwise EOPNOTSUPP.
    pub allocates: bool,
    /// True if names can be exchanged, and renamed without replacing (renameat2(2)); otherwise EINVAL.
    pub renames_with_flags: bool,
    /// True if files can be locked (flock(2)); otherwise EOPNOTSUPP. Locking is not counted as a call.
    pub locks: bool,
    /// True if extended attributes are supported; otherwise EOPNOTSUPP.
    pub has_xattrs: bool,
    /// True if files can be opened for direct I/O (O_DIRECT); otherwise EINVAL.
    pub opens_direct: bool,
    /// Alignment of direct transfers in bytes; EINVAL for unaligned ones.
    pub direct_alignment: u64,
    /// True if the filesystem reports this alignment (STATX_DIOALIGN).
    pub reports_alignment: bool,
    /// True if files have a birth time (STATX_BTIME).
    pub tells_birth: bool,
    /// Nanoseconds between ticks of the clock for file timestamps; 1 to 10 ms in a kernel. With 1, each file has a
    /// unique birth time.
    pub clock_grain_ns: u64,
    /// User of the program; 0 has all permissions.
    pub uid: u32,
    /// Group of the user.
    pub gid: u32,
    /// Mode bits cleared in new files.
    pub umask: u32,
    /// Maximum duration of an operation, in nanoseconds of virtual time.
    pub longest_ns: u64,
    /// Magic number of the filesystem (statfs(2)); `None` if it can't be asked for.
    pub magic: Option<u64>,
    /// True if each completion is recorded for [`super::World::history`].
    pub keeps_history: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            short_transfers: MILLION / 5,
            faults: Vec::new(),
            space: 1 << 34,
            files: 1 << 24,
            links: 65_000,
            descriptors: 1024,
            ignores_case: false,
            lists_kinds: true,
            ordinal_cookies: false,
            reuses_inodes: false,
            clones: true,
            copies_ranges: true,
            finds_holes: true,
            allocates: true,
            renames_with_flags: true,
            locks: false,
            has_xattrs: true,
            opens_direct: true,
            direct_alignment: 512,
            reports_alignment: true,
            tells_birth: true,
            clock_grain_ns: 1,
            uid: 0,
            gid: 0,
            umask: 0o022,
            longest_ns: 200_000,
            magic: None,
            keeps_history: false,
        }
    }
}

/// A call that failed because of a [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struck {
    /// Operation that failed.
    pub operation: Operation,
    /// Name of the entry, or the name by which the file was opened.
    pub name: Vec<u8>,
    /// Errno returned.
    pub errno: Errno,
}

/// One fault: makes operations of one kind fail, on any name or on a certain one.
///
/// A request that makes several system calls ([`crate::Dir::load`], [`crate::Dir::enter`]) meets the faults of each.
#[derive(Debug, Clone)]
pub struct Fault {
    pub(super) operation: Operation,
    pub(super) name: Option<Vec<u8>>,
    pub(super) when: When,
    pub(super) errno: Errno,
    /// Number of calls that the fault applied to so far.
    pub(super) met: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    Nth(u64),
    From(u64),
    Chance(u32),
}

impl Fault {
    fn new(operation: Operation, when: When, errno: Errno) -> Self {
        Self { operation, name: None, when, errno, met: 0 }
    }

    /// Makes every call fail.
    #[must_use]
    pub fn always(operation: Operation, errno: Errno) -> Self {
        Self::new(operation, When::From(1), errno)
    }

    /// Makes the `n`-th call fail, counted from one.
    #[must_use]
    pub fn nth(operation: Operation, n: u64, errno: Errno) -> Self {
        Self::new(operation, When::Nth(n), errno)
    }

    /// Makes the `n`-th call and all later ones fail.
    #[must_use]
    pub fn from_nth(operation: Operation, n: u64, errno: Errno) -> Self {
        Self::new(operation, When::From(n), errno)
    }

    /// Makes each call fail with a probability of `per_million` millionths.
    #[must_use]
    pub fn by_chance(operation: Operation, per_million: u32, errno: Errno) -> Self {
        Self::new(operation, When::Chance(per_million), errno)
    }

    /// Restricts the fault to entries of this name and files opened by it.
    #[must_use]
    pub fn on(mut self, name: impl AsRef<[u8]>) -> Self {
        self.name = Some(name.as_ref().to_vec());
        self
    }
}

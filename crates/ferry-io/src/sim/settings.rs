//! What a simulated filesystem can do, how large it is, and what goes wrong on it.

use rustix::io::Errno;

use crate::error::Operation;

/// One million: a chance of `MILLION` is certainty.
const MILLION: u32 = 1_000_000;

/// The properties of a [`super::World`]. The default is a roomy filesystem with everything, used by root, on which a
/// fifth of all transfers are cut short and nothing fails.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a feature that a filesystem has or lacks")]
pub struct Settings {
    /// Chance that a transfer or a listing is cut short, in millionths.
    pub short_transfers: u32,
    /// What fails, and when.
    pub faults: Vec<Fault>,
    /// Bytes that files may hold; more is ENOSPC.
    pub space: u64,
    /// Files that there may be; more is ENOSPC.
    pub files: u64,
    /// Names that a file may have; more is EMLINK.
    pub links: u64,
    /// Descriptors that may be open; more is EMFILE.
    pub descriptors: usize,
    /// Whether names that differ only in case (ASCII) are one.
    pub ignores_case: bool,
    /// Whether listings tell what entries are (DT_UNKNOWN if not).
    pub lists_kinds: bool,
    /// Whether the cookies of listings are positions, as on overlayfs: what is removed meanwhile shifts those behind it.
    /// A descriptor that has begun to list keeps the listing that it found.
    pub ordinal_cookies: bool,
    /// Whether the number of an inode that is gone is given to the next one that is made, as on ext4.
    pub reuses_inodes: bool,
    /// Whether files can share extents (FICLONE); EOPNOTSUPP if not.
    pub clones: bool,
    /// Whether the kernel copies between files (copy_file_range(2)); EOPNOTSUPP if not.
    pub copies_ranges: bool,
    /// Whether there are holes to be found; if not, files are data throughout.
    pub finds_holes: bool,
    /// Whether room can be reserved (fallocate(2)); EOPNOTSUPP if not.
    pub allocates: bool,
    /// Whether there are extended attributes; EOPNOTSUPP if not.
    pub has_xattrs: bool,
    /// Whether files can be opened past the page cache (O_DIRECT); EINVAL if not.
    pub opens_direct: bool,
    /// What direct transfers must be aligned to, in bytes; EINVAL if they are not.
    pub direct_alignment: u64,
    /// Whether the filesystem tells that alignment (STATX_DIOALIGN).
    pub reports_alignment: bool,
    /// Whether files tell when they were made (STATX_BTIME).
    pub tells_birth: bool,
    /// Nanoseconds between two ticks of the clock that dates files; a kernel's has 1 to 10 ms. With 1, each file has a birth
    /// time of its own.
    pub clock_grain_ns: u64,
    /// The user that the program runs as; 0 may do everything.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
    /// Bits taken from the mode of what is created.
    pub umask: u32,
    /// The longest that an operation takes, in nanoseconds of virtual time.
    pub longest_ns: u64,
    /// Whether each completion is noted, for [`super::World::history`].
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
            keeps_history: false,
        }
    }
}

/// A call that failed because a [`Fault`] says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struck {
    /// What was asked.
    pub operation: Operation,
    /// The entry's name, or the one by which the file was opened.
    pub name: Vec<u8>,
    /// The answer.
    pub errno: Errno,
}

/// One thing that goes wrong: operations of a kind, on any name or a certain one.
///
/// Requests made of several system calls ([`crate::Dir::load`], [`crate::Dir::enter`]) meet the faults of each.
#[derive(Debug, Clone)]
pub struct Fault {
    pub(super) operation: Operation,
    pub(super) name: Option<Vec<u8>>,
    pub(super) when: When,
    pub(super) errno: Errno,
    /// How many have been asked of it.
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

    /// Every one fails.
    #[must_use]
    pub fn always(operation: Operation, errno: Errno) -> Self {
        Self::new(operation, When::From(1), errno)
    }

    /// The `n`-th fails, counted from one.
    #[must_use]
    pub fn nth(operation: Operation, n: u64, errno: Errno) -> Self {
        Self::new(operation, When::Nth(n), errno)
    }

    /// The `n`-th and all that follow fail.
    #[must_use]
    pub fn from_nth(operation: Operation, n: u64, errno: Errno) -> Self {
        Self::new(operation, When::From(n), errno)
    }

    /// Each fails in `per_million` of a million cases.
    #[must_use]
    pub fn by_chance(operation: Operation, per_million: u32, errno: Errno) -> Self {
        Self::new(operation, When::Chance(per_million), errno)
    }

    /// Only on entries of this name, and on files that were opened by it.
    #[must_use]
    pub fn on(mut self, name: impl AsRef<[u8]>) -> Self {
        self.name = Some(name.as_ref().to_vec());
        self
    }
}

//! Errors: failed operations with the kernel's answer, and set-up errors with their remedy.

use std::fmt;

use rustix::io::Errno;

/// Kind of an operation, as named in errors, counters and explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the system call or the part of the runtime that it is named after")]
pub enum Operation {
    Open,
    Stat,
    Read,
    Write,
    CopyRange,
    Clone,
    Seek,
    Allocate,
    Truncate,
    Sync,
    List,
    Examine,
    MakeDirectory,
    Symlink,
    ReadLink,
    Link,
    MakeNode,
    Rename,
    Unlink,
    SetOwner,
    SetMode,
    SetTimes,
    ListXattr,
    GetXattr,
    SetXattr,
    Load,
    Store,
    Chain,
    Close,
    Wait,
}

impl Operation {
    /// All kinds, in the order of the counters.
    pub const ALL: [Self; 30] = [
        Self::Open,
        Self::Stat,
        Self::Read,
        Self::Write,
        Self::CopyRange,
        Self::Clone,
        Self::Seek,
        Self::Allocate,
        Self::Truncate,
        Self::Sync,
        Self::List,
        Self::Examine,
        Self::MakeDirectory,
        Self::Symlink,
        Self::ReadLink,
        Self::Link,
        Self::MakeNode,
        Self::Rename,
        Self::Unlink,
        Self::SetOwner,
        Self::SetMode,
        Self::SetTimes,
        Self::ListXattr,
        Self::GetXattr,
        Self::SetXattr,
        Self::Load,
        Self::Store,
        Self::Chain,
        Self::Close,
        Self::Wait,
    ];

    /// Returns the name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::Read => "read",
            Self::Write => "write",
            Self::CopyRange => "copy_file_range",
            Self::Clone => "clone",
            Self::Seek => "seek",
            Self::Allocate => "fallocate",
            Self::Truncate => "truncate",
            Self::Sync => "sync",
            Self::List => "list",
            Self::Examine => "examine",
            Self::MakeDirectory => "mkdir",
            Self::Symlink => "symlink",
            Self::ReadLink => "readlink",
            Self::Link => "link",
            Self::MakeNode => "mknod",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::SetOwner => "chown",
            Self::SetMode => "chmod",
            Self::SetTimes => "utimens",
            Self::ListXattr => "listxattr",
            Self::GetXattr => "getxattr",
            Self::SetXattr => "setxattr",
            Self::Load => "load",
            Self::Store => "store",
            Self::Chain => "chain",
            Self::Close => "close",
            Self::Wait => "wait",
        }
    }
}

/// Cause of an operation's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Errno returned by the kernel.
    Errno(Errno),
    /// The operation's scope was cancelled.
    Cancelled,
    /// The time limit passed.
    TimedOut,
    /// The queue is closed.
    Closed,
}

/// Error of an operation.
///
/// ```
/// use ferry_io::{Cause, Errno, Error, Operation};
///
/// let error = Error::errno(Operation::Open, Errno::NOENT);
/// assert_eq!(error.to_string(), "open: No such file or directory");
/// assert_eq!((error.is(Errno::NOENT), error.as_errno()), (true, Some(Errno::NOENT)));
/// let cancelled = Error::cancelled(Operation::Read);
/// assert_eq!((cancelled.is_cancelled(), cancelled.cause), (true, Cause::Cancelled));
/// assert!(Operation::ALL.iter().any(|operation| operation.name() == "open"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", operation.name())]
pub struct Error {
    /// Operation that failed.
    pub operation: Operation,
    /// Cause of the failure.
    pub cause: Cause,
}

/// Result of one operation.
///
/// ```
/// use std::path::Path;
///
/// use ferry_io::{Io, Result};
///
/// async fn entries(io: &Io, folder: &Path) -> Result<usize> {
///     Ok(io.open_dir(folder)?.list(None).await?.entries.len())
/// }
/// # let options = ferry_io::Options::default();
/// let (count, _stats) = ferry_io::run(&options, async |io| entries(&io, "/proc/self".as_ref()).await)?;
/// assert!(count? > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates the error of an operation that failed with `errno`.
    #[must_use]
    pub fn errno(operation: Operation, errno: Errno) -> Self {
        Self { operation, cause: Cause::Errno(errno) }
    }

    /// Creates the error of an operation whose scope was cancelled.
    #[must_use]
    pub fn cancelled(operation: Operation) -> Self {
        Self { operation, cause: Cause::Cancelled }
    }

    /// Returns the errno, if that was the cause.
    #[must_use]
    pub fn as_errno(&self) -> Option<Errno> {
        match self.cause {
            Cause::Errno(errno) => Some(errno),
            Cause::Cancelled | Cause::TimedOut | Cause::Closed => None,
        }
    }

    /// Returns true if the operation's scope was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cause == Cause::Cancelled
    }

    /// Returns true if the kernel answered with `errno`.
    #[must_use]
    pub fn is(&self, errno: Errno) -> bool {
        self.cause == Cause::Errno(errno)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errno(errno) => f.write_str(&describe(*errno)),
            Self::Cancelled => f.write_str("cancelled"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// Returns the C library's text for `errno`, as other programs print it.
fn describe(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Reason why a runtime could not be set up, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// An option is outside its limits.
    #[error("{name} {value} is not allowed: it must be {allowed}")]
    BadOption {
        /// Name of the option.
        name: &'static str,
        /// Value of the option.
        value: usize,
        /// Values that are allowed.
        allowed: &'static str,
    },
    /// io_uring was requested and is unavailable.
    #[error("{reason}; `--backend posix` does without it")]
    NoUring {
        /// The kernel's answer and its usual reason.
        reason: String,
    },
    /// This kernel or device does not support the ring mode.
    #[error("ring mode {mode} is unavailable here ({reason}); omit it to use the best available mode")]
    NoRingMode {
        /// Ring mode requested.
        mode: &'static str,
        /// Reason.
        reason: String,
    },
    /// The blocks could not be mapped.
    #[error(
        "{bytes} bytes of blocks cannot be allocated ({errno}); lower the block size or the number of blocks"
    )]
    NoMemory {
        /// Number of bytes requested.
        bytes: usize,
        /// Errno returned by the kernel.
        errno: Errno,
    },
    /// Too few descriptors for any file to be opened.
    #[error("the limit of {limit} open files is too low; at least {needed} are needed (`ulimit -n`)")]
    FewDescriptors {
        /// RLIMIT_NOFILE, after it was raised as far as allowed.
        limit: u64,
        /// Number of descriptors needed.
        needed: u64,
    },
    /// The file of a recording can't be made.
    #[error("cannot record to '{file}': {reason}")]
    Trace {
        /// Name of the file, escaped to one line.
        file: String,
        /// Reason.
        reason: String,
    },
}

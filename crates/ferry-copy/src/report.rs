//! What a copy tells while it runs and when it has ended: progress, failures by path, and the summary.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::counter::Counter;
use crate::how::How;

/// Told about each event as it happens, from any worker's thread.
pub trait Observer: Send + Sync {
    /// An entry was copied; only called with [`crate::Options::verbose`].
    fn copied(&self, copied: &Copied<'_>);
    /// A target was left as it is; only called with [`crate::Options::debug`].
    fn skipped(&self, _target: &Path) {}
    /// An operand is the same as an earlier one, and has the same target: it is not copied again.
    fn repeated(&self, _source: &Path, _is_folder: bool) {}
    /// What was at the target was removed to be replaced; only called with [`crate::Options::verbose`].
    fn removed(&self, target: &Path);
    /// A copy failed, and the backup has got the target's name back; only called with [`crate::Options::verbose`].
    fn taken_back(&self, backup: &Path, target: &Path);
    /// Whether the user wants the target replaced; only called with [`crate::Existing::Ask`], by one thread. It may wait
    /// for the answer until `is_over` says that nobody needs it any more.
    fn agrees(&self, target: &Path, question: Question, is_over: &dyn Fn() -> bool) -> bool;
    /// How a file's bytes went and why; only called with [`crate::Options::explain`].
    fn explained(&self, source: &Path, method: Method, why: &str);
    /// Something went wrong with one path; the run goes on.
    fn failed(&self, failure: &Failure);
    /// A target is left incomplete, after its failure was reported or because the run was interrupted.
    fn unfinished(&self, unfinished: &Unfinished);
}

/// A target that is neither complete nor removed.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// The source's path.
    pub source: PathBuf,
    /// The target's path.
    pub target: PathBuf,
    /// Set if nothing failed but the run was interrupted: no [`Failure`] tells of this path.
    pub is_interrupted: bool,
    /// The reason why it does not have the oldest times that mark it, or could not be removed; `None` if it has them.
    pub error: Option<ferry_io::Error>,
}

/// An entry that was copied.
#[derive(Debug, Clone, Copy)]
pub struct Copied<'a> {
    /// The source's path.
    pub source: &'a Path,
    /// The target's path.
    pub target: &'a Path,
    /// Where what was at the target is kept.
    pub backup: Option<&'a Path>,
    /// How its bytes went; of files, with [`crate::Options::debug`].
    pub how: Option<How>,
    /// Whether it is a folder that was made on the way to an operand (`--parents`).
    pub is_way: bool,
}

/// What the user is asked before a target is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether it is to be overwritten.
    Overwrite,
    /// Whether that is to be tried though the mode forbids it.
    TryAnyway {
        /// Its permission bits.
        mode: u32,
    },
    /// Whether it is to be replaced by a new file though the mode forbids writing to it (`-f`).
    Override {
        /// Its permission bits.
        mode: u32,
    },
}

/// How a file's bytes got from source to target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// `FICLONE`: extents shared, nothing moved.
    Reflink,
    /// `copy_file_range(2)`: the kernel moved them.
    Offload,
    /// Several blocks in flight, read and written at once.
    Pipeline,
    /// The same past the page cache, on one side at least.
    Direct,
    /// Read whole into one block and written.
    Whole,
    /// No bytes: an empty file, or one that is all hole.
    Nothing,
}

impl Method {
    /// Every method, in the order reported.
    pub const ALL: [Self; 6] =
        [Self::Reflink, Self::Offload, Self::Pipeline, Self::Direct, Self::Whole, Self::Nothing];

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reflink => "reflink",
            Self::Offload => "copy_file_range",
            Self::Pipeline => "pipeline",
            Self::Direct => "direct",
            Self::Whole => "whole",
            Self::Nothing => "nothing",
        }
    }
}

/// What could not be done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Find out what it is.
    Stat,
    /// Find out what is at the target.
    StatTarget,
    /// Find out what a folder on the way to it is (`--parents`).
    StatWay,
    /// Open it for reading.
    Open,
    /// Open the folder.
    OpenDirectory,
    /// Read its bytes.
    Read,
    /// Read the folder's names.
    ReadDirectory,
    /// Make the file in the target.
    CreateFile,
    /// Make the folder in the target.
    CreateDirectory,
    /// Make a folder on the way to it in the target (`--parents`).
    CreateWay,
    /// Make the symbolic link.
    CreateSymlink,
    /// Make the hard link.
    CreateLink,
    /// Make the FIFO.
    CreateFifo,
    /// Make the socket or device.
    CreateSpecial,
    /// Read a link's target.
    ReadLink,
    /// Write its bytes.
    Write,
    /// Close it once it is written.
    Close,
    /// Share its extents (`--reflink=always`).
    Clone,
    /// Set its owner.
    SetOwner,
    /// Set its mode.
    SetMode,
    /// Set its ACLs.
    SetAcl,
    /// Set its times.
    SetTimes,
    /// Find out its extended attributes.
    ListXattr,
    /// Set its extended attributes.
    SetXattr,
    /// Remove an existing target.
    Remove,
    /// Keep it by another name.
    BackUp,
    /// Give it its name back, when its copy has failed.
    TakeBack,
    /// Make it durable.
    Sync,
}

/// Why one path was not copied, or not wholly.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The source's path.
    pub source: PathBuf,
    /// The target's path.
    pub target: PathBuf,
    /// What is wrong.
    pub kind: FailureKind,
}

/// The kinds of [`Failure`]. `Display` for the whole text is the command's affair: it knows the program's name.
#[derive(Debug, Clone)]
pub enum FailureKind {
    /// The kernel refused.
    Io {
        /// What was being done.
        verb: Verb,
        /// What the kernel answered.
        error: ferry_io::Error,
    },
    /// A folder, without `-r`.
    OmittingDirectory,
    /// Source and target are one file.
    SameFile,
    /// A folder into itself.
    IntoItself,
    /// A folder over something else.
    DirectoryOverFile,
    /// A folder on the way to a target over something else (`--parents`).
    WayIsFile,
    /// Something else over a folder.
    FileOverDirectory,
    /// This run has made the target already, from another source.
    JustCreated,
    /// This run has made the target already, as a symbolic link that the bytes would go through.
    ThroughJustCreated,
    /// The target is a symbolic link to nothing; writing through it is refused.
    DanglingTarget,
    /// The source was another file when opened than when listed.
    Replaced,
    /// A link, followed with `-L`, that leads to a folder it is in.
    CyclicLink,
    /// The backup of the target would take the place of the source.
    BackupDestroysSource,
    /// The target is there, and was not to be replaced (`--update=none-fail`).
    NotReplaced,
    /// A folder that an earlier operand of this run has copied.
    CopiedBefore {
        /// Where its copy is.
        first: PathBuf,
    },
    /// A further name of a file that could not be linked to the copy of the first.
    LinkToCopy {
        /// Where that copy is.
        first: PathBuf,
        /// What the kernel answered.
        error: ferry_io::Error,
    },
    /// `-s` with a relative path into another folder, where it would lead elsewhere.
    RelativeSymlink,
}

impl FailureKind {
    /// Returns true if the run's end was the reason, which is no failure of the path.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self, Self::Io { error, .. } | Self::LinkToCopy { error, .. } if error.is_cancelled())
    }
}

/// Counters that a progress bar reads while the copy runs. All are totals since the start.
#[derive(Debug, Default)]
pub struct Progress {
    /// Entries met in source folders.
    pub entries_found: Counter,
    /// Sizes of the regular files whose content is copied, in bytes; of a file with several names once.
    pub bytes_found: Counter,
    /// Entries done, failed ones among them.
    pub entries_done: Counter,
    /// Bytes of content that have reached the target, and of holes that were passed over.
    pub bytes_done: Counter,
    /// Whether every folder has been listed: from now on `found` is all there is.
    pub walk_ended: AtomicBool,
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Regular files copied.
    pub files: u64,
    /// Folders made or merged into.
    pub directories: u64,
    /// Symbolic links made.
    pub symlinks: u64,
    /// Hard links made to files copied before.
    pub hard_links: u64,
    /// FIFOs, sockets and devices made.
    pub specials: u64,
    /// Entries left alone (`-n`, `-u`).
    pub skipped: u64,
    /// Bytes of content, by [`Method`] in the order of [`Method::ALL`].
    pub bytes_by_method: [u64; Method::ALL.len()],
    /// Files, by [`Method`].
    pub files_by_method: [u64; Method::ALL.len()],
    /// Paths that failed.
    pub failed: u64,
    /// Existing targets that were overwritten in part, and new ones that could not be removed.
    pub unfinished: u64,
    /// Whether the run was ended by Ctrl-C.
    pub interrupted: bool,
    /// Whether the run was ended by a full filesystem.
    pub out_of_space: bool,
    /// From start to end, that of the counters and of a recording not included.
    pub wall: Duration,
    /// The runtime's counters.
    pub io: ferry_io::Stats,
}

impl Summary {
    /// Bytes of content copied by all methods.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_by_method.iter().sum()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! Reports of a copy while it runs and at its end: progress, failures by path, and the summary.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ferry_io::{Name, Stat};

use crate::counter::Counter;
use crate::digest::Digest;

/// Receiver of each event as it happens, called from any worker's thread.
pub trait Observer: Send + Sync {
    /// An entry was copied; only called with [`crate::Options::verbose`].
    fn copied(&self, _copied: &Copied<'_>) {}
    /// Returns true if an entry of a source folder is not copied; only called with [`crate::Options::filtered`].
    fn leaves_out(&self, _folder: &Path, _name: &Name) -> bool {
        false
    }
    /// A target was left as it is; only called with [`crate::Options::debug`].
    fn skipped(&self, _target: &Path) {}
    /// An operand equals an earlier one and has the same target: it is not copied again.
    fn repeated(&self, _source: &Path, _is_folder: bool) {}
    /// An existing target was removed to be replaced; only called with [`crate::Options::verbose`].
    fn removed(&self, _target: &Path) {}
    /// A copy failed, and its backup got the target's name back; only called with [`crate::Options::verbose`].
    fn taken_back(&self, _backup: &Path, _target: &Path) {}
    /// Returns true if the user wants the target replaced; only called with [`crate::Existing::Ask`], by one thread. It
    /// may wait for the answer until `is_over` returns true.
    fn agrees(&self, _target: &Path, _question: Question, _is_over: &dyn Fn() -> bool) -> bool {
        false
    }
    /// The bytes of a file were copied; only called with [`crate::Options::explain`].
    fn explained(&self, _explained: &Explained<'_>) {}
    /// One path failed; the run goes on.
    fn failed(&self, failure: &Failure);
    /// A target is left incomplete, after its failure was reported or because the run was interrupted.
    fn unfinished(&self, unfinished: &Unfinished);
    /// A regular file of the target is complete; only called with [`crate::Options::digest`].
    fn hashed(&self, _hashed: &Hashed<'_>) {}
    /// The part of a large file is gone on with, ignored or kept; only called with [`crate::Options::resume`].
    fn part(&self, _note: &PartNote) {}
}

/// A regular file of the target, as it was copied.
#[derive(Debug, Clone, Copy)]
pub struct Hashed<'a> {
    /// The source's path.
    pub source: &'a Path,
    /// The target's path.
    pub target: &'a Path,
    /// Hash of its bytes.
    pub digest: Digest,
    /// Its attributes.
    pub stat: &'a Stat,
}

/// A file whose bytes were copied, and how.
#[derive(Debug, Clone, Copy)]
pub struct Explained<'a> {
    /// The source's path.
    pub source: &'a Path,
    /// Method of the copy.
    pub method: Method,
    /// Reason for the method.
    pub why: &'static str,
    /// Number of bytes.
    pub bytes: u64,
}

/// A target that is neither complete nor removed.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// The source's path.
    pub source: PathBuf,
    /// The target's path.
    pub target: PathBuf,
    /// Set if the run was interrupted without a failure: no [`Failure`] names this path.
    pub is_interrupted: bool,
    /// The error that kept it from being marked with the oldest times or removed; `None` if it is marked.
    pub error: Option<ferry_io::Error>,
}

/// A note about what an interrupted run has copied, or leaves, of a large file.
#[derive(Debug, Clone)]
pub struct PartNote {
    /// The source's path.
    pub source: PathBuf,
    /// The target's path.
    pub target: PathBuf,
    /// What becomes of the part.
    pub state: PartState,
}

/// What becomes of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartState {
    /// This run goes on after so many bytes; with the reason if other bytes, or a part of the journal, are not used.
    Continued(u64, Option<&'static str>),
    /// This run copies the file anew, for this reason.
    Ignored(&'static str),
    /// The next run can go on after so many bytes.
    Kept(u64),
}

/// An entry that was copied.
#[derive(Debug, Clone, Copy)]
pub struct Copied<'a> {
    /// The source's path.
    pub source: &'a Path,
    /// The target's path.
    pub target: &'a Path,
    /// Path under which the replaced target is kept.
    pub backup: Option<&'a Path>,
    /// Means that GNU cp would have used for a file, with [`crate::Options::debug`].
    pub means: Option<CpMeans>,
    /// Set for a folder made on the way to an operand (`--parents`).
    pub is_way: bool,
}

/// Means that GNU cp would have used for a file's bytes; `Display` gives its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpMeans {
    pub(crate) offload: &'static str,
    pub(crate) reflink: &'static str,
    pub(crate) sparse: &'static str,
}

impl CpMeans {
    /// Returns the words for a file whose bytes went by `method`: shared extents leave nothing else to report.
    pub(crate) fn if_not_shared(self, method: Method) -> Self {
        match method {
            Method::Reflink => Self { offload: "unknown", reflink: "yes", sparse: "unknown" },
            Method::Offload | Method::Pipeline | Method::Direct | Method::Whole | Method::Nothing => self,
        }
    }
}

impl fmt::Display for CpMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offload, reflink, sparse } = self;
        write!(f, "copy offload: {offload}, reflink: {reflink}, sparse detection: {sparse}")
    }
}

/// Question to the user before a target is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Is it to be overwritten?
    Overwrite,
    /// Is overwriting to be tried although the mode forbids it?
    TryAnyway {
        /// Its permission bits.
        mode: u32,
    },
    /// Is it to be replaced by a new file although the mode forbids writing to it (`-f`)?
    Override {
        /// Its permission bits.
        mode: u32,
    },
}

/// Method by which a file's bytes were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// `FICLONE`: extents shared, nothing moved.
    Reflink,
    /// `copy_file_range(2)`: the kernel moved them.
    Offload,
    /// Read and written: by a helper thread (large files), or with several blocks in flight.
    Pipeline,
    /// Several blocks in flight past the page cache, on one side at least.
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

/// A step of copying a path, as failures name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Find out its kind.
    Stat,
    /// Look at its target.
    StatTarget,
    /// Look at a folder on the way to it (`--parents`).
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
    /// Keep it under another name.
    BackUp,
    /// Give it its name back after its copy has failed.
    TakeBack,
    /// Give an entry that was taken away its name back.
    Restore,
    /// Make it durable.
    Sync,
    /// Reading the target, to compare it.
    ReadTarget,
    /// Reading the target, to hash it for a manifest.
    Hash,
    /// Listing a folder of the target.
    ReadTargetDirectory,
}

impl Verb {
    /// Returns the step in which a flow of blocks has failed.
    pub(crate) fn of_flow(error: &ferry_io::Error) -> Self {
        if error.operation == ferry_io::Operation::Read { Self::Read } else { Self::Write }
    }

    /// Returns the failure of this step with the kernel's answer.
    pub(crate) fn failed(self, error: ferry_io::Error) -> FailureKind {
        FailureKind::Io { verb: self, error }
    }
}

/// Names the step during which the kernel refused.
pub(crate) trait During<T> {
    /// Turns an error into the failure of `verb`.
    fn during(self, verb: Verb) -> Result<T, FailureKind>;
}

impl<T> During<T> for ferry_io::Result<T> {
    fn during(self, verb: Verb) -> Result<T, FailureKind> {
        self.map_err(|error| verb.failed(error))
    }
}

/// Failure to copy one path, or all of it.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The source's path.
    pub source: PathBuf,
    /// The target's path.
    pub target: PathBuf,
    /// Kind of failure.
    pub kind: FailureKind,
}

/// Kinds of [`Failure`]. The command, which knows the program's name, turns them into messages.
#[derive(Debug, Clone)]
pub enum FailureKind {
    /// The kernel refused a step.
    Io {
        /// The step.
        verb: Verb,
        /// The kernel's answer.
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
    /// This run has made the target already, as a symbolic link that would be followed.
    ThroughJustCreated,
    /// The target is a symbolic link to nothing; writing through it is refused.
    DanglingTarget,
    /// The source was another file when opened than when listed.
    Replaced,
    /// The source or the target was another file when it was to be copied or changed than when it was examined.
    Changed,
    /// The target's name leads to an entry that its folder does not list: to one with a similar name, on a filesystem
    /// that ignores case for example, or to one that was made meanwhile.
    Unlisted,
    /// A foreign or changed entry of the target that could not get its name back.
    KeptAside {
        /// Its name in the target's folder; `None` if it is in the trash.
        aside: Option<Name>,
        /// The kernel's answer.
        error: ferry_io::Error,
    },
    /// A link, followed with `-L`, that leads to a folder it is in.
    CyclicLink,
    /// The backup of the target would take the place of the source.
    BackupDestroysSource,
    /// The target exists and must not be replaced (`--update=none-fail`).
    NotReplaced,
    /// A folder that an earlier operand of this run has copied.
    CopiedBefore {
        /// Path of its copy.
        first: PathBuf,
    },
    /// A further name of a file that could not be linked to the copy of the first.
    LinkToCopy {
        /// Path of that copy.
        first: PathBuf,
        /// The kernel's answer.
        error: ferry_io::Error,
    },
    /// The target was read back and differs from the source, also after a second copy (`--verify`).
    Unverified,
    /// The source can be read only once: its copy can't be compared with it (`--verify`).
    ReadOnce,
    /// `-s` with a relative path in another folder, where it would lead elsewhere.
    RelativeSymlink,
    /// The source is a FIFO, a socket or a device ([`crate::Options::strict_kinds`]).
    SpecialSource,
    /// The target is a FIFO, a socket or a device ([`crate::Options::strict_kinds`]).
    SpecialTarget,
}

impl FailureKind {
    /// Returns the kernel's answer, if it is the reason.
    #[must_use]
    pub fn error(&self) -> Option<&ferry_io::Error> {
        if let Self::Io { error, .. } | Self::LinkToCopy { error, .. } | Self::KeptAside { error, .. } = self
        {
            Some(error)
        } else {
            None
        }
    }

    /// Returns true if the end of the run is the reason, which is no failure of the path.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self, Self::Io { error, .. } | Self::LinkToCopy { error, .. } if error.is_cancelled())
    }
}

/// Counters that a progress bar reads while the copy runs. All are totals since the start.
#[derive(Debug, Default)]
pub struct Progress {
    /// Entries found in source folders.
    pub entries_found: Counter,
    /// Bytes of the regular files found; a file with several names counts once.
    pub bytes_found: Counter,
    /// Entries done, failed ones among them, and not those that the end of the run has cut short.
    pub entries_done: Counter,
    /// Bytes of files that stay as they are, because the target has them already.
    pub bytes_passed: Counter,
    /// Bytes written to the target, and bytes of holes skipped.
    pub bytes_done: Counter,
    /// Set once every folder has been listed: the totals found are final.
    pub walk_ended: AtomicBool,
}

/// One side of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The tree that is read.
    Source,
    /// The tree that is written.
    Target,
}

/// Totals of a run.
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
    /// Existing targets left incomplete, and incomplete new ones that could not be removed.
    pub unfinished: u64,
    /// Set if a signal or [`ferry_io::Io::stop`] ended the run.
    pub interrupted: bool,
    /// Set if a full filesystem ended the run.
    pub out_of_space: bool,
    /// Set if the device of this side ended the run, because it fails or is gone.
    pub lost: Option<Side>,
    /// Number of operands that ended early, because their device fails or is gone.
    pub ended_operands: u64,
    /// Time from start to end, without opening and closing counters and recordings.
    pub wall: Duration,
    /// Ways by which the bytes of large files moved, for each pair of devices; the preferred one first.
    pub ways: Vec<Vec<ferry_io::Tried>>,
    /// The runtime's counters.
    pub io: ferry_io::Stats,
}

impl Summary {
    /// Bytes of content copied by all methods.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_by_method.iter().sum()
    }

    /// Returns true if the run ended before everything was tried.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.interrupted || self.out_of_space || self.lost.is_some() || self.ended_operands > 0
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

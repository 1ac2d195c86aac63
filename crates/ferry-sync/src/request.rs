//! What a caller asks for, and what it gets.

use std::fs::File;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ferry_copy::{FailureKind, Gate, Observer, Progress, Side};
use ferry_io::{Cause, Errno, SetupError};

use crate::decide::Comparison;
use crate::list::List;
use crate::manifest::collect::Manifest;
use crate::perform::Done;
use crate::plan::{Action, Unreadable};
use crate::select::{BadPattern, Selection};

/// A synchronisation: which trees, and what is compared and done.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent option of the command")]
pub struct Request {
    /// The folder whose contents the target gets.
    pub source: PathBuf,
    /// The folder that is made equal; it is made if it is missing.
    pub target: PathBuf,
    /// What is compared of two files.
    pub comparison: Comparison,
    /// Set if newer targets stay.
    pub keeps_newer: bool,
    /// Set if entries that the source lacks are deleted.
    pub deletes: bool,
    /// Set if an empty source may empty the target.
    pub allows_empty: bool,
    /// Most entries that may be deleted.
    pub max_delete: MaxDelete,
    /// Which entries take part.
    pub selection: Selection,
    /// Names that alone take part.
    pub list: Option<Arc<List>>,
    /// Set if each entry of a new folder is an action of its own.
    pub each_entry: bool,
    /// How the target is changed.
    pub acting: Acting,
}

/// How actions are performed.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent option of the command")]
pub struct Acting {
    /// Set if files are overwritten in place.
    pub in_place: bool,
    /// Set if everything is to be durable at the end.
    pub fsync: bool,
    /// Each copied file is read back from its device, and compared with its source, before it gets its name.
    pub verify: bool,
    /// Bytes written per second at most.
    pub bandwidth: Option<NonZeroU64>,
    /// Time after which the run stops.
    pub time_limit: Option<Duration>,
    /// Fate of replaced and deleted entries.
    pub disposal: Disposal,
    /// Set if a later run completes this one. Directories that exist keep their attributes, whatever changes in them, and
    /// names of the list that the source lacks by now are passed over.
    pub is_part: bool,
}

/// Fate of entries that are taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Disposal {
    /// They are removed.
    #[default]
    Remove,
    /// They go to a new folder in this one, or else in `.ferry-trash` in the target.
    Trash(Option<PathBuf>),
}

/// Bound on deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaxDelete {
    /// The larger of 1,000 and half of the target's entries.
    #[default]
    Half,
    /// This number.
    Number(u64),
    /// No bound.
    Any,
}

impl MaxDelete {
    pub(crate) fn limit(self, targets: u64) -> u64 {
        match self {
            Self::Half => (targets / 2).max(1_000),
            Self::Number(number) => number,
            Self::Any => u64::MAX,
        }
    }
}

/// Use of the actions: performed, printed or written to a plan.
pub enum Use {
    /// They are performed.
    Perform,
    /// They are only shown.
    Show,
    /// They are written to this file as a plan.
    Record(File),
}

/// Totals of a run.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Actions performed, shown or recorded.
    pub done: Done,
    /// Entries that failed.
    pub failed: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Set if a signal or the time limit ended the run.
    pub interrupted: bool,
    /// Set if a full filesystem ended it.
    pub out_of_space: bool,
    /// Set if the device of this side ended it, because it fails or is gone.
    pub lost: Option<Side>,
    /// Number of entries that were to be deleted and the limit that they exceed: none was deleted.
    pub too_many: Option<(u64, u64)>,
    /// Number of entries that were not removed for good, because something else had failed.
    pub spared: u64,
    /// Set if an earlier run ended early, the target was mounted again since, and this run examined only a part of it: other files
    /// may lack bytes.
    pub leaves_doubts: bool,
    /// Folder that replaced and deleted entries were moved to, or those that others were restored in place of.
    pub trash: Option<PathBuf>,
    /// The runtime's counters.
    pub io: ferry_io::Stats,
}

impl Totals {
    /// Returns true if the run ended before everything was tried.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.interrupted || self.out_of_space || self.lost.is_some()
    }

    /// Adds what an earlier attempt has done.
    pub fn add(&mut self, earlier: &Self) {
        self.done.add(&earlier.done);
        self.bytes += earlier.bytes;
    }
}

/// Reason why nothing was begun, or why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Refused {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("cannot open {path:?}: {cause}")]
    Open { path: PathBuf, cause: Cause },
    #[error("cannot make directory {path:?}: {cause}")]
    Make { path: PathBuf, cause: Cause },
    #[error("{source_path:?} is empty: nothing is deleted, unless --allow-empty is given")]
    Empty { source_path: PathBuf },
    #[error("{inner:?} is in {outer:?}: a tree can't be made equal to a part of itself")]
    Overlap { inner: PathBuf, outer: PathBuf },
    #[error("{0:?} is not a trash of ferry sync: nothing was moved")]
    NoTrash(PathBuf),
    #[error("{0:?} is a trash of ferry sync, and can't be a target")]
    IntoTrash(PathBuf),
    #[error(transparent)]
    Pattern(#[from] BadPattern),
    #[error("{0:?} and {1:?} are the same directory")]
    Same(PathBuf, PathBuf),
    #[error("{0:?} is not the directory that the plan was made for")]
    Other(PathBuf),
    #[error("cannot keep what is put aside: {0}")]
    Aside(std::io::Error),
    #[error("the plan: {0}")]
    Plan(#[from] Unreadable),
    #[error("the plan: {0}")]
    PlanFile(std::io::Error),
}

impl Refused {
    /// Returns the refusal for a root that can't be opened or listed.
    pub(crate) fn of(path: &Path, kind: &FailureKind) -> Self {
        let cause =
            if let FailureKind::Io { error, .. } = kind { error.cause } else { Cause::Errno(Errno::IO) };
        Self::Open { path: path.to_owned(), cause }
    }
}

/// Receiver of entries that a [`Selection`] leaves out.
pub type Explain<'a> = &'a dyn Fn(&Path, bool, &str);

/// Surroundings of a run.
pub struct Surroundings<'a> {
    /// Options of the runtime.
    pub io: &'a ferry_io::Options,
    /// Counters for a progress bar; entries are those that were examined or copied.
    pub progress: Arc<Progress>,
    /// Receiver of failures.
    pub observer: Arc<dyn Observer>,
    /// Called for each action that was performed, shown or recorded.
    pub tell: &'a dyn Fn(&Action),
    /// Called for each entry that a [`Selection`] leaves out: its path below the roots, true for a folder, and the
    /// pattern or option.
    pub explain: Option<Explain<'a>>,
    /// Receiver of the hashes of all regular files that take part.
    pub manifest: Option<Arc<Manifest>>,
    /// Holds the run back while others wait for I/O.
    pub gate: Option<Arc<Gate>>,
}

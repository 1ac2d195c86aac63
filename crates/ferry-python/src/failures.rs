//! Failures of single paths, as Python turns them into exceptions; and entries that the caller leaves out.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ferry_copy::{Copied, Explained, Failure, FailureKind, Observer, Question, Unfinished, Verb};
use ferry_io::{Errno, Name};

/// Names of entries that are not copied, by the path of their folder below the source.
pub(crate) type LeftOut = HashMap<PathBuf, HashSet<OsString>>;

/// A failure: source, target, subject, error number and message.
///
/// The subject says which path the error number is about, `source`, `target` or `link` (the making of a link); or the
/// failure is none of the kernel's: `same` file, `special` file or `other`.
pub(crate) type Failed = (Vec<u8>, Vec<u8>, &'static str, i32, String);

/// Collects the failures of a run.
#[derive(Default)]
pub(crate) struct Collector {
    failures: Mutex<Vec<Failed>>,
    root: PathBuf,
    left_out: LeftOut,
}

impl Collector {
    /// Leaves entries below `root` out.
    pub(crate) fn without(root: PathBuf, left_out: LeftOut) -> Self {
        Self { failures: Mutex::default(), root, left_out }
    }

    pub(crate) fn take(&self) -> Vec<Failed> {
        std::mem::take(&mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, failed: Failed) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
    }
}

impl Observer for Collector {
    fn leaves_out(&self, folder: &Path, name: &Name) -> bool {
        let below = folder.strip_prefix(&self.root).unwrap_or(folder);
        self.left_out.get(below).is_some_and(|names| names.contains(name.as_os_str()))
    }

    fn failed(&self, failure: &Failure) {
        let (subject, errno) = subject(&failure.kind);
        let [source, target] = [&failure.source, &failure.target].map(|path| bytes(path));
        self.add((source, target, subject, errno.raw_os_error(), ferry::job::message(failure)));
    }

    fn copied(&self, _copied: &Copied<'_>) {}

    fn removed(&self, _target: &Path) {}

    fn taken_back(&self, _backup: &Path, _target: &Path) {}

    fn agrees(&self, _target: &Path, _question: Question, _is_over: &dyn Fn() -> bool) -> bool {
        false
    }

    fn explained(&self, _explained: &Explained<'_>) {}

    fn unfinished(&self, _unfinished: &Unfinished) {}
}

/// Returns a path's bytes.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Returns the subject of a failure, and an error number: the kernel's, or else the one that it would give.
fn subject(kind: &FailureKind) -> (&'static str, Errno) {
    match kind {
        FailureKind::Io { verb, error } => (of_verb(*verb), error.as_errno().unwrap_or(Errno::CANCELED)),
        FailureKind::LinkToCopy { error, .. } | FailureKind::KeptAside { error, .. } => {
            ("target", error.as_errno().unwrap_or(Errno::CANCELED))
        }
        FailureKind::OmittingDirectory => ("source", Errno::ISDIR),
        FailureKind::SameFile => ("same", Errno::INVAL),
        FailureKind::SpecialSource | FailureKind::SpecialTarget => ("special", Errno::INVAL),
        FailureKind::DirectoryOverFile | FailureKind::WayIsFile => ("target", Errno::EXIST),
        FailureKind::FileOverDirectory => ("target", Errno::ISDIR),
        FailureKind::CyclicLink => ("source", Errno::LOOP),
        FailureKind::DanglingTarget => ("target", Errno::NOENT),
        FailureKind::IntoItself
        | FailureKind::JustCreated
        | FailureKind::ThroughJustCreated
        | FailureKind::Replaced
        | FailureKind::Changed
        | FailureKind::Unlisted
        | FailureKind::BackupDestroysSource
        | FailureKind::NotReplaced
        | FailureKind::CopiedBefore { .. }
        | FailureKind::Unverified
        | FailureKind::ReadOnce
        | FailureKind::RelativeSymlink => ("other", Errno::INVAL),
    }
}

fn of_verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Stat
        | Verb::StatWay
        | Verb::Open
        | Verb::OpenDirectory
        | Verb::Read
        | Verb::ReadDirectory
        | Verb::ReadLink
        | Verb::ListXattr => "source",
        Verb::CreateSymlink => "link",
        Verb::StatTarget
        | Verb::CreateFile
        | Verb::CreateDirectory
        | Verb::CreateWay
        | Verb::CreateLink
        | Verb::CreateFifo
        | Verb::CreateSpecial
        | Verb::Write
        | Verb::Close
        | Verb::Clone
        | Verb::SetOwner
        | Verb::SetMode
        | Verb::SetAcl
        | Verb::SetTimes
        | Verb::SetXattr
        | Verb::Remove
        | Verb::BackUp
        | Verb::TakeBack
        | Verb::Restore
        | Verb::Sync
        | Verb::ReadTarget
        | Verb::Hash
        | Verb::ReadTargetDirectory => "target",
    }
}

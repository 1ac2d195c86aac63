//! Actions on their way from the walk to whatever performs, records or shows them.

use std::path::{Path, PathBuf};

use ferry_copy::{Digest, RunMark, Takes};
use ferry_io::{FileKind, Stat};

use crate::decide::Reason;
use crate::plan::{Action, Verb, Version};

/// Hash of a file of the target, or the error with which it may not be read.
pub(crate) type Hashed = Result<Digest, ferry_io::Error>;

/// An action, and the attributes that it was decided from, as far as they are known.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) action: Action,
    pub(crate) source: Option<Stat>,
    pub(crate) target: Option<Stat>,
    /// Hash of the target, if it is a regular file that stays and there is a manifest.
    pub(crate) digest: Option<Hashed>,
}

impl Planned {
    /// Returns true if the entry is copied.
    pub(crate) fn copies(&self) -> bool {
        matches!(self.action.verb, Verb::Create | Verb::Replace | Verb::Exchange)
    }
}

/// Actions on entries of one folder, which may be done at once.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Path of the folder below both roots.
    pub(crate) folder: PathBuf,
    pub(crate) actions: Vec<Planned>,
}

/// Receiver of actions, in the order in which they are to be performed.
pub(crate) trait Sink {
    /// Takes some actions. Failures of single entries are its own matter.
    async fn take(&mut self, batch: Batch) -> std::io::Result<()>;

    /// Returns true if it counts the entries that it copies; otherwise the walk counts them when it has decided about them. Called
    /// once, before everything else.
    fn begins_to_count(&mut self) -> bool {
        false
    }

    /// Notes that the walk has reported failures, other than to read the target for its hashes. Called before
    /// [`Self::end_changes`].
    fn note_failures(&mut self) {}

    /// Notes marks of other runs that mean nothing once this run has succeeded.
    fn note_run_marks(&mut self, _marks: Vec<RunMark>) {}

    /// Notes that deletions follow, and nothing else but changes of the root.
    async fn end_changes(&mut self, _takes: Takes) {}
}

/// Returns an action on one path.
pub(crate) fn planned(
    verb: Verb,
    path: &Path,
    source: Option<Stat>,
    target: Option<Stat>,
    reason: Option<Reason>,
) -> Planned {
    let kind = source.or(target).map_or(FileKind::Regular, |stat| stat.kind);
    let size = source.filter(|stat| stat.kind == FileKind::Regular).map(|stat| stat.size);
    let action = Action {
        verb,
        path: path.into(),
        kind: kind.into(),
        reason,
        size,
        source: source.as_ref().map(Version::of_source),
        target: target.as_ref().map(Version::of_target),
        links: source.map_or(0, |stat| stat.links),
    };
    Planned { action, source, target, digest: None }
}

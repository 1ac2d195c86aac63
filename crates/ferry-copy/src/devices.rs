//! Devices of both sides that fail or are gone while a run uses them.
//!
//! An unplugged device fails each request, so each entry in flight and each later one would be reported. A bad sector costs
//! one file, and the run goes on. The first error is the same, so the device is asked when it comes: SOURCE by reads past the
//! page cache, TARGET by a small file that is synced (`health.rs` of ferry-io). If it answers, the failure belongs to its path.
//! Otherwise the run is stopped, and later failures for this reason are not reported.
//!
//! Limits: what is mounted within a tree is not asked about. A device that is slow to fail holds up one worker for each error.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use ferry_io::{Cause, Dir, Errno, Error, Health, Io};

use crate::mutex::lock;
use crate::report::{FailureKind, Side, Verb};
use crate::staging::names::next_hidden_name;

/// The devices of both sides of a run.
pub struct Devices {
    io: Io,
    /// The folders that both trees begin at; `None` if no device is asked.
    roots: Mutex<Option<Roots>>,
    /// The side whose device fails or is gone.
    lost: OnceLock<Side>,
    /// Set once a failure for this reason was reported.
    is_reported: AtomicBool,
}

struct Roots {
    source: Dir,
    target: Option<Dir>,
    /// Set if the target could be written to when the run began.
    is_writable: bool,
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Devices").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Devices {
    /// Returns the devices of a run. None is asked before [`Self::watch`].
    #[must_use]
    pub fn new(io: Io) -> Self {
        let (lost, is_reported) = (OnceLock::new(), AtomicBool::new(false));
        Self { io, roots: Mutex::default(), lost, is_reported }
    }

    /// Names the folders whose devices are asked after an error.
    pub fn watch(&self, source: &Dir, target: Option<&Dir>) {
        let is_writable = target.is_some_and(|target| !target.is_read_only());
        let (source, target) = (source.clone(), target.cloned());
        *lock(&self.roots) = Some(Roots { source, target, is_writable });
    }

    /// Returns the side whose device has stopped the run.
    #[must_use]
    pub fn lost(&self) -> Option<Side> {
        self.lost.get().copied()
    }

    /// Returns true if a failure is to be reported. If its reason is a device that fails or is gone, stops the run; then the
    /// first failure is reported, and no other.
    #[must_use]
    pub fn lets_report(&self, kind: &FailureKind) -> bool {
        let Some(error) = kind.error() else { return true };
        !self.explains(error, sides_of(kind)) || !self.is_reported.swap(true, Ordering::SeqCst)
    }

    /// Returns true if a device that fails or is gone is the reason for an error on one of these sides, and stops the run.
    pub(crate) fn explains(&self, error: &Error, sides: &[Side]) -> bool {
        let Cause::Errno(errno) = error.cause else { return false };
        let is_read_only = errno == Errno::ROFS && sides.contains(&Side::Target);
        if !is_read_only && !Health::is_in_doubt(errno) {
            return false;
        }
        // Others wait: theirs may have the same reason.
        let roots = lock(&self.roots);
        if self.lost().is_some() {
            return true;
        }
        let Some(roots) = &*roots else { return false };
        let Some(&side) = sides.iter().find(|side| roots.fails(**side)) else { return false };
        self.lost.get_or_init(|| side);
        self.io.stop();
        true
    }
}

impl Roots {
    /// Asks a device. Returns true if it fails or is gone.
    fn fails(&self, side: Side) -> bool {
        let health = match (side, &self.target) {
            (Side::Source, _) => self.source.read_health(),
            (Side::Target, Some(target)) => target.write_health(next_hidden_name, self.is_writable),
            (Side::Target, None) => Health::Unknown,
        };
        matches!(health, Health::Fails(_))
    }
}

/// Returns the sides on which a step may have failed.
fn sides_of(kind: &FailureKind) -> &'static [Side] {
    let FailureKind::Io { verb, .. } = kind else { return &[Side::Target] };
    match verb {
        Verb::Stat
        | Verb::StatWay
        | Verb::Open
        | Verb::Read
        | Verb::ReadDirectory
        | Verb::ReadLink
        | Verb::ListXattr => &[Side::Source],
        // The kernel reads and writes in one call (Write, Clone); folders of both sides are opened again (OpenDirectory).
        Verb::OpenDirectory | Verb::Write | Verb::Clone => &[Side::Source, Side::Target],
        Verb::StatTarget
        | Verb::CreateFile
        | Verb::CreateDirectory
        | Verb::CreateWay
        | Verb::CreateSymlink
        | Verb::CreateLink
        | Verb::CreateFifo
        | Verb::CreateSpecial
        | Verb::Close
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
        | Verb::ReadTargetDirectory => &[Side::Target],
    }
}

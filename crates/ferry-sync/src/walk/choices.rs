//! What a walk compares and does, and which entries take part.

use std::path::PathBuf;
use std::sync::Arc;

use ferry_copy::{Algorithm, Devices, Gate};
use ferry_io::{Io, Semaphore, Time};

use super::once::Once;
use crate::decide::{Comparison, Rules};
use crate::grain::Grain;
use crate::list::List;
use crate::select::Selector;

/// Choices of a walk.
pub(crate) struct Choices {
    pub(crate) rules: Rules,
    /// Set if entries that the source lacks are deleted.
    pub(crate) deletes: bool,
    /// Set if a later run sets the attributes of directories that exist, and knows what the source lacks.
    pub(crate) is_part: bool,
    /// Set if each entry of a new folder is an action of its own; otherwise the folder is one.
    pub(crate) expands: bool,
    /// Identity of the trash, if it is in one of the trees.
    pub(crate) trash: Option<(u64, u64)>,
    /// Paths of both roots, for failures.
    pub(crate) source_path: PathBuf,
    pub(crate) target_path: PathBuf,
    pub(crate) selector: Selector,
    /// Permits to read the content of files: as many may be compared or hashed at once.
    pub(crate) content_permits: Semaphore,
    /// Hash function of the manifest: files that stay are hashed.
    pub(crate) digest: Option<Algorithm>,
    /// Files that stay and have several names: each is hashed once.
    pub(crate) once: Once,
    /// Names that alone take part.
    pub(crate) list: Option<Arc<List>>,
    /// Holds the walk back while others wait for I/O.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Asked after errors of a device: one that fails or is gone ends the run.
    pub(crate) devices: Arc<Devices>,
}

impl Choices {
    /// Waits while the run is held back for others' I/O.
    ///
    /// # Errors
    /// If the run is cancelled first.
    pub(super) fn pass(&self) -> impl Future<Output = ferry_io::Result<()>> {
        Gate::pass(self.gate.as_deref())
    }

    /// Returns the choices for a tree that is new as a whole: each of its entries is an action.
    pub(crate) fn of_everything(io: &Io, source_path: PathBuf, target_path: PathBuf) -> Self {
        let rules = Rules {
            comparison: Comparison::Size,
            keeps_newer: false,
            owners: false,
            grain: Grain::FINEST,
            xattrs: false,
            unfinished: NEVER,
            doubted_since: None,
        };
        let selector = Selector::of_everything();
        let (trash, list, digest, content_permits) = (None, None, None, content_permits(io));
        let (deletes, is_part, expands) = (false, false, true);
        Self {
            rules,
            deletes,
            is_part,
            expands,
            trash,
            source_path,
            target_path,
            selector,
            content_permits,
            digest,
            once: Once::default(),
            list,
            gate: None,
            devices: Arc::new(Devices::new(io.clone())),
        }
    }
}

/// A time that no file has.
pub(super) const NEVER: Time = Time { seconds: i64::MIN, nanoseconds: 0 };

/// Returns permits to read the content of files, each of which takes two descriptors.
pub(crate) fn content_permits(io: &Io) -> Semaphore {
    Semaphore::new((io.descriptors() / 16).clamp(1, 64))
}

//! Entries whose targets cp's rules decide about, for a job of several processes that copies by the options of `cp`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Io, Name};

use super::{Copier, Pair};
use crate::devices::Devices;
use crate::entry::{self, Listed, Outcome};
use crate::options::{Dereference, Existing, Options};
use crate::place::Entry;
use crate::report::{FailureKind, Observer, Progress};

impl Copier {
    /// Returns a copier with other options. With [`Existing::Refuse`] its caller decides about existing targets, as with
    /// [`Self::new`]; otherwise it uses [`Self::copy_by_rules`].
    #[must_use]
    pub fn with_options(
        io: Io,
        options: Options,
        progress: Arc<Progress>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let by_rules = options.existing != Existing::Refuse;
        let shared = (options, None, Arc::new(Devices::new(io.clone())));
        Self { by_rules, ..Self::build(io, shared, progress, observer) }
    }

    /// Copies an entry that is no folder by cp's rules for its target, as the walk does.
    ///
    /// # Errors
    /// As with cp; [`FailureKind::Changed`] for a folder.
    pub async fn copy_by_rules(&self, pair: &Pair, name: &Name) -> Result<(), FailureKind> {
        pair.touch();
        let entry = Entry { folder: &pair.0, source: name, target: name };
        match entry::copy(&self.run, entry, Listed { kind: None, is_operand: false }).await? {
            Outcome::Done => Ok(()),
            Outcome::Folder { .. } => Err(FailureKind::Changed),
        }
    }

    pub(super) fn follows(&self) -> bool {
        self.run.options.dereference == Dereference::Always
    }
}

impl Pair {
    /// Notes that the target was made by another process of the same job: a mode that is not the source's is set at the end
    /// as for one that the copier has made.
    pub fn note_made(&self) {
        self.0.is_made.store(true, Ordering::Relaxed);
    }
}

//! Hashes of targets, for manifests.
//!
//! A small file's block is hashed before it is written. Of any other file the target is read, by [`Trail`], piece by piece:
//! right after a piece was moved, or while the next one is awaited from a device. So the hash is that of the target's
//! bytes, however they got there: by the kernel, by sharing extents, by an earlier run, or as zeros of a hole
//! (docs/decisions/0019).

use std::cell::{Cell, RefCell};

use ferry_io::{Content, File, FileKind};

use crate::digest::{Algorithm, Digest, Hasher, hash_range};
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Bytes of a cached source that are moved before they are hashed: few enough to be in the processor's cache still.
pub(crate) const WARM_PIECE: u64 = 1 << 20;
/// Bytes of another source: enough to wait for the device meanwhile.
pub(crate) const COLD_PIECE: u64 = 16 << 20;

/// The hash of a target that is being filled.
pub(crate) struct Trail {
    algorithm: Algorithm,
    /// One hasher.
    hasher: RefCell<Vec<Hasher>>,
    /// Offset up to which the target is hashed.
    at: Cell<u64>,
}

impl Trail {
    /// Returns the trail of a target that is filled from an open source; `None` if its hash is not asked for.
    pub(crate) fn of(run: &Run, content: &Content, target: FileKind) -> Option<Self> {
        let algorithm = run.options.digest.filter(|_| target == FileKind::Regular)?;
        let hasher = RefCell::new(vec![Hasher::new(algorithm)]);
        matches!(content, Content::Open(_)).then(|| Self { algorithm, hasher, at: Cell::new(0) })
    }

    /// Forgets what was hashed: the target is filled anew.
    pub(crate) fn restart(&self) {
        self.hasher.replace(vec![Hasher::new(self.algorithm)]);
        self.at.set(0);
    }

    /// Returns the offset up to which the target is hashed.
    pub(crate) fn at(&self) -> u64 {
        self.at.get()
    }

    /// Hashes the target up to an offset, or as far as it reaches.
    pub(crate) async fn follow(&self, run: &Run, target: &File, end: u64) -> Result<(), FailureKind> {
        let range = self.at.get()..end;
        let reached = hash_range(&run.io, target, range, &self.hasher).await.during(Verb::ReadTarget)?;
        self.at.set(reached);
        Ok(())
    }

    /// Hashes the rest of a target that is complete, and returns the hash.
    pub(crate) async fn finish(&self, run: &Run, target: &File) -> Result<Digest, FailureKind> {
        let size = target.stat().await.during(Verb::ReadTarget)?.size;
        if size < self.at.get() {
            // The source has become shorter after it was copied, and the target was cut.
            self.restart();
        }
        self.follow(run, target, size).await?;
        let hasher = self.hasher.borrow_mut().pop();
        Ok(hasher.unwrap_or_else(|| Hasher::new(self.algorithm)).finish())
    }
}

/// Returns the hash of a file that was read whole, if it is asked for.
pub(crate) fn of_content(run: &Run, content: &Content, target: FileKind) -> Option<Digest> {
    let algorithm = run.options.digest.filter(|_| target == FileKind::Regular)?;
    match content {
        Content::Whole(block) | Content::Begun(_, block) => Some(Digest::of(algorithm, block.as_slice())),
        Content::Open(_) | Content::Stored(..) => None,
    }
}

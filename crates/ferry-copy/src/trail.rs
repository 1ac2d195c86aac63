//! Hashes of targets, for manifests.
//!
//! A small file's block is hashed before it is written. Of any other file the target is read, by [`Trail`], piece by piece:
//! right after a piece was moved, or while the next one is awaited from a device. So the hash is that of the target's
//! bytes, however they got there: by the kernel, by sharing extents, or by an earlier run (docs/decisions/0019).
//!
//! Of a file with holes (`sparse.rs`), ranges that fit into a block are hashed when they are written, and holes as zeros,
//! without reading either. So these are not read back from the device, even if the file is larger than the memory. Larger
//! ranges are read like any other file.
//!
//! A target that may not be read while it is filled, or that this run has left alone, is opened again by its name
//! ([`of_target`]). A hash that is remembered ([`crate::digest::Known`]) is written only beside the attributes that it belongs to.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use ferry_io::{Cause, Content, Errno, Error, File, FileKind, OpenHow, Operation, Stat, give_way};

use crate::digest::{Algorithm, Digest, Hasher, hash_file, hash_range, hash_zeros};
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::through;

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
    /// Start and end of the last hole. It is hashed before a further one is noted.
    hole: Cell<(u64, u64)>,
}

impl Trail {
    /// Returns the trail of a target that is filled from an open source; `None` if its hash is not asked for.
    pub(crate) fn of(run: &Run, content: &Content, target: FileKind) -> Option<Self> {
        let algorithm = run.options.digest.filter(|_| target == FileKind::Regular)?;
        let hasher = RefCell::new(vec![Hasher::new(algorithm)]);
        let (at, hole) = (Cell::new(0), Cell::new((0, 0)));
        matches!(content, Content::Open(_)).then(|| Self { algorithm, hasher, at, hole })
    }

    /// Forgets what was hashed: the target is filled anew.
    pub(crate) fn restart(&self) {
        self.hasher.replace(vec![Hasher::new(self.algorithm)]);
        self.at.set(0);
        self.hole.set((0, 0));
    }

    /// Returns the offset up to which the target is hashed.
    pub(crate) fn at(&self) -> u64 {
        self.at.get()
    }

    /// Notes that the target has a hole: its zeros are not read.
    pub(crate) fn note_hole(&self, hole: Range<u64>) {
        if !hole.is_empty() {
            self.hole.set((hole.start, hole.end));
        }
    }

    /// Returns true if hashing the target up to an offset reads it, for which a block is needed.
    pub(crate) fn has_to_read(&self, end: u64) -> bool {
        let (at, (begin, stop)) = (self.at.get(), self.hole.get());
        let next = if (begin..stop).contains(&at) { stop } else { at };
        next < end
    }

    /// Hashes bytes that were just written to the target at an offset. If the target is not hashed up to there, they are
    /// read later.
    pub(crate) async fn pass(&self, at: u64, bytes: &[u8]) {
        if self.at.get() != at {
            return;
        }
        self.hasher.borrow_mut().iter_mut().for_each(|hasher| hasher.add(bytes));
        let end = at + bytes.len() as u64;
        self.at.set(end);
        if at / WARM_PIECE != end / WARM_PIECE {
            // Cached blocks are moved without waiting, and other fibers need their turn.
            give_way().await;
        }
    }

    /// Hashes the target up to an offset, or as far as it reaches.
    pub(crate) async fn follow(&self, run: &Run, target: &File, end: u64) -> Result<(), FailureKind> {
        let (begin, stop) = self.hole.get();
        self.read(run, target, end.min(begin)).await?;
        let at = self.at.get();
        let zeros = end.min(stop).saturating_sub(at);
        if at >= begin && zeros > 0 {
            hash_zeros(zeros, &self.hasher).await.during(Verb::ReadTarget)?;
            self.at.set(at + zeros);
        }
        self.read(run, target, end).await
    }

    async fn read(&self, run: &Run, target: &File, end: u64) -> Result<(), FailureKind> {
        let range = self.at.get()..end;
        let reached =
            hash_range(run.io_and_gate(), target, range, &self.hasher).await.during(Verb::ReadTarget)?;
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

/// Treatment of a symbolic link in the place of a target that is opened to be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtLink {
    /// The target was written through a link, which is followed.
    Follow,
    /// The target is no link.
    Refuse,
}

/// Returns the hash of a complete target, which is opened by its name.
///
/// # Errors
/// [`Verb::Hash`]: with ESTALE if it is another file than was seen, or has changed since; those of opening and reading it.
pub(crate) async fn of_target(
    run: &Run,
    entry: Entry<'_>,
    seen: &Stat,
    algorithm: Algorithm,
    at_link: AtLink,
) -> Result<Digest, FailureKind> {
    let hashed = async {
        let dir = run.dirs(entry.folder).await?.target;
        let file = match dir.open(entry.target, OpenHow::read()).await {
            Err(error) if error.is(Errno::LOOP) && at_link == AtLink::Follow => {
                through::open(run, &dir, entry.target, OpenHow::read()).await?.0
            }
            opened => opened?,
        };
        let stale = Error { operation: Operation::Read, cause: Cause::Errno(Errno::STALE) };
        hash_file(run.io_and_gate(), &file, seen, algorithm).await?.ok_or(stale)
    };
    hashed.await.during(Verb::Hash)
}

/// Reports a failure of an entry. One to read its target for a hash is counted apart, because it tells nothing of the source.
pub(crate) fn fail(run: &Run, entry: Entry<'_>, kind: FailureKind) {
    let is_of_hash = matches!(kind, FailureKind::Io { verb: Verb::Hash, .. });
    if is_of_hash && !kind.is_cancelled() {
        run.tally.unhashed.add(1);
    }
    run.fail(entry, kind);
}

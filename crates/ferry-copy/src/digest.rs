//! Hash functions, for manifests.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

use ferry_io::{Error, File, Io, Operation, Result, Semaphore, Stat, Time, give_way, is_cancelled};
use sha2::{Digest as _, Sha256};

use crate::identity::{Identity, identity};
use crate::load::Gate;
use crate::mutex::lock;

#[cfg(test)]
mod tests;

/// Blocks that are hashed before other fibers of the worker get their turn.
const TURN: u32 = 4;
/// Bytes of zeros that are hashed at once, and before other fibers get their turn.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
const ZEROS_TURN: u32 = 16;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// BLAKE3, as of b3sum.
    #[default]
    Blake3,
    /// SHA-256, as of sha256sum.
    Sha256,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 2] = [Self::Blake3, Self::Sha256];

    /// The name used in options and manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
        }
    }
}

/// A hash of either algorithm. `Display` writes it as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the hash of some bytes.
    #[must_use]
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        match algorithm {
            Algorithm::Blake3 => Self(*blake3::hash(bytes).as_bytes()),
            Algorithm::Sha256 => Self(Sha256::digest(bytes).into()),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A hash that is being computed.
pub struct Hasher(State);

enum State {
    // Boxed: it has 2 KiB.
    Blake3(Box<blake3::Hasher>),
    Sha256(Sha256),
}

impl Hasher {
    /// Returns the hasher of no bytes.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Blake3 => State::Blake3(Box::default()),
            Algorithm::Sha256 => State::Sha256(Sha256::new()),
        })
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Blake3(hasher) => {
                hasher.update(bytes);
            }
            State::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the hash of the bytes that were added.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Blake3(hasher) => Digest(*hasher.finalize().as_bytes()),
            State::Sha256(hasher) => Digest(hasher.finalize().into()),
        }
    }
}

/// Adds a range of a file to hashers, as far as the file reaches. Returns the offset reached. A gate is passed before each
/// block.
///
/// # Errors
/// Those of reading.
pub async fn hash_range(
    (io, gate): (&Io, Option<&Gate>),
    file: &File,
    range: Range<u64>,
    hashers: &RefCell<Vec<Hasher>>,
) -> Result<u64> {
    if range.is_empty() {
        return Ok(range.start);
    }
    let mut block = io.block().await?;
    let (mut at, mut blocks) = (range.start, 0_u32);
    while at < range.end {
        let in_flight = Gate::begin(gate).await?;
        let wanted = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(io.block_size());
        let (back, count) = file.read_some_at(block, wanted, at).await;
        drop(in_flight);
        let count = count?;
        if count == 0 {
            break;
        }
        hashers.borrow_mut().iter_mut().for_each(|hasher| hasher.add(&back.as_slice()[..count]));
        block = back;
        at += count as u64;
        blocks += 1;
        if blocks.is_multiple_of(TURN) {
            give_way().await;
        }
    }
    Ok(at)
}

/// Hash of a target, and the attributes of the file that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    digest: Digest,
    file: Identity,
    size: u64,
    /// Modification time when the file was hashed, and the one that this run may set afterwards.
    modified: [Time; 2],
}

impl Known {
    /// Takes the attributes that the file had when it was hashed.
    pub(crate) fn of(digest: Digest, stat: &Stat) -> Self {
        Self { digest, file: identity(stat), size: stat.size, modified: [stat.times.modified; 2] }
    }

    /// Notes that this run may give the file the modification time of its source.
    pub(crate) fn or_time_of(mut self, source: &Stat) -> Self {
        self.modified[1] = source.times.modified;
        self
    }

    /// Returns the hash; `None` if the attributes are those of another file, or of a file that was written to since.
    pub(crate) fn digest_of(&self, now: &Stat) -> Option<Digest> {
        let is_same = identity(now) == self.file && now.size == self.size;
        (is_same && self.modified.contains(&now.times.modified)).then_some(self.digest)
    }
}

/// Hash of the copy of a file with several names, for all of them. It is the only place that keeps it.
pub(crate) struct CopyHash {
    /// Set if the copy's first name is in the manifest: then its other names are, too.
    pub(crate) is_listed: bool,
    known: Mutex<Option<Known>>,
    /// Held while the copy is read, so that the other names wait for the hash.
    pub(crate) turn: Semaphore,
}

impl CopyHash {
    /// Takes the hash that the first name was listed with.
    pub(crate) fn new(known: Option<Known>) -> Self {
        Self { is_listed: known.is_some(), known: Mutex::new(known), turn: Semaphore::new(1) }
    }

    /// Returns the hash, if it is known for the attributes that the copy has now.
    pub(crate) fn of(&self, now: &Stat) -> Option<Digest> {
        lock(&self.known).and_then(|known| known.digest_of(now))
    }

    /// Notes the hash of a copy that was read, beside its attributes.
    pub(crate) fn set(&self, digest: Digest, now: &Stat) {
        *lock(&self.known) = Some(Known::of(digest, now));
    }
}

/// Adds this many zeros to hashers.
///
/// # Errors
/// If the run is cancelled first.
pub(crate) async fn hash_zeros(count: u64, hashers: &RefCell<Vec<Hasher>>) -> Result<()> {
    let (mut left, mut blocks) = (count, 0_u32);
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
        hashers.borrow_mut().iter_mut().for_each(|hasher| hasher.add(&ZEROS[..size]));
        left -= size as u64;
        blocks += 1;
        if blocks == ZEROS_TURN {
            blocks = 0;
            give_way().await;
            // No operation reports it.
            if is_cancelled() {
                return Err(Error::cancelled(Operation::Read));
            }
        }
    }
    Ok(())
}

/// Returns the hash of an open file that was examined before; `None` if it is another file, or has changed since. No more
/// than the size that was seen is read, and nothing of another file.
///
/// # Errors
/// Those of reading.
pub async fn hash_file(
    (io, gate): (&Io, Option<&Gate>),
    file: &File,
    seen: &Stat,
    algorithm: Algorithm,
) -> Result<Option<Digest>> {
    let is_seen = |now: Stat| {
        now.is_same_file(seen)
            && now.kind == seen.kind
            && (now.size, now.times.modified) == (seen.size, seen.times.modified)
    };
    // A device that has taken the name could be read without end.
    if !is_seen(file.stat().await?) {
        return Ok(None);
    }
    let hasher = RefCell::new(vec![Hasher::new(algorithm)]);
    hash_range((io, gate), file, 0..seen.size, &hasher).await?;
    // Asked again: what was written meanwhile has changed the time.
    let is_seen = is_seen(file.stat().await?);
    Ok(hasher.into_inner().pop().map(Hasher::finish).filter(|_| is_seen))
}

//! Records of a manifest while they are sorted.

use std::cmp::Ordering;

use ferry_copy::{Algorithm, Digest};
use ferry_io::{Stat, Time};

use crate::sorted::Record;

/// Attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Modification time.
    pub modified: Time,
}

impl Facts {
    /// Returns the attributes that manifests have.
    #[must_use]
    pub fn of(stat: &Stat) -> Self {
        Self { size: stat.size, mode: stat.mode & 0o7777, modified: stat.times.modified }
    }
}

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) digest: Digest,
    /// `None` if the manifest does not tell.
    pub(super) algorithm: Option<Algorithm>,
    /// `None` if the manifest has none.
    pub(super) facts: Option<Facts>,
}

/// A note on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) path: Box<[u8]>,
    /// Later notes have greater numbers, and come first among those of one path.
    pub(super) number: u64,
    /// `None` if it has failed.
    pub(super) content: Option<Content>,
}

/// Bytes of a note before the path: size of the path, number, codes, hash, size, mode, time.
const HEAD: usize = 8 + 8 + 3 + 32 + 8 + 4 + 8 + 4;

impl Record for Note {
    fn order(&self, other: &Self) -> Ordering {
        self.path.cmp(&other.path).then_with(|| other.number.cmp(&self.number))
    }

    fn text_bytes(&self) -> usize {
        self.path.len()
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let digest = self.content.map_or([0; 32], |content| content.digest.0);
        let algorithm = match self.content.and_then(|content| content.algorithm) {
            None => 0,
            Some(Algorithm::Blake3) => 1,
            Some(Algorithm::Sha256) => 2,
        };
        let known = self.content.and_then(|content| content.facts);
        let none = Facts { size: 0, mode: 0, modified: Time { seconds: 0, nanoseconds: 0 } };
        let Facts { size, mode, modified } = known.unwrap_or(none);
        bytes.extend((self.path.len() as u64).to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend([u8::from(self.content.is_some()), algorithm, u8::from(known.is_some())]);
        bytes.extend(digest);
        bytes.extend(size.to_le_bytes());
        bytes.extend(mode.to_le_bytes());
        bytes.extend(modified.seconds.to_le_bytes());
        bytes.extend(modified.nanoseconds.to_le_bytes());
        bytes.extend(&self.path);
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut rest = bytes;
        let count = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
        let number = u64::from_le_bytes(take(&mut rest)?);
        let [is_file, algorithm, has_facts] = take(&mut rest)?;
        let digest = Digest(take(&mut rest)?);
        let size = u64::from_le_bytes(take(&mut rest)?);
        let mode = u32::from_le_bytes(take(&mut rest)?);
        let seconds = i64::from_le_bytes(take(&mut rest)?);
        let nanoseconds = u32::from_le_bytes(take(&mut rest)?);
        let facts = Facts { size, mode, modified: Time { seconds, nanoseconds } };
        let algorithm = match algorithm {
            1 => Some(Algorithm::Blake3),
            2 => Some(Algorithm::Sha256),
            _ => None,
        };
        let content = Content { digest, algorithm, facts: (has_facts == 1).then_some(facts) };
        let path = rest.get(..count)?.into();
        Some((Self { path, number, content: (is_file == 1).then_some(content) }, HEAD + count))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

/// A regular file of a tree, by its path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found(pub(super) Box<[u8]>);

impl Record for Found {
    fn order(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    fn text_bytes(&self) -> usize {
        self.0.len()
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.0.len() as u64).to_le_bytes());
        bytes.extend(&self.0);
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut rest = bytes;
        let count = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
        Some((Self(rest.get(..count)?.into()), 8 + count))
    }
}

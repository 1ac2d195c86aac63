//! Expected content of a file, generated or read from another file, and its comparison byte by byte.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ferry_tree::fill::fill;
use rustix::fs::SeekFrom;

use crate::error::Failure;
use crate::stop::Stop;

/// Random bytes that are repeated; each page has its own number.
const PATTERN: usize = 256 << 10;
const PAGE: usize = 4096;

/// Expected content of a file.
pub(super) enum Content {
    /// Zeros without holes.
    Zeros(u64),
    /// The content of the lab's own server.
    Stamped(u64, u64),
    /// The content of another file.
    File(PathBuf),
}

/// Content that is cheap to generate and differs in every page.
pub(super) struct Stamped {
    pattern: Vec<u8>,
    at: u64,
    size: u64,
}

impl Stamped {
    /// The content from its beginning.
    pub(super) fn new(seed: u64, size: u64) -> Self {
        let mut pattern = vec![0; PATTERN];
        fill(seed, 0, &mut pattern);
        Self { pattern, at: 0, size }
    }

    /// Returns the total size.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Fills `memory`, a multiple of the page size, with the next bytes; fewer at the end.
    pub(super) fn next(&mut self, memory: &mut [u8]) -> usize {
        let left = usize::try_from(self.size - self.at).unwrap_or(usize::MAX);
        let count = left.min(memory.len());
        for page in memory[..count].chunks_mut(PAGE) {
            let start = usize::try_from(self.at).unwrap_or(0) % PATTERN;
            page.copy_from_slice(&self.pattern[start..start + page.len()]);
            let number = (self.at / 4096).to_le_bytes();
            let stamped = page.len().min(number.len());
            page[..stamped].copy_from_slice(&number[..stamped]);
            self.at += u64::try_from(page.len()).unwrap_or(0);
        }
        count
    }
}

impl Content {
    /// Compares the file at `path` with the content.
    ///
    /// # Errors
    /// [`Failure::Differs`]; an unreadable file; [`Failure::Interrupted`].
    pub(super) fn check(&self, path: &Path, stop: &Stop) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::file("read", path, &error);
        let mut file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut expected = Expected::of(self)?;
        if size != expected.size() {
            let expected = expected.size();
            return Err(Failure::Differs(format!("{size} bytes were written instead of {expected}")));
        }
        if matches!(self, Self::Zeros(_)) {
            // A hole also reads as zeros.
            let hole = rustix::fs::seek(&file, SeekFrom::Hole(0)).unwrap_or(size);
            if hole != size {
                return Err(Failure::Differs(format!("nothing was written at byte {hole}")));
            }
            rustix::fs::seek(&file, SeekFrom::Start(0)).map_err(|errno| failed(errno.into()))?;
        }
        let (mut found, mut wanted) = (vec![0; PATTERN], vec![0; PATTERN]);
        let mut at = 0;
        while at < size {
            stop.check()?;
            let count = expected.next(&mut wanted)?;
            file.read_exact(&mut found[..count]).map_err(failed)?;
            if found[..count] != wanted[..count] {
                let differs = found.iter().zip(&wanted).position(|(one, other)| one != other);
                let at = at + u64::try_from(differs.unwrap_or(0)).unwrap_or(0);
                return Err(Failure::Differs(format!("the written data differs at byte {at}")));
            }
            at += u64::try_from(count).unwrap_or(size);
        }
        Ok(())
    }
}

enum Expected {
    Zeros(u64),
    Stamped(Stamped),
    File(File, u64),
}

impl Expected {
    fn of(content: &Content) -> Result<Self, Failure> {
        Ok(match content {
            Content::Zeros(size) => Self::Zeros(*size),
            Content::Stamped(seed, size) => Self::Stamped(Stamped::new(*seed, *size)),
            Content::File(path) => {
                let failed = |error: std::io::Error| Failure::file("read", path, &error);
                let file = File::open(path).map_err(failed)?;
                let size = file.metadata().map_err(failed)?.len();
                Self::File(file, size)
            }
        })
    }

    fn size(&self) -> u64 {
        match self {
            Self::Zeros(size) | Self::File(_, size) => *size,
            Self::Stamped(stamped) => stamped.size(),
        }
    }

    /// Fills `memory` with the next bytes; fewer only at the end.
    fn next(&mut self, memory: &mut [u8]) -> Result<usize, Failure> {
        match self {
            Self::Zeros(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(memory.len());
                *left -= u64::try_from(count).unwrap_or(0);
                Ok(count)
            }
            Self::Stamped(stamped) => Ok(stamped.next(memory)),
            Self::File(file, left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(memory.len());
                let read = file.read_exact(&mut memory[..count]);
                read.map_err(|error| Failure::Run(format!("the first download cannot be read: {error}")))?;
                *left -= u64::try_from(count).unwrap_or(0);
                Ok(count)
            }
        }
    }
}

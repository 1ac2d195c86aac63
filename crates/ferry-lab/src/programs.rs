//! The documents' programs: `cp -r` as each of them writes it, on the runtime instead of eio.
//!
//! They are timed as strangers, so each runs in a process of its own (`ferry lab strategy`, which is for the lab and not
//! in the help). As in eio, all operations go to the ring, there is one worker, the ring has 64 entries and there are 64
//! blocks; a file is copied with one block in flight, except by [`Program::Blocks`].

mod bfs;
mod blocks;
mod dfs;
mod file;
mod sequential;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;

use ferry_io::{Dir, Error, FileKind, Io, Name, Options, RouteChoice, SetupError, run};

#[cfg(test)]
mod tests;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// One entry after the other (document 004, first program).
    Sequential,
    /// Depth first, so many fibers in each folder (document 004, second program).
    Dfs,
    /// Breadth first, so many fibers in all (document 003).
    Bfs,
    /// One entry after the other, the blocks of each file all at once (eio's `eurcp`, document 003).
    Blocks,
}

impl Program {
    /// All of them, by the names that the command line has.
    pub const ALL: [(&'static str, Self); 4] =
        [("sequential", Self::Sequential), ("dfs", Self::Dfs), ("bfs", Self::Bfs), ("blocks", Self::Blocks)];

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, program)| program)
    }

    /// The documents' number of fibers.
    #[must_use]
    pub fn usual_fibers(self) -> usize {
        match self {
            Self::Sequential | Self::Blocks => 1,
            Self::Dfs => 2,
            Self::Bfs => 64,
        }
    }
}

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Which program.
    pub program: Program,
    /// Bytes a block.
    pub block_bytes: usize,
    /// Fibers at most, as each program understands it.
    pub max_fibers: usize,
    /// Where operations run.
    pub route: RouteChoice,
}

/// Why a copy ended early.
#[derive(Debug)]
pub enum Failure {
    /// An operation failed.
    Failed(Error),
    /// The documents' programs copy files and folders only.
    NotCopied(Name, FileKind),
    /// A path without a last name.
    NotAName,
    /// The runtime could not be set up.
    Setup(SetupError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(out),
            Self::NotCopied(name, kind) => write!(out, "{name:?} is a {kind:?}, which is not copied"),
            Self::NotAName => out.write_str("the path has no last name"),
            Self::Setup(error) => error.fmt(out),
        }
    }
}

/// Something that can be copied, or be made: a name in an open folder.
struct Place {
    folder: Dir,
    name: Name,
}

impl Place {
    fn at(io: &Io, path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
        let name = name.ok_or(Failure::NotAName)?;
        Ok(Self { folder: io.open_dir(path.parent().unwrap_or(path))?, name })
    }
}

/// Copies `source` to `target`, which must not exist.
///
/// # Errors
/// The first operation that failed.
pub fn copy(how: &How, source: &Path, target: &Path) -> Result<(), Failure> {
    const ENTRIES: u32 = 64;
    let options = Options {
        queue_depth: ENTRIES,
        blocks: 64,
        block_size: how.block_bytes,
        workers: NonZeroUsize::MIN,
        route: how.route,
        ..Options::default()
    };
    let (copied, _) = run(&options, async |io| {
        let (source, target) = (Place::at(&io, source)?, Place::at(&io, target)?);
        match how.program {
            Program::Sequential => sequential::copy(&io, source, target).await,
            Program::Dfs => dfs::copy(&io, source, target, how.max_fibers).await,
            Program::Bfs => bfs::copy(&io, source, target, how.max_fibers).await,
            Program::Blocks => blocks::copy(&io, source, target).await,
        }
    })
    .map_err(Failure::Setup)?;
    copied
}

//! The documents' programs: their `cp -r`, on this runtime instead of eio.
//!
//! Each runs in its own process (the hidden command `ferry lab strategy`), because programs are timed as commands. As
//! in eio there is one worker and a ring of 64 entries with 64 blocks, every operation goes to the ring, and a batch is
//! submitted once no fiber can run. A file has one block in flight, except in [`Program::Blocks`].

mod breadth_first;
mod depth_first;
mod entry;
mod file;

use std::num::NonZeroUsize;
use std::path::Path;

use ferry_io::{Options, RouteChoice, Stats, run};

use self::depth_first::Order;
use self::entry::EntryAt;
pub use self::entry::Failure;

#[cfg(test)]
mod tests;

/// One of the documents' programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// One entry after another (document 004, first program).
    Sequential,
    /// Depth first, with a bound on the fibers of each folder (document 004, second program).
    Dfs,
    /// Breadth first, with a bound on all fibers (document 003).
    Bfs,
    /// One entry after another, all blocks of a file at once (eio's `eurcp`, document 003).
    Blocks,
}

impl Program {
    /// All programs with their names on the command line.
    pub const ALL: [(&'static str, Self); 4] =
        [("sequential", Self::Sequential), ("dfs", Self::Dfs), ("bfs", Self::Bfs), ("blocks", Self::Blocks)];

    /// Returns the program with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, program)| program)
    }

    /// Returns the documents' number of fibers.
    #[must_use]
    pub fn usual_fibers(self) -> usize {
        match self {
            Self::Sequential | Self::Blocks => 1,
            Self::Dfs => 2,
            Self::Bfs => 64,
        }
    }
}

/// Options of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramOptions {
    /// The program.
    pub program: Program,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Maximum number of fibers: in each folder, or in all.
    pub max_fibers: usize,
    /// Route of all operations.
    pub route: RouteChoice,
    /// Set to count hand-overs to kernel workers, which costs time.
    pub observe: bool,
}

/// Copies `source` to `target`, which must not exist, and returns the run's counters.
///
/// # Errors
/// The first operation that failed.
pub fn copy(how: &ProgramOptions, source: &Path, target: &Path) -> Result<Stats, Failure> {
    const ENTRIES: u32 = 64;
    let options = Options {
        queue_depth: ENTRIES,
        blocks: 64,
        block_size: how.block_bytes,
        workers: NonZeroUsize::MIN,
        route: how.route,
        early_batches: false,
        observe: how.observe,
        ..Options::default()
    };
    let (copied, stats) = run(&options, async |io| {
        let (source, target) = (EntryAt::open(&io, source)?, EntryAt::open(&io, target)?);
        match how.program {
            Program::Sequential => {
                depth_first::copy(&io, source, target, Order::Sequential { depth: 1 }).await
            }
            Program::Blocks => {
                depth_first::copy(&io, source, target, Order::Sequential { depth: io.blocks() }).await
            }
            Program::Dfs => {
                depth_first::copy(&io, source, target, Order::Concurrent { max_fibers: how.max_fibers }).await
            }
            Program::Bfs => breadth_first::copy(&io, source, target, how.max_fibers).await,
        }
    })
    .map_err(Failure::Setup)?;
    copied?;
    Ok(stats)
}

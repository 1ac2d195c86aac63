//! Memory for comparing copies with their sources.

use std::sync::Mutex;

use ferry_io::{Block, Cause, Errno, Error, Operation, Semaphore, map_blocks};

use crate::mutex::lock;

/// Ranges of one file that are compared at once.
pub(crate) const DEPTH: usize = 8;

/// Memory for comparing: two blocks for each range. A fiber that holds one of the runtime's blocks must not wait for
/// another, so these are others.
pub(crate) struct Room {
    /// Files that are compared at once: one for each worker.
    pub(crate) permits: Semaphore,
    spare: Mutex<Vec<Vec<Block>>>,
}

impl Room {
    pub(crate) fn new(workers: usize) -> Self {
        Self { permits: Semaphore::new(workers), spare: Mutex::default() }
    }

    /// Returns blocks of this size that no other file uses.
    pub(crate) fn take(&self, block_bytes: usize) -> ferry_io::Result<Vec<Block>> {
        // Those of a cancelled comparison may be fewer.
        let spare = lock(&self.spare).pop().filter(|blocks| blocks.len() == 2 * DEPTH);
        let no_memory = |_| Error { operation: Operation::Read, cause: Cause::Errno(Errno::NOMEM) };
        spare.map_or_else(|| map_blocks(2 * DEPTH, block_bytes).map_err(no_memory), Ok)
    }

    pub(crate) fn give_back(&self, blocks: Vec<Block>) {
        lock(&self.spare).push(blocks);
    }
}

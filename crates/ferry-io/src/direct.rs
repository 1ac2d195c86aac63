//! A file read and written past the page cache, over a bounded cache of its own.
//!
//! [`Io::open_direct`] opens it. It reads and writes at any offset and size, as a [`File`] does: `cache.rs` keeps blocks,
//! `policy.rs` decides which leave, `ahead.rs` what is read before it is asked for, `behind.rs` what is written when, and
//! `transfer.rs` moves it. Nothing runs by itself: requests are begun by the fiber that finds them due, go on in the
//! kernel or on the pool, and are taken by whoever uses the file next.

mod access;
mod ahead;
mod behind;
mod cache;
mod changed;
mod descriptor;
mod failures;
mod open;
mod options;
mod policy;
mod reading;
mod requests;
mod transfer;
mod writing;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

pub use access::{Access, WhyBuffered};
pub use descriptor::DirectUnit;
pub use failures::{Failure, Failures};
pub use options::DirectOptions;

use crate::descriptor::File;
use crate::fibers::Fibers;
use crate::run::Io;
use crate::stats::add;
use crate::worker::Worker;
use ahead::Streams;
use behind::Ends;
use cache::Cache;
use changed::Changed;
use transfer::{Flight, Path};

/// A file past the page cache, read and written at any offset and size over a bounded cache of its own
/// ([`Io::open_direct`]). Fibers of one worker may share it. It does not outlive the run's [`Io`].
///
/// **What others see.** What was written is on the device, and for a buffered reader of another process to see, after
/// [`Self::flush`], perhaps sooner: the kernel drops the pages that a direct write passes by, though a mapping may show the
/// old bytes until then. What others write is seen in blocks that are not in the cache; those that are, are not read again,
/// and where this file has changed a byte, what is around it is written back in multiples of [`Access::Direct`]'s unit. How
/// long the file is was asked when it was opened. So while it is open it is this one's to write. Nothing of it is left in
/// the page cache, but the pages that were there before.
///
/// **What a kill leaves.** Each byte is what was there or what was written, in no certain order: the file is made longer
/// from its end upwards, and the odd bytes at its end go through the page cache, so it never has padding.
///
/// **Dropping it** without [`Self::close`] gives up what the device does not have; those bytes are counted in
/// [`crate::Stats::unwritten_bytes`].
// Guards: `a_killed_writer_leaves_what_was_written_or_what_was_there`, `what_is_dropped_dirty_is_counted`.
pub struct DirectFile<'io> {
    /// The way of the bytes.
    path: Path,
    /// The same file as others see it.
    file: File,
    is_writable: bool,
    access: Access,
    options: DirectOptions,
    state: RefCell<State>,
    /// Requests on their way.
    flights: RefCell<Fibers<Flight>>,
    changed: Arc<Changed>,
    /// Where losses are counted.
    worker: Rc<Worker>,
    /// Nothing is begun while the size is being set.
    is_still: Cell<bool>,
    io: PhantomData<&'io Io>,
}

struct State {
    cache: Cache,
    streams: Streams,
    /// Blocks to be read ahead when there is room, nearest first.
    wanted: VecDeque<Range<u64>>,
    ends: Ends,
    failures: Failures,
    /// The size that it was set to, which the device may have to be told yet.
    promised: u64,
    /// The end of the file was written through the page cache, from here on.
    odd_end: Option<u64>,
    /// Where the last write ended.
    written_to: u64,
}

/// How often the blocks that were read were in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Reads of a block, or of a part, that found it.
    pub hits: u64,
    /// Those that waited for it.
    pub misses: u64,
    /// Blocks that wait for being written.
    pub dirty_blocks: usize,
}

impl DirectFile<'_> {
    /// How its bytes go to the device and back.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// The same in words.
    #[must_use]
    pub fn explain(&self) -> String {
        self.access.explain()
    }

    /// Its size in bytes, with what is not on the device yet.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.state.borrow().ends.size
    }

    /// The same file through the page cache: for its attributes. Its bytes and its size are as on the device.
    #[must_use]
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// What its cache did so far.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        let state = self.state.borrow();
        let (hits, misses) = (state.cache.hits, state.cache.misses);
        CacheStats { hits, misses, dirty_blocks: state.cache.dirty_blocks() }
    }

    fn block_bytes(&self) -> u64 {
        self.options.block_bytes as u64
    }
}

impl Drop for DirectFile<'_> {
    fn drop(&mut self) {
        add(&self.worker.counters.unwritten_bytes, self.state.borrow().cache.unwritten_bytes());
    }
}

#[cfg(test)]
mod tests;

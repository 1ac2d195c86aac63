//! The state of one direct file.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use ferry_io::{Fibers, File, Io, count_unwritten};

use crate::access::Access;
use crate::ahead::Streams;
use crate::behind::Ends;
use crate::cache::Cache;
use crate::failures::Failures;
use crate::options::DirectOptions;
use crate::transfer::{Channel, Request};
use crate::waiters::Waiters;

/// A file past the page cache, read and written at any offset and size over a bounded cache of its own
/// ([`Self::open`]). Fibers of one worker may share it. It does not outlive the run's [`Io`].
///
/// **Other processes.** Written bytes are on the device, and visible to buffered readers, after [`Self::flush`] at the
/// latest. The kernel drops the cached pages that a direct write passes, though a mapping may show old bytes until
/// then. Bytes that another process writes are seen only in blocks that are not in this file's cache. A write-back
/// covers whole units ([`Access::Direct`]) and so overwrites changes next to this file's own. The file's size is asked
/// once, at opening. Therefore no other process should write to the file while it is open here. The page cache keeps no
/// pages of the file except those that it held before.
///
/// **A killed process** leaves each byte as it was before or as it was written, in no particular order. The file grows
/// from its end upwards and its last odd bytes go through the page cache, so it never contains padding.
///
/// **Dropping it** without [`Self::close`] discards bytes that are not on the device;
/// [`ferry_io::Stats::unwritten_bytes`] counts them.
// Guards: `a_killed_writer_leaves_what_was_written_or_what_was_there`, `what_is_dropped_dirty_is_counted`.
pub struct DirectFile<'io> {
    pub(crate) channel: Channel,
    pub(crate) is_writable: bool,
    pub(crate) access: Access,
    pub(crate) options: DirectOptions,
    pub(crate) state: RefCell<State>,
    pub(crate) requests: RefCell<Fibers<Request>>,
    pub(crate) waiters: Arc<Waiters>,
    /// While the size is being set, no request may begin.
    pub(crate) is_still: Cell<bool>,
    pub(crate) io: PhantomData<&'io Io>,
}

/// The part of a direct file that completions change.
pub(crate) struct State {
    pub(crate) cache: Cache,
    pub(crate) streams: Streams,
    /// Ranges of blocks to be read ahead when a request may begin, nearest first.
    pub(crate) wanted: VecDeque<Range<u64>>,
    pub(crate) ends: Ends,
    pub(crate) failures: Failures,
    /// Size set by the last truncation; the device's size may still have to grow to it.
    pub(crate) promised: u64,
    /// Offset of the unit at the file's end that was written through the page cache.
    pub(crate) odd_end: Option<u64>,
    /// End of the last write.
    pub(crate) written_to: u64,
}

/// Counters of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Reads of a block, or a part of one, that found it in the cache.
    pub hits: u64,
    /// Reads of a block, or a part of one, that had to wait for it.
    pub misses: u64,
    /// Blocks that are not yet being written.
    pub dirty_blocks: usize,
}

impl DirectFile<'_> {
    /// Returns the path of its bytes to the device and back.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Describes [`Self::access`] in words.
    #[must_use]
    pub fn explain(&self) -> String {
        self.access.explain()
    }

    /// Returns the size in bytes, with bytes that are only in the cache.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.state.borrow().ends.size
    }

    /// Returns the same file through the page cache, for its attributes. It has the bytes and the size of the device.
    #[must_use]
    pub fn as_file(&self) -> &File {
        &self.channel.buffered
    }

    /// Returns the cache's counters.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        let state = self.state.borrow();
        let (hits, misses) = (state.cache.hits, state.cache.misses);
        CacheStats { hits, misses, dirty_blocks: state.cache.dirty_blocks() }
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.options.block_bytes as u64
    }
}

impl Drop for DirectFile<'_> {
    fn drop(&mut self) {
        count_unwritten(self.state.borrow().cache.unwritten_bytes());
    }
}

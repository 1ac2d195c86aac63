//! The block pool: memory for file contents, mapped once and handed out in blocks.
//!
//! A block is in the free list or owned by exactly one [`Block`] (guard: `every_block_comes_back`), so its bytes have
//! one owner at a time. The mapping lives until the last block has come back, because each holds the pool (guard:
//! `a_block_outlives_its_pool`). The memory is anonymous and zero at first, so it may always be read. Pages are touched
//! only when used: a block that carries a 4 KiB file costs one page. The free list is last in, first out, to stay in
//! the processor's cache.

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::cancel;
use crate::concurrent::atomic::{AtomicBool, Ordering};
use crate::concurrent::{Mutex, MutexGuard};
use crate::error::{Error, Operation, Result, SetupError};
use crate::line::Line;
use crate::spare;

pub(crate) struct Blocks {
    base: NonNull<u8>,
    block_size: usize,
    count: usize,
    free: Mutex<Free>,
    /// Set while a fiber waits: blocks are not kept for later then.
    is_wanted: AtomicBool,
}

#[derive(Default)]
struct Free {
    indices: Vec<u32>,
    line: Line,
}

// SAFETY: `base` is only an address; the bytes behind it are reached through a `Block`, which owns its part.
unsafe impl Send for Blocks {}
// SAFETY: as above; the free list is behind a mutex.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Maps `count` blocks of `block_size` bytes; no page is touched yet.
    pub(crate) fn map(count: usize, block_size: usize) -> std::result::Result<Arc<Self>, SetupError> {
        let bytes = count * block_size;
        // Miri supports no other flag.
        let flags = if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::NORESERVE };
        crate::sys::count_call();
        // SAFETY: a fresh anonymous mapping overlaps nothing.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let base = base.map_err(|errno| SetupError::NoMemory { bytes, errno })?;
        let base = NonNull::new(base.cast())
            .ok_or(SetupError::NoMemory { bytes, errno: rustix::io::Errno::NOMEM })?;
        let indices = (0..u32::try_from(count).unwrap_or(u32::MAX)).rev().collect();
        let free = Mutex::new(Free { indices, ..Free::default() });
        Ok(Arc::new(Self { base, block_size, count, free, is_wanted: AtomicBool::new(false) }))
    }

    /// Asks for huge pages, so that a request over adjacent blocks has a few segments instead of one per page.
    pub(crate) fn want_large_pages(&self) {
        let (base, bytes) = self.arena();
        // SAFETY: the range is this pool's own mapping, and the advice changes no byte of it.
        let advised = unsafe { madvise(base.cast(), bytes, Advice::LinuxHugepage) };
        crate::sys::count_call();
        advised.ok();
    }

    pub(crate) fn block_size(&self) -> usize {
        self.block_size
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Number of blocks that no fiber holds and no other worker keeps.
    pub(crate) fn free(&self) -> usize {
        spare::give_back();
        self.lock().indices.len()
    }

    /// Number of blocks held or kept.
    pub(crate) fn in_use(&self) -> usize {
        self.count - self.lock().indices.len()
    }

    /// Number of blocks neither held nor kept.
    #[cfg(test)]
    pub(crate) fn in_list(&self) -> usize {
        self.lock().indices.len()
    }

    /// Address and size in bytes of the memory of all blocks.
    pub(crate) fn arena(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.count * self.block_size)
    }

    pub(crate) fn take_all(self: &Arc<Self>) -> Vec<Block> {
        let indices = std::mem::take(&mut self.lock().indices);
        indices.into_iter().map(|index| Block::new(Spare { pool: Arc::clone(self), index })).collect()
    }

    #[cfg(test)]
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Block> {
        let index = self.lock().indices.pop()?;
        Some(Block::new(Spare { pool: Arc::clone(self), index }))
    }

    pub(crate) fn take(self: &Arc<Self>) -> Take<'_> {
        Take { pool: self, number: None }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_back(&self, index: u32) {
        let waker = {
            let mut free = self.lock();
            free.indices.push(index);
            let next = free.line.next();
            self.is_wanted.store(!free.line.is_empty(), Ordering::Relaxed);
            next
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size, and no block is left: each holds an `Arc` of this.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.count * self.block_size) };
        debug_assert!(unmapped.is_ok(), "munmap of the runtime's own mapping");
    }
}

pub(crate) struct Take<'a> {
    pool: &'a Arc<Blocks>,
    /// Number in the queue of waiting fibers, once it has waited.
    number: Option<u64>,
}

impl Future for Take<'_> {
    type Output = Result<Block>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if cancel::is_cancelled() {
            return Poll::Ready(Err(Error::cancelled(Operation::Wait)));
        }
        let pool = self.pool;
        if let Some(kept) = spare::take_block(|spare| Arc::ptr_eq(&spare.pool, pool)) {
            return Poll::Ready(Ok(Block::new(kept)));
        }
        let mut free = pool.lock();
        if let Some(index) = free.indices.pop() {
            drop(free);
            return Poll::Ready(Ok(Block::new(Spare { pool: Arc::clone(pool), index })));
        }
        pool.is_wanted.store(true, Ordering::Relaxed);
        free.line.join(&mut self.number, cx.waker());
        Poll::Pending
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut free = self.pool.lock();
        let is_free = !free.indices.is_empty();
        let next = free.line.leave(number, is_free);
        self.pool.is_wanted.store(!free.line.is_empty(), Ordering::Relaxed);
        drop(free);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// One owned block of memory, aligned to a page. It goes back to its pool when dropped.
///
/// ```
/// use ferry_io::{Error, Options, run};
///
/// let (outcome, _stats) = run(&Options::default(), async |io| {
///     let mut block = io.block().await?;
///     block.as_mut_capacity()[..4].copy_from_slice(b"text");
///     block.set_filled(4);
///     assert_eq!((block.as_slice(), block.capacity()), (&b"text"[..], io.block_size()));
///     Ok::<(), Error>(())
/// })?;
/// outcome?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Block {
    owned: ManuallyDrop<Spare>,
    filled: usize,
}

/// An unused block, which goes back to its pool when dropped.
pub(crate) struct Spare {
    pool: Arc<Blocks>,
    index: u32,
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.pool.put_back(self.index);
    }
}

impl Block {
    fn new(spare: Spare) -> Self {
        Self { owned: ManuallyDrop::new(spare), filled: 0 }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.owned.pool.block_size
    }

    /// Returns the bytes of the block's content.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the block owns these bytes, `filled` is within its size, and the mapping is initialised to zero.
        unsafe { std::slice::from_raw_parts(self.address(), self.filled) }
    }

    /// Returns all of its memory, to be filled; it still contains the former bytes.
    #[must_use]
    pub fn as_mut_capacity(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes it exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.owned.pool.block_size) }
    }

    /// Makes the first `size` bytes the block's content.
    ///
    /// # Panics
    /// If `size` exceeds the capacity.
    pub fn set_filled(&mut self, size: usize) {
        assert!(size <= self.capacity(), "a block of {} bytes can't hold {size}", self.capacity());
        self.filled = size;
    }

    pub(crate) fn address(&self) -> *mut u8 {
        // SAFETY: the index is below the number of blocks, so the result stays within the mapping.
        unsafe { self.owned.pool.base.as_ptr().add(self.owned.index as usize * self.owned.pool.block_size) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it is taken here only, and not used after.
        let spare = unsafe { ManuallyDrop::take(&mut self.owned) };
        if spare.pool.count >= spare::AMPLE && !spare.pool.is_wanted.load(Ordering::Relaxed) {
            drop(spare::keep_block(spare));
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("index", &self.owned.index).field("filled", &self.filled).finish()
    }
}

#[cfg(test)]
mod tests;

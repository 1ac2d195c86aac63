//! The sample buffer of one processor, shared with the kernel (perf_event_open(2), "MMAP layout").
//!
//! The kernel writes from the head on and never over unread bytes: events without room are counted.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Offsets in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// A buffer, and the perf event that owns it.
#[derive(Debug)]
pub(super) struct Buffer {
    base: *mut c_void,
    /// Size of the first page, which holds the positions.
    page: usize,
    /// Size of the rest, a power of two.
    size: usize,
    /// The owner; other perf events may send samples here.
    pub(super) event: OwnedFd,
}

// SAFETY: the mapping is this value's own, wherever it goes; the kernel shares it by the protocol above.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Maps a buffer of up to `size` bytes, smaller if less memory may be locked.
    ///
    /// # Errors
    /// Those of mmap(2): EPERM if not even one page may be locked.
    pub(super) fn map(event: OwnedFd, size: usize) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let mut size = (size / page).max(1).next_power_of_two() * page;
        loop {
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
            // SAFETY: a fresh mapping overlaps nothing.
            let base = unsafe { mmap(std::ptr::null_mut(), page + size, access, flags, &event, 0) };
            match base {
                Ok(base) => return Ok(Self { base, page, size, event }),
                Err(Errno::PERM | Errno::NOMEM) if size > page => size /= 2,
                Err(errno) => return Err(errno),
            }
        }
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        let at = self.base.wrapping_byte_add(offset).cast();
        // SAFETY: both positions are aligned words of the first page, which is mapped as long as `self`; the kernel and
        // this program only access them as a whole.
        unsafe { AtomicU64::from_ptr(at) }
    }

    /// Appends the bytes that have arrived, up to the buffer's size, and frees their room.
    pub(super) fn drain(&mut self, into: &mut Vec<u8>) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let tail = self.position(TAIL).load(Ordering::Relaxed);
        let count = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.size);
        // Correct for positions beyond the size, which is a power of two.
        let at = usize::try_from(tail % u64::try_from(self.size).unwrap_or(u64::MAX)).unwrap_or(0);
        let until_wrap = count.min(self.size - at);
        self.copy(at, until_wrap, into);
        self.copy(0, count - until_wrap, into);
        self.position(TAIL).store(head, Ordering::Release);
    }

    fn copy(&self, at: usize, count: usize, into: &mut Vec<u8>) {
        let start = self.base.wrapping_byte_add(self.page + at).cast::<u8>();
        // SAFETY: the range lies within the mapping, and between tail and head, where the kernel does not write.
        into.extend_from_slice(unsafe { std::slice::from_raw_parts(start, count) });
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.base, self.page + self.size) };
        debug_assert!(unmapped.is_ok(), "a mapping of one's own can be unmapped");
    }
}

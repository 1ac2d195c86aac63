//! A mapped file that is written to another file: a copy by mmap(2).
//!
//! Only the kernel touches the mapped bytes, in pwrite(2). It answers EFAULT if the file has become shorter than its
//! mapping, so no SIGBUS ends the process. No reference to the bytes exists, because other processes may change them.
//!
//! ```
//! use ferry_io::mapped::Mapped;
//!
//! # let temporary = tempfile::tempdir()?;
//! let (source, target) = (temporary.path().join("source"), temporary.path().join("target"));
//! std::fs::write(&source, "text")?;
//! let mapped = Mapped::of(std::fs::File::open(source)?, 4)?;
//! // Linux 5.14.
//! drop(mapped.populate(0, 4));
//! assert_eq!(mapped.write_to(std::fs::File::create(&target)?, 0, 4)?, 4);
//! assert_eq!(std::fs::read(target)?, b"text");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ffi::c_void;

use rustix::fd::{AsFd, AsRawFd as _};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// A range of a file, mapped for reading. Unmapped when dropped.
#[derive(Debug)]
pub struct Mapped {
    base: *mut c_void,
    bytes: usize,
    /// The range's offset in the file.
    start: u64,
}

// SAFETY: the address is only passed to the kernel, which any thread may do.
unsafe impl Send for Mapped {}
// SAFETY: no method changes the mapping or refers to its bytes; it is unmapped once no thread borrows it.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the first `bytes` bytes of a file, at least one.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn of(file: impl AsFd, bytes: usize) -> Result<Self, Errno> {
        Self::part(file, 0, bytes)
    }

    /// Maps `bytes` bytes of a file, at least one, from the offset `start` on, a multiple of the page size.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn part(file: impl AsFd, start: u64, bytes: usize) -> Result<Self, Errno> {
        let (free, read) = (std::ptr::null_mut(), ProtFlags::READ);
        crate::sys::count_call();
        // SAFETY: a fresh mapping overlaps nothing, and its bytes are never read by this program.
        let base = unsafe { mmap(free, bytes, read, MapFlags::SHARED, file, start) };
        Ok(Self { base: base?, bytes, start })
    }

    /// Reads up to `size` bytes from `at` on, an offset in the range, into memory and maps their pages (`MADV_POPULATE_READ`, Linux 5.14), so that
    /// writing them takes no page faults.
    ///
    /// # Errors
    /// Those of madvise(2): EINVAL on older kernels, EFAULT if the file has become shorter or a page cannot be read.
    pub fn populate(&self, at: usize, size: usize) -> Result<(), Errno> {
        let page = rustix::param::page_size();
        let (start, end) = (at / page * page, at.saturating_add(size).min(self.bytes));
        if start >= end {
            return Ok(());
        }
        crate::sys::call(|| {
            let address = self.base.wrapping_byte_add(start);
            // SAFETY: the range lies within the mapping, which lives as long as `self`; its contents do not change.
            unsafe { madvise(address, end - start, Advice::LinuxPopulateRead) }
        })
    }

    /// Writes up to `size` bytes from `at` on, an offset in the range, to the same place of `target`. May write fewer; 0 at the end.
    ///
    /// # Errors
    /// Those of pwrite(2); EFAULT if the mapped file has become shorter.
    pub fn write_to(&self, target: impl AsFd, at: usize, size: usize) -> Result<usize, Errno> {
        let size = size.min(self.bytes.saturating_sub(at));
        let offset =
            libc::off_t::try_from(self.start.saturating_add(at as u64)).map_err(|_| Errno::OVERFLOW)?;
        let (target, address) = (target.as_fd(), self.base.wrapping_byte_add(at.min(self.bytes)));
        crate::sys::call(|| {
            // SAFETY: the range lies within the mapping, which lives as long as `self`; the kernel only reads it, and
            // answers EFAULT where the file no longer reaches.
            let count = unsafe { libc::pwrite(target.as_raw_fd(), address, size, offset) };
            usize::try_from(count)
                .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
        })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        crate::sys::count_call();
        // SAFETY: this is the mapping that `part` made, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.base, self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of one's own can be unmapped");
    }
}

#[cfg(all(test, not(miri)))]
mod tests;

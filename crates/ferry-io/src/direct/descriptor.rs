//! One descriptor whose transfers go past the page cache for a while: for whoever has aligned blocks and needs no cache.
//!
//! A descriptor of its own would need the file's name once more, which may have become another's, and what has no name
//! yet could not be opened at all.

use rustix::io::Errno;

use super::access::WhyBuffered;
use crate::descriptor::Descriptor;
use crate::descriptor::File;
use crate::entry::DirectAlignment;
use crate::sys;

/// What direct requests are multiples of at least: what is less than a page goes to where the page cache is whole pages.
const LEAST_UNIT: u64 = 4096;

/// What direct requests must be multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectUnit {
    /// Offsets, sizes and memory, in bytes.
    pub bytes: u64,
    /// Whether the filesystem said so (STATX_DIOALIGN, Linux 6.1); where it does not, as btrfs, it is taken to be what it
    /// calls a block (`st_blksize`), and if that is wrong, requests are answered with EINVAL.
    pub is_told: bool,
}

impl File {
    /// Has its transfers go past the page cache from now on (O_DIRECT), if that can be, in multiples of what is returned. Not while
    /// it is being read or written.
    ///
    /// # Errors
    /// Why not; it is as it was then.
    pub fn set_direct(&self) -> Result<DirectUnit, WhyBuffered> {
        self.switch(true).map_err(WhyBuffered::Refused)?;
        let fd = self.fd();
        let (told, block_bytes) = match &*fd {
            Descriptor::Real(handle) if sys::is_in_memory(handle.fd()) => (Err(WhyBuffered::InMemory), 0),
            Descriptor::Real(handle) => {
                (Ok(sys::direct_alignment(handle.fd())), sys::block_bytes(handle.fd()))
            }
            Descriptor::Sim(descriptor) => (Ok(descriptor.direct_alignment()), LEAST_UNIT),
        };
        let unit = told.and_then(|told| match told {
            DirectAlignment::Bytes(bytes) => Ok(DirectUnit { bytes: bytes.max(LEAST_UNIT), is_told: true }),
            DirectAlignment::Untold => Ok(DirectUnit { bytes: block_bytes.max(LEAST_UNIT), is_told: false }),
            DirectAlignment::None => Err(WhyBuffered::NotThisFile),
        });
        if unit.is_err() {
            self.set_buffered();
        }
        unit
    }

    /// Has its transfers go through the page cache again.
    pub fn set_buffered(&self) {
        // It can't fail for an open file; were it to, odd requests would be answered with EINVAL.
        self.switch(false).ok();
    }

    fn switch(&self, is_direct: bool) -> Result<(), Errno> {
        match &*self.fd() {
            Descriptor::Real(handle) => {
                sys::set_direct(handle.fd(), is_direct)?;
                handle.note_direct(is_direct);
                Ok(())
            }
            Descriptor::Sim(descriptor) => descriptor.set_direct(is_direct),
        }
    }
}

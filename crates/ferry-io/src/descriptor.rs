//! Open descriptors, of the kernel or of the simulation, and the two capabilities that hold them.
//!
//! [`File`] and [`Dir`] are defined beneath the modules that open or answer; their operations are in `file.rs` and
//! `dir.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::FlockOperation::{NonBlockingLockExclusive, NonBlockingLockShared};
use rustix::io::Errno;

use crate::error::{Error, Operation, Result};
use crate::event;
use crate::preload::Shelf;
use crate::sim::SimDescriptor;

/// An open file or folder, closed with its last owner.
#[derive(Debug)]
pub(crate) enum Descriptor {
    Real(Handle),
    Sim(SimDescriptor),
}

/// A descriptor of the kernel. Closing it is counted.
#[derive(Debug)]
pub(crate) struct Handle {
    fd: OwnedFd,
    /// `st_dev` of its filesystem, or 0 if unknown.
    device: u64,
    /// True for the root of a mount, if that was found out when it was opened.
    is_mount_root: Option<bool>,
    /// Set if a recording counts it as open.
    is_told: bool,
    /// Set while its transfers go past the page cache.
    is_direct: AtomicBool,
    /// Files of a folder that were read when it was listed.
    preloaded: Shelf,
}

impl Handle {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// True for the root of a mount; `None` if that is not known.
    pub(crate) fn is_mount_root(&self) -> Option<bool> {
        self.is_mount_root
    }

    pub(crate) fn note_direct(&self, is_direct: bool) {
        self.is_direct.store(is_direct, Ordering::Relaxed);
    }

    /// Records that the descriptor is being closed.
    pub(crate) fn tell_closing(&self) {
        if self.is_told {
            event::descriptor_closed();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.tell_closing();
        crate::sys::count_call();
    }
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Self {
        Self {
            fd,
            device: 0,
            is_mount_root: None,
            is_told: event::descriptor_opened(),
            is_direct: AtomicBool::new(false),
            preloaded: Shelf::default(),
        }
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        Self::Real(fd.into())
    }
}

#[cfg(test)]
impl From<std::fs::File> for Handle {
    fn from(file: std::fs::File) -> Self {
        Self::from(OwnedFd::from(file))
    }
}

/// A shared descriptor, held by its capability and by each operation in flight.
pub(crate) type Fd = Arc<Descriptor>;

impl Descriptor {
    /// The magic number of its filesystem (statfs(2)); `None` on failure.
    pub(crate) fn filesystem_magic(&self) -> Option<u64> {
        match self {
            Self::Real(handle) => {
                rustix::fs::fstatfs(handle.fd()).ok().map(|found| found.f_type.cast_unsigned())
            }
            Self::Sim(descriptor) => descriptor.magic(),
        }
    }

    /// Device number of its filesystem: that of the folder in which it was opened.
    pub(crate) fn device(&self) -> u64 {
        match self {
            Self::Real(handle) => handle.device,
            Self::Sim(descriptor) => descriptor.device(),
        }
    }

    /// Locks the file (flock(2)): alone, or shared. Returns false if another lock forbids it.
    pub(crate) fn try_lock(&self, exclusive: bool) -> Result<bool> {
        let failed = |errno| Error::errno(Operation::Open, errno);
        let handle = match self {
            Self::Real(handle) => handle,
            Self::Sim(descriptor) => return descriptor.try_lock(exclusive).map_err(failed),
        };
        let how = if exclusive { NonBlockingLockExclusive } else { NonBlockingLockShared };
        match crate::sys::call(|| rustix::fs::flock(handle.fd(), how)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    pub(crate) fn on(mut self, device: u64) -> Self {
        if let Self::Real(handle) = &mut self {
            handle.device = device;
        }
        self
    }

    pub(crate) fn with_mount(mut self, is_mount_root: Option<bool>) -> Self {
        if let Self::Real(handle) = &mut self {
            handle.is_mount_root = is_mount_root;
        }
        self
    }

    /// Files of this folder that were read when it was listed.
    pub(crate) fn preloaded(&self) -> &Shelf {
        match self {
            Self::Real(handle) => &handle.preloaded,
            Self::Sim(descriptor) => descriptor.preloaded(),
        }
    }

    pub(crate) fn is_direct(&self) -> bool {
        match self {
            Self::Real(handle) => handle.is_direct.load(Ordering::Relaxed),
            Self::Sim(descriptor) => descriptor.is_direct(),
        }
    }

    /// Returns the kernel's descriptor.
    ///
    /// # Panics
    /// For a simulated one; the simulation answers its own operations.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Real(handle) => handle.fd(),
            Self::Sim(_) => unreachable!("a simulated descriptor was given to the kernel"),
        }
    }
}

/// An open file. Clones share the descriptor, which is closed with the last one.
#[doc = ""]
#[doc = include_str!("../docs/file.md")]
#[derive(Debug, Clone)]
pub struct File {
    pub(crate) fd: Fd,
}

impl File {
    pub(crate) fn from_descriptor(descriptor: Descriptor) -> Self {
        Self { fd: Arc::new(descriptor) }
    }

    pub(crate) fn from_shared(fd: Fd) -> Self {
        Self { fd }
    }

    pub(crate) fn fd(&self) -> Fd {
        Arc::clone(&self.fd)
    }
}

/// An open folder. Clones share the descriptor, which is closed with the last one.
#[doc = ""]
#[doc = include_str!("../docs/dir.md")]
#[derive(Debug, Clone)]
pub struct Dir {
    pub(crate) fd: Fd,
}

impl Dir {
    pub(crate) fn from_descriptor(descriptor: Descriptor) -> Self {
        Self { fd: Arc::new(descriptor) }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.fd()
    }
}

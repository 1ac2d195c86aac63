//! State shared by a world and its runs, and the descriptors of programs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::disk::Disk;
use super::meanwhile::Meanwhile;
use super::world::World;
use crate::buffers::Blocks;
use crate::entry::DirectSupport;
use crate::preload::Shelf;

/// State shared by a world, its runs and their descriptors.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) disk: Mutex<Disk>,
    /// Blocks of the last run.
    pub(super) blocks: Mutex<Weak<Blocks>>,
    pub(super) meanwhile: Meanwhile,
}

impl Inner {
    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open descriptor of the simulation, closed when dropped.
#[derive(Debug)]
pub(crate) struct SimDescriptor {
    world: Arc<Inner>,
    pub(super) handle: u64,
    /// Device number of its filesystem.
    device: u64,
    preloaded: Shelf,
    is_given_back: bool,
}

impl SimDescriptor {
    pub(super) fn new(world: &Arc<Inner>, handle: u64, device: u64) -> Self {
        Self { world: Arc::clone(world), handle, device, preloaded: Shelf::default(), is_given_back: false }
    }

    /// Returns the handle without closing it: the caller closes it.
    pub(super) fn give_back(mut self) -> u64 {
        self.is_given_back = true;
        self.handle
    }

    /// close(2): closes the descriptor whatever the answer is.
    pub(crate) fn close(self) -> Result<(), Errno> {
        for deed in self.world.meanwhile.due() {
            deed(&World { inner: Arc::clone(&self.world) });
        }
        let mut disk = self.world.disk();
        let name = disk.opened(self.handle)?.name.clone();
        match disk.meet_fault_of_closing(&name) {
            // close(2) with EINTR has closed the file and reports no write-back error.
            Err(Errno::INTR) => Ok(()),
            answer => answer,
        }
    }

    /// Files of this folder that were read when it was listed.
    pub(crate) fn preloaded(&self) -> &Shelf {
        &self.preloaded
    }

    /// Device number of its filesystem.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    /// Magic number of its filesystem.
    pub(crate) fn magic(&self) -> Option<u64> {
        self.world.disk().settings.magic
    }

    /// Returns true if transfers bypass the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.world.disk().opened(self.handle).is_ok_and(|open| open.flags.contains(OFlags::DIRECT))
    }

    /// F_SETFL of fcntl(2), for O_DIRECT only.
    pub(crate) fn set_direct(&self, is_direct: bool) -> Result<(), Errno> {
        let mut disk = self.world.disk();
        if is_direct && !disk.settings.opens_direct {
            return Err(Errno::INVAL);
        }
        disk.opened_mut(self.handle)?.flags.set(OFlags::DIRECT, is_direct);
        Ok(())
    }

    /// flock(2), without waiting.
    pub(crate) fn try_lock(&self, exclusive: bool) -> Result<bool, Errno> {
        self.world.disk().try_lock(self.handle, exclusive)
    }

    /// Simulated answer to STATX_DIOALIGN of statx(2).
    pub(crate) fn direct_support(&self) -> DirectSupport {
        let settings = &self.world.disk().settings;
        match settings.direct_alignment {
            _ if !settings.reports_alignment => DirectSupport::Unreported,
            0 => DirectSupport::Unsupported,
            bytes => DirectSupport::Unit(bytes),
        }
    }
}

impl Drop for SimDescriptor {
    fn drop(&mut self) {
        if !self.is_given_back {
            self.world.disk().close(self.handle);
        }
    }
}

//! The simulated backend: an in-memory filesystem on which everything that chance decides comes from a seed.
//!
//! A test makes a [`World`], fills it, and runs programs against it with [`World::options`]; worlds outlast runs.
//! The simulation stands beneath the router, the pool's queue and the workers: they are the real ones. Simulated are the
//! calls of the inline route, which the router asks and times as it does the kernel's; the ring; the pool's threads; and
//! the clock. Of several workers one runs at a time, and the seed says which (`seats.rs`). Requests take effect, and
//! complete, at times drawn from the seed (`schedule.rs`), so completions are reordered; transfers are cut short; what
//! the [`Settings`] ask for fails; what is in memory, and what waits, changes while a run lasts (`character.rs`). The
//! same seed on equal worlds gives the same run (guard: `the_same_seed_gives_the_same_run`). A run in which nothing can
//! happen any more panics and names its seed, as does nothing else: EINTR comes only if a [`Fault`] asks for it, and so
//! does EAGAIN, unless the router has asked.
//!
//! Limits: reading leaves access times alone, as if mounted noatime; ACLs are extended attributes without effect;
//! clones are charged as copies; FIFOs carry nothing; rings link no requests. Other processes
//! ([`World::meanwhile`]) act between any two calls; the run's own threads also act between requests, but not within
//! one that is made of several calls. Nothing wakes a simulated run from outside.

mod answer;
mod calls;
mod chance;
mod character;
mod content;
mod disk;
mod entries;
mod folder;
mod meanwhile;
mod model;
mod schedule;
mod seats;
mod settings;
mod world;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use content::Sparse;
use disk::Disk;
use meanwhile::Meanwhile;
pub use model::{Model, Node, differences};
pub(crate) use schedule::Sim;
pub use settings::{Fault, Settings, Struck};
pub use world::World;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::buffers::Blocks;
use crate::sys::DirectAlignment;

/// What a world, the runs against it and their descriptors share.
#[derive(Debug)]
pub(crate) struct Inner {
    disk: Mutex<Disk>,
    /// The last run's.
    blocks: Mutex<Weak<Blocks>>,
    meanwhile: Meanwhile,
}

impl Inner {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open descriptor of the simulation, closed when dropped.
#[derive(Debug)]
pub(crate) struct SimDescriptor {
    world: Arc<Inner>,
    handle: u64,
    /// The filesystem that holds it.
    device: u64,
    is_given_back: bool,
}

impl SimDescriptor {
    fn new(world: &Arc<Inner>, handle: u64, device: u64) -> Self {
        Self { world: Arc::clone(world), handle, device, is_given_back: false }
    }

    /// Leaves the closing to others.
    fn give_back(mut self) -> u64 {
        self.is_given_back = true;
        self.handle
    }

    /// close(2): it is closed whatever the answer.
    pub(crate) fn close(self) -> Result<(), Errno> {
        for deed in self.world.meanwhile.due() {
            deed(&World { inner: Arc::clone(&self.world) });
        }
        let mut disk = self.world.disk();
        let name = disk.opened(self.handle)?.name.clone();
        match disk.meet_fault_of_closing(&name) {
            // As from the kernel's: it says nothing of the bytes.
            Err(Errno::INTR) => Ok(()),
            answer => answer,
        }
    }

    /// The filesystem that holds it.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    /// True if its transfers go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.world.disk().opened(self.handle).is_ok_and(|open| open.flags.contains(OFlags::DIRECT))
    }

    /// F_SETFL of fcntl(2), for O_DIRECT alone.
    pub(crate) fn set_direct(&self, is_direct: bool) -> Result<(), Errno> {
        let mut disk = self.world.disk();
        if is_direct && !disk.settings.opens_direct {
            return Err(Errno::INVAL);
        }
        disk.opened_mut(self.handle)?.flags.set(OFlags::DIRECT, is_direct);
        Ok(())
    }

    /// What statx(2) says of direct transfers' alignment.
    pub(crate) fn direct_alignment(&self) -> DirectAlignment {
        let settings = &self.world.disk().settings;
        match settings.direct_alignment {
            _ if !settings.tells_alignment => DirectAlignment::Untold,
            0 => DirectAlignment::None,
            bytes => DirectAlignment::Bytes(bytes),
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

#[cfg(test)]
mod tests;

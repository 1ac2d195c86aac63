//! The simulated backend: an in-memory filesystem on which everything that chance decides comes from a seed.
//!
//! A test makes a [`World`], fills it, and runs programs against it with [`World::options`]; worlds outlast runs.
//! Everything happens on one thread under a virtual clock. A request takes effect, and completes, at times drawn from
//! the seed when the executor has nothing else to do (`schedule.rs`), so completions are reordered; transfers are cut
//! short; what the [`Settings`] ask for fails. The same seed on equal worlds gives the same run (guard:
//! `the_same_seed_gives_the_same_run`). A run in which nothing can happen any more panics and names its seed, as does
//! nothing else: EINTR and EAGAIN come only if a [`Fault`] asks for them.
//!
//! Limits: reading leaves access times alone, as if mounted noatime; ACLs are extended attributes without effect;
//! clones are charged as copies; FIFOs carry nothing; what other
//! processes do ([`World::meanwhile`]) falls between requests. Nothing wakes a simulated run from another thread.

mod answer;
mod chance;
mod content;
mod disk;
mod folder;
mod meanwhile;
mod model;
mod schedule;
mod settings;
mod world;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use content::Sparse;
use disk::Disk;
use meanwhile::Meanwhile;
pub use model::{Model, Node, differences};
pub(crate) use schedule::Sim;
pub use settings::{Fault, Settings};
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
}

impl SimDescriptor {
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
        self.world.disk().close(self.handle);
    }
}

#[cfg(test)]
mod tests;

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
mod inner;
mod meanwhile;
mod model;
mod schedule;
mod seats;
mod settings;
mod world;

pub use content::Sparse;
use inner::Inner;
pub(crate) use inner::SimDescriptor;
pub use model::{Model, Node, differences};
pub(crate) use schedule::Sim;
pub use settings::{Fault, Settings, Struck};
pub use world::World;

#[cfg(test)]
mod tests;

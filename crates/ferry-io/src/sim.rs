//! The simulated backend: an in-memory filesystem whose random choices all come from one seed.
#![doc = ""]
#![doc = include_str!("../docs/sim.md")]
//! The router, the pool's queue and the workers are the real ones. Simulated are the calls of the inline route, the
//! ring, the pool's threads and the clock. One worker runs at a time, chosen by the seed (`seats.rs`). Requests take
//! effect and complete at random times (`schedule.rs`), so completions are reordered. Transfers are cut short, the
//! faults of [`Settings`] strike, and the cached part of the files changes during a run (`character.rs`). EINTR comes
//! only from a [`Fault`], and so does EAGAIN, unless the router asked not to block. Equal seeds on equal worlds give
//! equal runs (guard: `the_same_seed_gives_the_same_run`). A run in which nothing can happen any more panics and names
//! its seed. A world outlasts its runs.
//!
//! Limits: reads leave access times alone, as with noatime; ACLs are extended attributes without effect; clones cost as
//! much as copies; FIFOs carry nothing; rings link no requests; files that are read with a listing cost no time. Other processes ([`World::meanwhile`]) act between any
//! two calls. The run's own threads act only between requests, even where a request makes several calls. Nothing
//! outside can wake a simulated run.

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
pub use world::{Simulation, World};

#[cfg(test)]
mod tests;

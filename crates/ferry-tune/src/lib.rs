//! What a mount can do: measured once, kept in a profile, and found again by who copies there.
//!
//! [`Profile`] is what was measured. [`Profile::to_toml`] and [`Profile::parse`] write and read it, [`Profile::check`] says
//! whether it can be true, [`Place::of`] which filesystem a path is on, [`store`] where its profile is kept, and
//! [`Profile::stale`] whether it still speaks of what is there.

pub mod measure;
mod profile;

pub use profile::{
    About, Block, Calls, Can, Depth, Direct, Figure, Malformed, Place, Profile, VERSION, age_seconds, kernel,
    store,
};

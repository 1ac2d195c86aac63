//! Capabilities of a mount: measured once, kept in a profile, and used by later copies.
//!
//! A [`Profile`] holds the measured figures. [`Profile::to_toml`] and [`Profile::parse`] write and read it, and
//! [`Profile::check`] checks that it is plausible. [`Place::of`] identifies the filesystem of a path, [`store`]
//! keeps profiles by that identity, and [`Profile::stale`] detects outdated ones.

pub mod measure;
mod profile;

pub use profile::{
    About, Block, Calls, Can, Depth, Direct, Figure, Malformed, Place, Profile, VERSION, age_seconds, kernel,
    store,
};

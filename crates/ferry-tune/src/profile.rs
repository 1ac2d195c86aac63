//! Measured figures of a mount.

mod date;
mod figures;
mod format;
mod identity;
mod sanity;
mod stale;
pub mod store;

pub use date::age_seconds;
pub use figures::{About, Block, Calls, Can, Depth, Direct, Figure, Place, Profile, VERSION};
pub use format::Malformed;
pub use identity::kernel;

#[cfg(test)]
mod tests;

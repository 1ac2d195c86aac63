//! Manifests: a hash of each regular file of a target, sorted by path.
//!
//! A run notes its files ([`Manifest`]), also by way of an observer ([`Noting`]). At the end they are written as lines that
//! sha256sum and b3sum check, or as JSON (`docs/manifest.schema.json`). [`check`] compares a tree with a manifest.

pub(crate) mod check;
pub(crate) mod collect;
mod json;
mod note;
pub(crate) mod noting;
mod read;
mod text;

pub use check::{Check, Checked, Finding, Parts, Tell, What, check};
pub use collect::{Format, Manifest};
pub use json::SCHEMA;
pub use note::Facts;
pub use noting::Noting;
pub use read::{BadManifest, Listing};

//! Large trees for measurements, made without a description in memory.
//!
//! `ferry lab tree` and tests make them. A [`Workload`] determines its tree completely. All file contents differ,
//! so that deduplication gains nothing.

mod generate;
mod preset;
mod shape;

pub use generate::{Made, make, make_while};
pub use preset::{Preset, UnknownPreset};
pub use shape::{Sizes, Workload};

#[cfg(test)]
mod tests;

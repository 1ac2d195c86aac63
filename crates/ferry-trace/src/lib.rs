//! Activity of a program, its rings and the kernel over time.
//!
//! The runtime records events ([`ferry_io`]), without knowing their use. This crate reads a recording into a
//! [`Trace`], checks it, summarises it, compares it with another one and draws it.

pub mod answer;
pub mod cause;
pub mod check;
pub mod diff;
pub mod export;
pub mod join;
pub mod kernel;
pub mod model;
pub mod read;
pub mod sample;
pub mod summary;
pub mod timeline;

pub use model::Trace;
pub use summary::Summary;

//! What a program, its rings and the kernel did, over time.
//!
//! The runtime records ([`ferry_io`] has the events, and no idea of what becomes of them); here a recording is read
//! into a [`Trace`], checked, summed up and drawn.

pub mod cause;
pub mod check;
pub mod export;
pub mod kernel;
pub mod model;
pub mod read;
pub mod sample;
pub mod summary;
pub mod timeline;

pub use model::Trace;
pub use summary::Summary;

//! The copier as a library, in simulated worlds that can produce any event, and the example of its guide.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod atomic;
mod copier;
mod example;
mod faults;
mod kinds;
mod model;
mod names;
mod provenance;
mod replaced;
mod simulation;
mod storms;
mod time;
mod told;
mod verified;

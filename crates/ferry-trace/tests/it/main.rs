//! Recordings of real and simulated runs are consistent in themselves and with the run's counters, and other programs
//! can read the exports.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod browser;
mod damaged;
mod edges;
mod kernel;
mod page;
mod perfetto;
mod program;
mod real;
mod simulated;

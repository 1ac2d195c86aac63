//! Recordings of real and simulated runs, read back: each agrees with itself and with the run's own counters. And what
//! other programs make of the exports.

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

//! Trees made, captured and compared on real filesystems.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as the test does")]

mod agreement;
mod deep;
mod differences;
mod gnu_cp;
mod hostile;
mod round_trip;
mod support;
mod workloads;

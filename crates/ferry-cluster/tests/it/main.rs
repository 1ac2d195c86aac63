//! The coordinator and the ranks together, on trees in memory, with messages in random order and kills.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod job;
mod model;
mod rank;
mod relist;
mod runs;
